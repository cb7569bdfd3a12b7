"""GET /console and GET /console/{proxy+}"""

from larder.web.console import (
    KeptPage,
    NotModified,
    console,
    kept_page_handler,
    unless_known,
)


def show_console(known: str) -> KeptPage | NotModified:
    """Show the console, one page for all its views."""
    return unless_known(console(), known)


handler = kept_page_handler(show_console)
