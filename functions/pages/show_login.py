"""GET /turborepo/token"""

from larder.web.pages import Page, page, page_handler


def show_login() -> Page:
    """Show the page that `turbo login` opens, where users sign in and allow turbo a token."""
    return page("login", "turbo login", signs_in=True)


handler = page_handler(show_login)
