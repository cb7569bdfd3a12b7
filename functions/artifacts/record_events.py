from typing import Annotated

from larder import clock
from larder.usage import service
from larder.usage.events import Reporter, UsageEvent
from larder.web.app import cache_api, lambda_handler
from larder.web.bodies.cache import usage_events
from larder.web.parameters import Client
from larder.web.powertools.resolver import Depends
from larder.web.principals.authorize import UsageReporter
from larder.web.responses import EmptyResponse, empty_response

app = cache_api()


@app.post("/v8/artifacts/events")
def record_events(
    events: Annotated[list[UsageEvent], Depends(usage_events)],
    client: Client,
    principal: UsageReporter,
) -> EmptyResponse:
    """Store the hits and misses of a build and add them to the figures of the day, except those of a public key."""
    reporter = Reporter(
        key_id=principal.credential.id,
        user_id=principal.person_id,
        rule_id=principal.key.rule_id if principal.key else None,
        ci=client.ci,
        interactive=client.interactive,
        is_public=principal.is_public,
    )
    service.record(principal.owner, events, reporter, now=clock.now())
    return empty_response()


handler = lambda_handler(app)
