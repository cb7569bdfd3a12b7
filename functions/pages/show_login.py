"""GET /turborepo/token"""

from larder.web.pages import Page, page, page_handler


def show_login() -> Page:
    """GET /turborepo/token: what `turbo login` opens: signs people in, and asks whether turbo may have a token."""
    return page("login", "turbo login", signs_in=True)


handler = page_handler(show_login)
