"""GET /reset-password"""

from larder.web.pages import Page, page, page_handler


def show_password_reset() -> Page:
    """GET /reset-password: where a link to reset a password leads, and whoever has forgotten theirs."""
    return page("reset", "Reset your password")


handler = page_handler(show_password_reset)
