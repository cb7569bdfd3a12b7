"""GET /turborepo/success"""

from larder.web.pages import Page, page, page_handler


def show_login_success() -> Page:
    """GET /turborepo/success: where turbo sends the browser when it has its token."""
    return page("success", "turbo login")


handler = page_handler(show_login_success)
