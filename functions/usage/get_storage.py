from larder.artifacts import breakdown
from larder.web.app import cache_api, lambda_handler
from larder.web.parameters import NoOtherParameters
from larder.web.principals.authorize import CacheManager
from larder.web.replies.storage import StorageJson, storage_json
from larder.web.responses import JsonResponse, json_response

app = cache_api()


@app.get("/v1/storage")
def get_storage(_query: NoOtherParameters, principal: CacheManager) -> JsonResponse[StorageJson]:
    """Get what takes the space, by age, writer and CI, and the largest artifacts, as checked daily."""
    found = breakdown.read_breakdown(principal.owner)
    return json_response(storage_json(principal.owner, found))


handler = lambda_handler(app)
