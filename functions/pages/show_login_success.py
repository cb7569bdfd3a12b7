"""GET /turborepo/success"""

from larder.web.pages import Page, page, page_handler


def show_login_success() -> Page:
    """Show the page that turbo opens after a login."""
    return page("success", "turbo login")


handler = page_handler(show_login_success)
