from typing import Annotated

from larder.web.app import lambda_handler, vercel_api
from larder.web.powertools.resolver import Depends
from larder.web.principals.runs import RunDeleter
from larder.web.queries.runs import RunsToDeleteQuery, runs_to_delete
from larder.web.replies.runs import DeletedRunsJson, deleted_runs_json
from larder.web.responses import JsonResponse, json_response
from larder.why import runs

app = vercel_api()


@app.delete("/v1/runs")
def delete_runs(
    query: Annotated[RunsToDeleteQuery, Depends(runs_to_delete)], deleter: RunDeleter
) -> JsonResponse[DeletedRunsJson]:
    """Delete a reported run, or the newest ones of a reporter."""
    deleted = runs.delete_runs(
        deleter.owner, place=query.place, reporter=query.reporter, of=deleter.only_of
    )
    return json_response(deleted_runs_json(deleted))


handler = lambda_handler(app)
