"""GET /verified"""

from larder.web.pages import Page, page, page_handler


def show_verified() -> Page:
    """GET /verified: what a link to verify an address ends with, unless it names another page."""
    return page("verified", "Your address")


handler = page_handler(show_verified)
