from typing import Annotated

from larder import clock
from larder.web.app import lambda_handler, vercel_api
from larder.web.bodies.runs import Question, asked_report
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import CausesReader
from larder.web.principals.runs import run_caller
from larder.web.queries.runs import asked_baseline
from larder.web.replies.runs import CausesJson, causes_json
from larder.web.responses import JsonResponse, json_response
from larder.why import service

app = vercel_api()


@app.post("/v1/causes")
def explain_inputs(
    question: Annotated[Question, Depends(asked_report)],
    against: Annotated[str | None, Depends(asked_baseline)],
    principal: CausesReader,
) -> JsonResponse[CausesJson]:
    """Explain the misses of a report, such as one of a dry run, and store nothing."""
    caller = run_caller(principal, ci=question.ci)
    explained = service.explain(
        caller, question.report, ci=question.ci, against=against, now=clock.now()
    )
    return json_response(causes_json(explained))


handler = lambda_handler(app)
