"""GET /verified"""

from larder.web.pages import Page, page, page_handler


def show_verified() -> Page:
    """GET /verified: where a link to verify an address leads when it names no other page."""
    return page("verified", "Your address")


handler = page_handler(show_verified)
