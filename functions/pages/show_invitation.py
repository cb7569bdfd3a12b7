"""GET /join"""

from larder.web.pages import Page, page, page_handler


def show_invitation() -> Page:
    """Show the page of an invitation link, where users sign in and join the team."""
    return page("join", "Invitation", signs_in=True)


handler = page_handler(show_invitation)
