from typing import Annotated

from larder import clock
from larder.runs import service
from larder.runs.models import Run
from larder.web.app import lambda_handler, vercel_api
from larder.web.bodies.runs import reported_run
from larder.web.parameters import NoOtherParameters
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import RunReporter
from larder.web.replies.runs import RecordedRunJson, recorded_run_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api()


@app.post("/v1/runs")
def record_run(
    run: Annotated[Run, Depends(reported_run)], principal: RunReporter, _query: NoOtherParameters
) -> JsonResponse[RecordedRunJson]:
    """Store the outcome of each task of a run, from the file of `turbo run --summarize`."""
    writer = principal.own_scope or principal.actor.credential_id
    recorded = service.record(principal.owner, run, writer=writer, now=clock.now())
    return json_response(recorded_run_json(run, recorded=recorded))


handler = lambda_handler(app)
