"""GET /turborepo/token"""

from larder.web.pages import Page, page, page_handler


def show_login() -> Page:
    """GET /turborepo/token: the page that `turbo login` opens. It asks people to sign in and let turbo have a token."""
    return page("login", "turbo login", signs_in=True)


handler = page_handler(show_login)
