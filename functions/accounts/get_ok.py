"""GET /api/auth/ok"""

from aws_lambda_powertools.event_handler import Response

from larder.web.app import auth_api, lambda_handler
from larder.web.responses import json_response

app = auth_api()


@app.get("/api/auth/ok")
def get_ok() -> Response[str]:
    """GET /api/auth/ok: whether the service answers."""
    return json_response({"ok": True})


handler = lambda_handler(app)
