from typing import Annotated

from larder import clock
from larder.web.app import lambda_handler, vercel_api
from larder.web.bodies.runs import ReportedRun, reported_run
from larder.web.parameters import NoOtherParameters
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import RunReporter
from larder.web.principals.runs import run_caller
from larder.web.replies.runs import RecordedRunJson, recorded_run_json
from larder.web.responses import JsonResponse, json_response
from larder.why import service

app = vercel_api()


@app.post("/v1/runs")
def record_run(
    sent: Annotated[ReportedRun, Depends(reported_run)],
    principal: RunReporter,
    _query: NoOtherParameters,
) -> JsonResponse[RecordedRunJson]:
    """Store the outcome of each task of a run, from the file of `turbo run --summarize`, and explain its misses."""
    caller = run_caller(principal, ci=sent.run.ci)
    recorded, explained = service.record_run(caller, sent.run, sent.report, now=clock.now())
    return json_response(recorded_run_json(sent.run, explained, recorded=recorded))


handler = lambda_handler(app)
