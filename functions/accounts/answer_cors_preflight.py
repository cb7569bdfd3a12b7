"""OPTIONS under /api/auth"""

from typing import Annotated

from larder.web.app import better_auth_api, lambda_handler
from larder.web.origins import announced_request_headers
from larder.web.powertools.resolver import Depends, Response
from larder.web.responses import empty

app = better_auth_api(guarded=False)


@app.route("/api/auth/.+", method="OPTIONS")
def answer_cors_preflight(
    allowed: Annotated[dict[str, str], Depends(announced_request_headers)],
) -> Response[None]:
    """Answer the CORS preflight of a page from another origin."""
    return empty(204, allowed)


handler = lambda_handler(app)
