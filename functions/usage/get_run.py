from typing import Annotated

from larder import clock
from larder.runs import service
from larder.web.app import lambda_handler, vercel_api
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import UsageReader
from larder.web.principals.runs import ExplanationReader
from larder.web.queries.runs import run_place
from larder.web.replies.runs import ShownRunJson, shown_run_json
from larder.web.responses import JsonResponse, json_response

app = vercel_api()


@app.get("/v1/runs/<run_id>")
def get_run(
    place: Annotated[str, Depends(run_place)],
    principal: UsageReader,
    reader: ExplanationReader,
    run_id: str,
) -> JsonResponse[ShownRunJson]:
    """Get a reported run with its tasks, and why tasks of it missed."""
    run = service.find_run(principal.owner, place, now=clock.now())
    return json_response(shown_run_json(run, reader))


handler = lambda_handler(app)
