"""No function imports at its start what it does not need: `make bench-cold` measures the CPU of each start."""

from collections import defaultdict

import pytest

from tests.default_template import template
from tests.documented import document
from tests.loaded import data_classes_of, loaded_by

TEMPLATE = template()
MODULES = [function.handler.removesuffix(".handler") for function in TEMPLATE.functions]
ROUTES = [
    (route.method.lower(), route.path, route.function.handler.removesuffix(".handler")) for route in TEMPLATE.routes
]
EXCHANGE = "api_keys.exchange_id_token"
CALLBACK = "accounts.finish_provider_sign_in"
SENDER = "accounts.send_account_email"

RESOLVER = "aws_lambda_powertools.event_handler.api_gateway"
NEVER = {"asyncio", "boto3", "botocore", "email_validator", "jmespath", "xml.etree"}
CONNECTIONS = {"http.client", "ssl", "urllib.request"}
"""To fetch the keys of an issuer. Calls to AWS do without them (docs/decisions/aws-client.md)."""
TOKENS = {"cryptography", "jwt"}
BODIES = {"email", "pydantic"}
"""pydantic imports email."""

MOST_DATA_CLASSES = 29
"""In a function of the cache. Making one takes half a millisecond (docs/decisions/cold-starts.md)."""


def takes_json(module: str) -> bool:
    """Whether a route of the function has a JSON body."""
    paths = document()["paths"]
    operations = [paths.get(path, {}).get(method, {}) for method, path, of in ROUTES if of == module]
    return any("application/json" in operation.get("requestBody", {}).get("content", {}) for operation in operations)


def unneeded(module: str) -> set[str]:
    """The modules that take long to import, and that the function does not need."""
    slow = {*NEVER, *BODIES, *CONNECTIONS, *TOKENS}
    # Bodies of the cache are parsed by hand (docs/decisions/cold-starts.md).
    if takes_json(module) and not module.startswith("artifacts."):
        slow -= BODIES
    if module in (EXCHANGE, CALLBACK):
        slow -= {"email", *CONNECTIONS, *TOKENS}
    if module == SENDER:
        slow -= {"email"}
    if module.startswith("pages.show_"):
        slow |= {RESOLVER}
    if any(of == module and path.startswith("/api/auth/") for _, path, of in ROUTES):
        slow |= {"larder.artifacts"}
    return slow


def test_functions_start_without_slow_imports() -> None:
    """Functions with equal needs start in one process. A module that none of them loads is loaded by no one of them."""
    alike = defaultdict(list)
    for module in MODULES:
        alike[frozenset(unneeded(module))].append(module)
    suspects = [module for slow, modules in alike.items() if slow & loaded_by(*modules) for module in modules]
    assert {module: unneeded(module) & loaded_by(module) for module in suspects} == {}


def test_what_functions_load_is_seen() -> None:
    for module in (EXCHANGE, CALLBACK):
        assert loaded_by(module) >= {*CONNECTIONS, *TOKENS}
    assert loaded_by("teams.create_team") >= BODIES
    assert loaded_by("teams.list_teams") >= {RESOLVER, "larder.artifacts"}


@pytest.mark.parametrize("name", ["get_status", "list_artifacts", "put_artifact", "query_artifacts"])
def test_functions_of_the_cache_make_few_data_classes(name: str) -> None:
    made = data_classes_of(f"artifacts.{name}")
    assert "larder.artifacts.models.Artifact" in made
    assert len(made) <= MOST_DATA_CLASSES, sorted(made)


def test_what_a_function_needs_follows_from_its_routes() -> None:
    assert unneeded("teams.list_teams") >= {"pydantic", "ssl", "jwt"}
    assert "pydantic" not in unneeded("teams.create_team")
    assert "pydantic" in unneeded("artifacts.query_artifacts")
    assert "larder.artifacts" in unneeded("accounts.get_session")
    assert RESOLVER in unneeded("pages.show_console")
