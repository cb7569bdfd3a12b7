"""GET /"""

from larder.web.pages import Page, page, page_handler


def show_home() -> Page:
    """Show what this service is, and how to set up turbo."""
    return page("home", "Build cache")


handler = page_handler(show_home)
