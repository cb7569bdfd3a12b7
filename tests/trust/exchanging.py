"""Requests to the token endpoints."""

from urllib.parse import urlencode

from tests.requests import Reply, Sender

TOKEN = "/login/oauth/token"
REVOKE = f"{TOKEN}/revoke"
GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
FORM = {"content-type": "application/x-www-form-urlencoded;charset=UTF-8"}


def exchange(token: str, **fields: str) -> Reply:
    """Exchange an id token for the team acme. Fields that are empty are left out."""
    form = {
        "grant_type": GRANT,
        "subject_token_type": ID_TOKEN,
        "team_id_or_slug": "acme",
        "subject_token": token,
        **fields,
    }
    return posted(TOKEN, {name: value for name, value in form.items() if value})


def revoke(token: str) -> Reply:
    return posted(REVOKE, {"token": token, "token_type_hint": "access_token"})


def posted(path: str, form: dict[str, str] | str) -> Reply:
    body = form if isinstance(form, str) else urlencode(form)
    return Sender(None)("POST", path, body=body.encode(), headers=FORM)


def refusal(reply: Reply) -> tuple[int, str]:
    """The status and the code of an error."""
    return reply.status, reply.json["error"]
