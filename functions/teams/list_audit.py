from typing import Annotated

from larder import clock
from larder.accounts import activity
from larder.web.app import lambda_handler, vercel_api
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import AuditReader
from larder.web.queries.audit import AuditQuery, audit_query
from larder.web.replies.audit import AuditJson, audit_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api()


@app.get("/v1/audit")
def list_audit(
    query: Annotated[AuditQuery, Depends(audit_query)], principal: AuditReader
) -> JsonResponse[AuditJson]:
    """List who did what to the team or the user, newest first: access, settings and deletions."""
    found = activity.read_activity(
        principal.owner,
        before=query.before,
        limit=query.limit,
        actions=query.actions,
        now=clock.now(),
    )
    return json_response(audit_json(found))


handler = lambda_handler(app)
