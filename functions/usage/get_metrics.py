from larder import clock
from larder.usage import service
from larder.usage.models import period_until
from larder.web.app import lambda_handler, vercel_api
from larder.web.parameters import NoOtherParameters
from larder.web.principals.authorize import UsageReader
from larder.web.replies.metrics import MetricsResponse, metrics_text

app = vercel_api()


@app.get("/v1/usage/metrics")
def get_metrics(_query: NoOtherParameters, principal: UsageReader) -> MetricsResponse:
    """Get today's figures, the stored bytes and the quota in Prometheus's text format."""
    totals, now = principal.totals, clock.now()
    usage = service.read_usage(
        principal.owner,
        period_until(now.date(), 1),
        recent_uploads=totals.uploads,
        stored_now=totals.stored,
        now=now,
    )
    return MetricsResponse(metrics_text(principal, usage.total))


handler = lambda_handler(app)
