"""GET /reset-password"""

from larder.web.pages import Page, page, page_handler


def show_password_reset() -> Page:
    """GET /reset-password: what a link to reset a password opens. Without a token it asks for the address."""
    return page("reset", "Reset your password")


handler = page_handler(show_password_reset)
