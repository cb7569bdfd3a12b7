"""GET /verified"""

from larder.web.pages import Page, page, page_handler


def show_verified() -> Page:
    """Show that an address is verified. Verification links end here unless they name another page."""
    return page("verified", "Your address")


handler = page_handler(show_verified)
