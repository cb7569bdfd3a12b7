from typing import Annotated

from larder import clock
from larder.usage import service
from larder.usage.models import Period
from larder.web.app import lambda_handler, vercel_api
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import UsageReader
from larder.web.queries.usage import period_query
from larder.web.replies.usage import UsageJson, usage_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api()


@app.get("/v1/usage")
def get_usage(
    period: Annotated[Period, Depends(period_query)], principal: UsageReader
) -> JsonResponse[UsageJson]:
    """Get the usage in a period, the stored bytes now, and the limits that apply."""
    totals, now = principal.totals, clock.now()
    usage = service.read_usage(
        principal.owner,
        period,
        recent_uploads=totals.uploads,
        stored_now=totals.stored,
        now=now,
    )
    return json_response(usage_json(principal, usage, now))


handler = lambda_handler(app)
