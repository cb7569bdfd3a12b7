from typing import Annotated

from larder import clock
from larder.artifacts import removals
from larder.web.app import cache_api, lambda_handler
from larder.web.audit_log import audit_entry
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import CacheManager
from larder.web.queries.artifacts import removal_target
from larder.web.replies.removals import AcceptedRemovalJson, removal_json
from larder.web.responses import AcceptedResponse, accepted_response

app = cache_api()


@app.delete("/v1/artifacts")
def delete_artifacts(
    target: Annotated[str, Depends(removal_target)], principal: CacheManager
) -> AcceptedResponse[AcceptedRemovalJson]:
    """Delete all of a writer, a scope or a time, or everything, in a background job."""
    entry = removals.ask_removal(principal.owner, target, by=principal.actor, now=clock.now())
    audit_entry(entry)
    return accepted_response(removal_json(entry))


handler = lambda_handler(app)
