"""GET /"""

from larder.web.pages import Page, page, page_handler


def show_home() -> Page:
    """GET /: what this is, and what to paste where turbo runs."""
    return page("home", "Build cache")


handler = page_handler(show_home)
