"""GET /join"""

from larder.web.pages import Page, page, page_handler


def show_invitation() -> Page:
    """GET /join: what the link of an invitation opens: signs people in, and asks whether they want to join the team."""
    return page("join", "Invitation", signs_in=True)


handler = page_handler(show_invitation)
