"""Functions that builds wait for do not load eviction, removal and the sweep (docs/decisions/cold-starts.md)."""

from tests.default_template import template
from tests.loaded import loaded_by

MODULES = sorted(
    {
        route.function.handler.removesuffix(".handler")
        for route in template().routes
        if route.path.startswith("/v8/artifacts")
    }
)
BACKGROUND = {
    "larder.artifacts.eviction", "larder.artifacts.removals", "larder.artifacts.repository.sweep_queue",
    "larder.artifacts.repository.eviction", "larder.artifacts.sweep", "larder.audit.repository",
}  # fmt: skip


def test_the_list_of_cache_functions_is_not_empty() -> None:
    assert {"artifacts.put_artifact", "artifacts.fetch_artifact"} <= set(MODULES)


def test_the_cache_functions_start_without_background_code() -> None:
    assert not BACKGROUND & loaded_by(*MODULES)
