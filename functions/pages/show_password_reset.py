"""GET /reset-password"""

from larder.web.pages import Page, page, page_handler


def show_password_reset() -> Page:
    """Show the page to reset a password. Without a token it asks for the address."""
    return page("reset", "Reset your password")


handler = page_handler(show_password_reset)
