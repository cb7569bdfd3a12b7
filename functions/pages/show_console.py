"""GET /console and GET /console/{proxy+}"""

from larder.web.console import (
    KeptPage,
    NotModified,
    console,
    kept_page_handler,
    unless_known,
)


def show_console(path: str, known: str) -> KeptPage | NotModified:
    """Show the console, one page for all its views but those that few use."""
    return unless_known(console(path), known)


handler = kept_page_handler(show_console)
