"""Functions that builds wait for start without what evictions, removals and the sweep need (docs/decisions/0030)."""

from local.template import load_template
from tests.loaded import loaded_by

MODULES = sorted(
    {
        route.function.handler.removesuffix(".handler")
        for route in load_template(environ={}).routes
        if route.path.startswith("/v8/artifacts")
    }
)
BACKGROUND = {
    "larder.artifacts.eviction",
    "larder.artifacts.delete_by_writer",
    "larder.artifacts.repository.sweep_queue",
    "larder.artifacts.repository.eviction",
    "larder.artifacts.sweep",
    "larder.audit.repository",
}


def test_there_are_functions_of_the_cache() -> None:
    assert {"artifacts.put_artifact", "artifacts.fetch_artifact"} <= set(MODULES)


def test_the_functions_of_the_cache_start_without_background_work() -> None:
    assert not BACKGROUND & loaded_by(*MODULES)
