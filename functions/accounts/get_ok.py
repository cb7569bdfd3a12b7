from typing import Literal, TypedDict

from larder.web.app import better_auth_api, lambda_handler
from larder.web.responses import JsonResponse, json_response

app = better_auth_api()


class OkJson(TypedDict):
    ok: Literal[True]


@app.get("/api/auth/ok")
def get_ok() -> JsonResponse[OkJson]:
    """Check that the service responds."""
    return json_response({"ok": True})


handler = lambda_handler(app)
