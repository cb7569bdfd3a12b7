"""The parts of Powertools that functions use. Import Powertools from this package's modules, not from its own.

Importing a package of Powertools imports all of its modules: the events of thirty services, the resolvers of six kinds
of API with asyncio, the tracer, and jmespath. They would take 100 of the 250 ms in which a function of the cache starts
(docs/decisions/aws-client.md). So this module puts the packages into `sys.modules` without
running their code. That runs when something else of a package is used, as by an integrator's function.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any

_PACKAGES: Mapping[str, Mapping[str, str]] = {
    "aws_lambda_powertools": {},
    "aws_lambda_powertools.event_handler": {},
    "aws_lambda_powertools.utilities.data_classes": {
        "ALBEvent": "alb_event",
        "APIGatewayProxyEvent": "api_gateway_proxy_event",
        "APIGatewayProxyEventV2": "api_gateway_proxy_event",
        "BedrockAgentEvent": "bedrock_agent_event",
        "LambdaFunctionUrlEvent": "lambda_function_url_event",
        "VPCLatticeEvent": "vpc_lattice",
        "VPCLatticeEventV2": "vpc_lattice",
    },
    # The logger only finds a correlation id with it. Larder's log lines have none.
    "aws_lambda_powertools.utilities.jmespath_utils": {},
}
"""By package, or module, the names that the modules in use import from it, each with its module."""


def _enter(name: str, modules: Mapping[str, str]) -> None:
    """Put a package into sys.modules whose code runs when a name is needed that none of `modules` has."""
    parent, _, child = name.rpartition(".")
    above = import_module(parent) if parent else None
    spec = _spec(name, above)
    assert spec is not None  # noqa: S101 - it is installed
    package = module_from_spec(spec)

    def find(attribute: str) -> Any:
        if attribute in modules:
            return getattr(import_module(f"{name}.{modules[attribute]}"), attribute)
        # An import of a module of the package looks for it here first.
        is_module = hasattr(package, "__path__") and _spec(f"{name}.{attribute}", package)
        if attribute.startswith("__") or is_module or spec.loader is None:
            raise AttributeError(attribute)
        del package.__getattr__
        spec.loader.exec_module(package)
        return getattr(package, attribute)

    package.__getattr__ = find  # type: ignore[method-assign]
    sys.modules[name] = package
    if above is not None:
        setattr(above, child, package)


def _spec(name: str, package: ModuleType | None) -> ModuleSpec | None:
    return PathFinder.find_spec(name, None if package is None else package.__path__)


# A program that has imported Powertools itself keeps it.
if "aws_lambda_powertools" not in sys.modules:
    for _name, _modules in _PACKAGES.items():
        _enter(_name, _modules)
