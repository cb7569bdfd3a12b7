from typing import Annotated

from larder.artifacts.caching import set_caching
from larder.teams.models import CachingStatus
from larder.web.app import cache_api, lambda_handler
from larder.web.audit_log import audit
from larder.web.bodies.cache import caching_to_set
from larder.web.parameters import NoOtherParameters
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import CachingOwner
from larder.web.replies.cache import CachingStatusJson
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.put("/v1/artifacts/status")
def set_caching_status(
    _query: NoOtherParameters,
    caching: Annotated[CachingStatus, Depends(caching_to_set)],
    principal: CachingOwner,
) -> JsonResponse[CachingStatusJson]:
    """Enable, disable or pause caching. The reply has the status that clients now get."""
    status = set_caching(principal.owner, caching, principal.totals, by=principal.actor)
    audit("caching_status_set", principal.actor, owner=principal.owner, subject=caching.value)
    return json_response({"status": status})


handler = lambda_handler(app)
