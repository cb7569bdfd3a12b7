from typing import Annotated

from larder import clock
from larder.artifacts import search
from larder.web.app import lambda_handler, vercel_api
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import UsageReader
from larder.web.principals.runs import ExplanationReader
from larder.web.queries.runs import history_query
from larder.web.replies.runs import TaskHistoryJson, history_json
from larder.web.responses import JsonResponse, json_response
from larder.why import runs
from larder.why.history import WantedHashes

app = vercel_api()


@app.get("/v1/tasks/history")
def get_task_history(
    wanted: Annotated[WantedHashes, Depends(history_query)],
    principal: UsageReader,
    reader: ExplanationReader,
) -> JsonResponse[TaskHistoryJson]:
    """Get the hashes that a task had in the reported runs, or the tasks of hashes."""
    owner, now = principal.owner, clock.now()
    history = runs.read_history(owner, wanted, reader=reader, now=now)
    hashes = [one.hash for one in history.hashes]
    stored = search.known_artifacts(owner, hashes, view=principal.view, now=now).artifacts
    return json_response(history_json(history, stored))


handler = lambda_handler(app)
