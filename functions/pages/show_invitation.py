"""GET /join"""

from larder.web.pages import Page, page, page_handler


def show_invitation() -> Page:
    """GET /join: where an invitation to a team leads: signs people in, and asks whether they want to join."""
    return page("join", "Invitation", signs_in=True)


handler = page_handler(show_invitation)
