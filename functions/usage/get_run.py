from typing import Annotated

from larder import clock
from larder.web.app import lambda_handler, vercel_api
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import UsageReader
from larder.web.principals.runs import ExplanationReader, run_caller
from larder.web.queries.runs import RunQuery, run_query
from larder.web.replies.runs import ShownRunJson, shown_run_json
from larder.web.responses import JsonResponse, json_response
from larder.why import runs
from larder.why.service import explained_run

app = vercel_api()


@app.get("/v1/runs/<run_id>")
def get_run(
    query: Annotated[RunQuery, Depends(run_query)],
    principal: UsageReader,
    reader: ExplanationReader,
    run_id: str,
) -> JsonResponse[ShownRunJson]:
    """Get a reported run with its tasks, and why tasks of it missed."""
    now = clock.now()
    run = runs.find_run(principal.owner, query.place, now=now)
    caller = run_caller(principal, ci=None)
    explained = explained_run(run, caller, reader, against=query.against, now=now)
    return json_response(shown_run_json(run, explained, reader))


handler = lambda_handler(app)
