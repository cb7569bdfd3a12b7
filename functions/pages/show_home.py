"""GET /"""

from larder.web.pages import Page, page, page_handler


def show_home() -> Page:
    """GET /: what this service is, and how to set turbo up."""
    return page("home", "Build cache")


handler = page_handler(show_home)
