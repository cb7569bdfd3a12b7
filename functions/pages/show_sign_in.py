"""GET /sign-in"""

from larder.web.pages import Page, page, page_handler


def show_sign_in() -> Page:
    """Show the page where users sign in or sign up, and continue at the console."""
    return page("sign-in", "Sign in", signs_in=True)


handler = page_handler(show_sign_in)
