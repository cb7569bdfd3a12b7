from typing import Annotated

from larder import clock
from larder.web.app import lambda_handler, vercel_api
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import UsageReader
from larder.web.principals.runs import ExplanationReader
from larder.web.queries.runs import RunsQuery, runs_query
from larder.web.replies.runs import RunsJson, run_json, runs_json, trend_json
from larder.web.responses import JsonResponse, json_response
from larder.why import runs

app = vercel_api()


@app.get("/v1/runs")
def list_runs(
    query: Annotated[RunsQuery, Depends(runs_query)],
    principal: UsageReader,
    reader: ExplanationReader,
) -> JsonResponse[RunsJson]:
    """List the reported runs of a period, with the hits and build times of each package and task, or of each day."""
    owner, now = principal.owner, clock.now()
    if query.place is not None:
        run = runs.read_run(owner, query.place, now=now)
        return json_response(run_json(query.period, run, reader))
    first, last, branch, limit = query.period.first, query.period.last, query.branch, query.limit
    if query.by_day:
        trend = runs.read_trend(owner, first, last, branch=branch, reader=reader, now=now)
        return json_response(trend_json(query.period, trend))
    if query.before is None:
        page, figures = runs.read_first_runs(
            owner, first, last, branch=branch, reader=reader, limit=limit, now=now
        )
    else:
        page = runs.read_runs(
            owner, first, last, branch=branch, before=query.before, limit=limit, now=now
        )
        figures = None
    return json_response(runs_json(query.period, page, figures, reader))


handler = lambda_handler(app)
