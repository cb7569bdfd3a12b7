from larder import clock
from larder.usage import service
from larder.web.app import lambda_handler, vercel_api
from larder.web.principals.authorize import UsageReader
from larder.web.queries.usage import PeriodAsked
from larder.web.replies.usage import UsageJson, usage_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api()


@app.get("/v1/usage")
def get_usage(period: PeriodAsked, principal: UsageReader) -> JsonResponse[UsageJson]:
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
