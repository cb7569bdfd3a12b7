"""Rules for template.yaml. tests/build tests the template after SAM's transform."""

import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import fields
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv6Address, ip_network
from itertools import chain, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larder.accounts.sign_in import allowed_domains
from larder.api_keys.properties import check_prefix
from larder.artifacts.models import ArtifactHash, Upload, parse_object_key
from larder.errors import InvalidValue
from larder.rate_limits.models import BY_PATH
from larder.settings import PACKED, Settings, SettingsError, environment_name, unpacked
from local import option_check
from local.cloudformation import by_default, holds, resolve
from local.event_delivery import matches
from tests.conftest import SetOption
from tests.emulator.aws_behaviour import VARIABLES_BYTES
from tests.permissions import RESOURCES, TEMPLATE, allows, granted, grants, is_met, policies, statements
from tests.variables import LONGEST_NAME_WITH_PREFIX, MOST_BYTES, TEXTS, longest_variables, measured, variables_of

ROOT = Path(__file__).resolve().parent.parent
PARAMETERS: dict[str, Any] = TEMPLATE["Parameters"]
SHARED: dict[str, Any] = TEMPLATE["Globals"]["Function"]
GATEWAY_TIMEOUT_S = 30
FOURTEEN_DAYS_S = 14 * 24 * 3600


def of_type(kind: str) -> dict[str, dict[str, Any]]:
    """The properties of every resource of one type, by logical id."""
    return {
        logical_id: resource.get("Properties", {})
        for logical_id, resource in RESOURCES.items()
        if resource["Type"] == kind
    }


FUNCTIONS = of_type("AWS::Serverless::Function")
TABLES = of_type("AWS::DynamoDB::Table")
QUEUES = of_type("AWS::SQS::Queue")


def events(logical_id: str, kind: str) -> dict[str, dict[str, Any]]:
    return {
        name: event["Properties"]
        for name, event in FUNCTIONS[logical_id].get("Events", {}).items()
        if event["Type"] == kind
    }


HTTP_FUNCTIONS = [name for name in FUNCTIONS if events(name, "HttpApi")]
BACKGROUND_FUNCTIONS = [name for name in FUNCTIONS if name not in HTTP_FUNCTIONS]
INVOKED_FUNCTIONS = {
    "RemoveArtifacts": "removal_function",
    "SendAccountEmail": "email_function",
    "CommitUpload": "commit_function",
}
"""Functions that others invoke asynchronously, by the option with their name."""
ROUTES = {
    (route["Method"], route["Path"]): name for name in HTTP_FUNCTIONS for route in events(name, "HttpApi").values()
}


def camel_case(snake_case: str) -> str:
    return "".join(word.capitalize() for word in snake_case.split("_"))


def modules() -> list[str]:
    """Every module of functions/, as `domain.module`."""
    folder = ROOT / "functions"
    return sorted(
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in folder.rglob("*.py")
        if path.name != "__init__.py"
    )


# ---------------------------------------------------------------------------------------- functions


def test_every_function_runs_on_the_python_version_of_the_layer() -> None:
    assert SHARED["Runtime"] == "python3.13"
    assert SHARED["Architectures"] == ["arm64"]
    assert not [name for name, own in FUNCTIONS.items() if {"Runtime", "Architectures"} & set(own)]
    for layer in of_type("AWS::Serverless::LayerVersion").values():
        assert layer["CompatibleRuntimes"] == ["python3.13"]
        assert layer["CompatibleArchitectures"] == ["arm64"]


def test_every_function_gets_the_same_zip_and_layer() -> None:
    assert SHARED["CodeUri"] == "layers/larder/placeholder"
    assert SHARED["Layers"] == [{"Ref": "LarderLayer"}]
    assert not [name for name, own in FUNCTIONS.items() if "CodeUri" in own]


def test_only_functions_that_verify_id_tokens_get_the_layer_of_pyjwt() -> None:
    added = {name: own["Layers"] for name, own in FUNCTIONS.items() if "Layers" in own}
    layers = [{"Ref": "JwtLayer"}]
    assert added == {"ExchangeIdToken": layers, "FinishProviderSignIn": layers}


def test_the_zip_of_the_functions_is_the_same_in_every_release() -> None:
    """Lambda changes a function's zip and its layer in two calls. In between, it would run code of both versions.

    So all code is in the layer, and the zip is a constant: SAM uploads it under the same key, and CloudFormation leaves
    it alone. If this fails, delete what was added to the folder, such as a file of the operating system. To change the
    file on purpose, change the checksums here and in tests/build/test_package.py. The next upgrade then replaces every
    zip once, which takes longer. It is harmless as long as the zip has no code.
    """
    folder = ROOT / str(SHARED["CodeUri"])
    (only,) = folder.rglob("*")
    assert only.name == "README.txt"
    assert hashlib.sha256(only.read_bytes()).hexdigest() == (
        "5c075e546fa56c224c795d5f063827c4f28a699cce9a75c378f9dbefb765c02c"
    )


def test_sam_finds_the_target_that_builds_each_layer() -> None:
    for name, layer in of_type("AWS::Serverless::LayerVersion").items():
        assert RESOURCES[name]["Metadata"]["BuildMethod"] == "makefile"
        makefile = (ROOT / layer["ContentUri"] / "Makefile").read_text()
        assert re.search(rf"^build-{name}:", makefile, re.MULTILINE)


def test_every_module_is_one_function_and_vice_versa() -> None:
    handlers = sorted(own["Handler"].removesuffix(".handler") for own in FUNCTIONS.values())
    assert handlers == modules()


@pytest.mark.parametrize("logical_id", FUNCTIONS)
def test_function_event_and_test_have_the_same_name(logical_id: str) -> None:
    domain, module, _ = FUNCTIONS[logical_id]["Handler"].split(".")
    triggers = list(FUNCTIONS[logical_id].get("Events", {}))
    # A function with several routes has one event for each.
    assert (
        (not triggers and logical_id in INVOKED_FUNCTIONS)
        or triggers == [logical_id]
        or (len(triggers) > 1 and all(name.startswith(logical_id) for name in triggers))
    )
    assert (ROOT / "events" / f"{module}.json").is_file()
    assert (ROOT / "tests" / "functions" / domain / f"test_{module}.py").is_file()


@pytest.mark.parametrize("logical_id", HTTP_FUNCTIONS)
def test_a_function_times_out_before_the_gateway(logical_id: str) -> None:
    assert FUNCTIONS[logical_id].get("Timeout", SHARED["Timeout"]) < GATEWAY_TIMEOUT_S


def test_no_function_is_traced_unless_enabled() -> None:
    assert SHARED["Tracing"] == {"Ref": "Tracing"}
    assert PARAMETERS["Tracing"]["Default"] == "PassThrough"
    assert not [name for name, own in FUNCTIONS.items() if "Tracing" in own]


@pytest.mark.parametrize(
    ("setting", "condition", "off"),
    [("PermissionsBoundary", "HasPermissionsBoundary", ""), ("RolePath", "HasRolePath", "/")],
)
def test_an_organization_can_bound_and_place_every_role(setting: str, condition: str, off: str) -> None:
    assert SHARED[setting] == {"Fn::If": [condition, {"Ref": setting}, {"Ref": "AWS::NoValue"}]}
    assert PARAMETERS[setting]["Default"] == off
    assert TEMPLATE["Conditions"][condition] == {"Fn::Not": [{"Fn::Equals": [{"Ref": setting}, off]}]}
    assert not of_type("AWS::IAM::Role")
    assert not [name for name, own in FUNCTIONS.items() if {setting, "Role"} & set(own)]


@pytest.mark.parametrize(
    ("boundary", "taken"),
    [
        ("", True),
        ("arn:aws:iam::123456789012:policy/boundaries/developers", True),
        ("arn:aws-us-gov:iam::aws:policy/PowerUserAccess", True),
        ("arn:aws:iam::123456789012:role/developers", False),
        ("developers", False),
    ],
)
def test_a_permissions_boundary_must_be_a_policy(boundary: str, taken: bool) -> None:
    pattern = PARAMETERS["PermissionsBoundary"]["AllowedPattern"]
    assert bool(re.fullmatch(pattern, boundary)) is taken


@pytest.mark.parametrize(
    ("path", "taken"),
    [
        ("/", True),
        ("/larder/", True),
        ("/teams/build/", True),
        ("larder", False),
        ("/larder", False),
        ("//", False),
        ("/*/", False),
        ("/larder-pro?/", False),
        ("", False),
    ],
)
def test_a_role_path_begins_and_ends_with_a_slash(path: str, taken: bool) -> None:
    assert bool(re.fullmatch(PARAMETERS["RolePath"]["AllowedPattern"], path)) is taken


@pytest.mark.parametrize("logical_id", [name for name in BACKGROUND_FUNCTIONS if events(name, "Schedule")])
def test_a_background_run_ends_well_before_the_next_one_starts(logical_id: str) -> None:
    assert FUNCTIONS[logical_id].get("Timeout", SHARED["Timeout"]) <= 900


def test_no_address_or_arn_is_of_one_partition() -> None:
    """Service principals have the same name everywhere. tools/generate/events.py makes examples."""
    files = [ROOT / "template.yaml"]
    for folder in ("layers/larder/src", "functions", "clients/cli", "tools"):
        files += (ROOT / folder).rglob("*.py")
    fixed = {
        f"{path.relative_to(ROOT)}: {found}"
        for path in files
        for found in re.findall(r"arn:aws:|[\w.}{()-]+\.amazonaws\.com(?!\w)", path.read_text(encoding="utf-8"))
        if path != ROOT / "tools" / "generate" / "events.py"
    }
    assert fixed == {"template.yaml: cloudfront.amazonaws.com", "template.yaml: events.amazonaws.com"}


# ------------------------------------------------------------------------------------- environment


@pytest.mark.parametrize("logical_id", FUNCTIONS)
def test_the_longest_variables_of_a_function_fit(logical_id: str) -> None:
    longest = longest_variables(variables_of(logical_id))
    assert measured(longest) <= MOST_BYTES
    with_prefix = longest_variables(variables_of(logical_id), LONGEST_NAME_WITH_PREFIX)
    assert measured(with_prefix) <= VARIABLES_BYTES


def test_variables_are_measured_as_lambda_measures_them() -> None:
    assert measured({"A": "x", "B": '"'}) == len(r'{"A":"x","B":"\""}')


def test_every_option_that_is_a_text_has_a_longest_length() -> None:
    options = {camel_case(option.name) for option in fields(Settings)} & PARAMETERS.keys()
    texts = {
        name for name in options if PARAMETERS[name]["Type"] == "String" and "AllowedValues" not in PARAMETERS[name]
    }
    assert {name for name in options if "MaxLength" in PARAMETERS[name]} == texts == TEXTS.keys()


@pytest.mark.parametrize(("parameter", "longest"), TEXTS.items())
def test_the_longest_text_is_taken(parameter: str, longest: str) -> None:
    assert len(longest) == PARAMETERS[parameter]["MaxLength"]
    assert re.fullmatch(PARAMETERS[parameter].get("AllowedPattern", ".*"), longest)


@pytest.mark.parametrize("parameter", sorted(TEXTS.keys() - {"ProductName"}))
def test_a_text_that_json_writes_longer_is_refused(parameter: str) -> None:
    pattern, longest = PARAMETERS[parameter]["AllowedPattern"], TEXTS[parameter]
    for character in ('"', "\\", "\u00fc", "\U0001f600", "\x01"):
        for place in range(len(longest)):
            text = longest[:place] + character + longest[place + 1 :]
            if len(json.dumps(text)) > len(json.dumps(longest)):
                assert not re.fullmatch(pattern, text), text


@pytest.mark.parametrize(
    ("parameter", "unit"), [("OperatorEmails", "@\u00fc.de,\u00fc"), ("AllowedEmailDomains", "\u00fc.de,")]
)
def test_a_text_with_letters_outside_ascii_has_fewer_characters(parameter: str, unit: str) -> None:
    pattern = PARAMETERS[parameter]["AllowedPattern"]
    texts = [("\u00fc" + unit * 100)[:length] for length in range(200)]
    taken = [text for text in texts if re.fullmatch(pattern, text)]
    assert 40 < max(map(len, taken)) <= 80
    assert max(len(json.dumps(text)) for text in taken) <= len(json.dumps(TEXTS[parameter]))


@pytest.mark.parametrize("logical_id", FUNCTIONS)
def test_an_option_has_the_value_of_its_own_parameter(logical_id: str) -> None:
    """What a function needs in addition, its tests miss: it has only its variables there."""
    variables = variables_of(logical_id)
    named = {name for name in variables if name.startswith("LARDER_")} - {PACKED}
    assert all(variables[name] == {"Ref": camel_case(option_of(name))} for name in named)
    packed = variables[PACKED]["Fn::Sub"]
    text, values = packed if isinstance(packed, list) else (packed, {})
    for option, _, value in (entry.partition("=") for entry in text.split()):
        name = {"artifacts_bucket": "Bucket"}.get(option, camel_case(option))
        assert option in INVOKED_FUNCTIONS.values() or value == f"${{{name}}}"
    assert values.keys() == {one for one in ("Bucket", "EdgeUrl", "Prefix") if f"${{{one}}}" in text}


def option_of(variable: str) -> str:
    return variable.removeprefix("LARDER_").lower()


def test_every_option_is_in_a_set() -> None:
    given = {
        name
        for logical_id in FUNCTIONS
        for name in unpacked(variables_of(logical_id, resolved=True))
        if name.startswith("LARDER_")
    }
    assert given == {environment_name(option.name) for option in fields(Settings)}


def test_every_option_is_a_parameter_or_a_resource() -> None:
    named = {camel_case(option.name) for option in fields(Settings)}
    assert named - PARAMETERS.keys() - RESOURCES.keys() == {
        *("CommitFunction", "EdgeUrl", "EmailFunction", "RemovalFunction")
    }


@pytest.mark.parametrize("prefixed", [False, True])
@pytest.mark.parametrize(("logical_id", "option"), INVOKED_FUNCTIONS.items())
def test_a_function_that_is_invoked_by_name_has_the_name_in_the_options(
    logical_id: str, option: str, prefixed: bool
) -> None:
    def resolved(value: Any) -> str:
        chosen = by_default(TEMPLATE, with_name_prefix(value) if prefixed else value)
        return str(resolve(chosen, reference, lambda name, _: name))

    def reference(name: str) -> str:
        return resolved(FUNCTIONS[name]["FunctionName"]) if name in FUNCTIONS else name

    name = resolved(FUNCTIONS[logical_id]["FunctionName"])
    assert name.startswith("NamePrefix-" if prefixed else "AWS::StackName-")
    packed = [resolved(variables_of(function).get(PACKED, "")) for function in FUNCTIONS]
    assert {entry for text in packed for entry in text.split() if entry.startswith(option)} == {f"{option}={name}"}
    # A reference to the function itself would be circular.
    assert f"${{{logical_id}}}" not in str(variables_of(logical_id))


def test_every_function_has_a_trigger_or_is_invoked_by_name() -> None:
    events_too = {"CommitUpload"}
    assert {name for name, own in FUNCTIONS.items() if "Events" not in own} == set(INVOKED_FUNCTIONS) - events_too


@pytest.mark.parametrize(
    ("parameter", "value", "taken"),
    [
        ("BaseUrl", "", True),
        ("BaseUrl", "https://cache.example.com", True),
        ("BaseUrl", "http://localhost:3000/", True),
        ("BaseUrl", "cache.example.com", False),
        ("BaseUrl", "https://cache.example.com/path", False),
        ("TrustedOrigins", "", True),
        ("TrustedOrigins", "https://app.example.org", True),
        ("TrustedOrigins", "https://*.example.org:8443/, http://localhost:5173", True),
        ("TrustedOrigins", "*", False),
        ("TrustedOrigins", "*.example.org", False),
        ("TrustedOrigins", "https://app.example.org/path", False),
        ("TrustedOrigins", "https://a.example, b.example", False),
    ],
)
def test_invalid_origins_stop_the_deployment(parameter: str, value: str, taken: bool) -> None:
    assert bool(re.fullmatch(PARAMETERS[parameter]["AllowedPattern"], value)) is taken


def _signs_up_under(domains: str) -> None:
    allowed_domains()


def _makes_keys_with(prefix: str) -> None:
    check_prefix(prefix or None)


def _starts_with(_: str) -> None:
    option_check.check_options(loads=False)


@pytest.mark.parametrize(
    ("parameter", "takes", "value", "taken"),
    [
        ("OperatorEmails", _starts_with, "", True),
        ("OperatorEmails", _starts_with, "ada@example.com", True),
        ("OperatorEmails", _starts_with, "ada@example.com, bob+ops@acme.example", True),
        ("OperatorEmails", _starts_with, "ada", False),
        ("OperatorEmails", _starts_with, "ada@example.com bob@acme.example", False),
        *[
            ("Extensions", _starts_with, value, taken)
            for value, taken in {
                "": True,
                "hooks": True,
                "company.mail_2.hooks": True,
                "hooks:deliver": False,
                "hooks.": False,
                "our hooks": False,
            }.items()
        ],
        ("AllowedEmailDomains", _signs_up_under, "", True),
        ("AllowedEmailDomains", _signs_up_under, "example.com", True),
        ("AllowedEmailDomains", _signs_up_under, "@example.com, sub.acme.local", True),
        ("AllowedEmailDomains", _signs_up_under, "b\u00fccher.example", True),
        ("AllowedEmailDomains", _signs_up_under, "ada@example.com", False),
        ("AllowedEmailDomains", _signs_up_under, "@@example.com", False),
        ("AllowedEmailDomains", _signs_up_under, ".example.com", False),
        ("AllowedEmailDomains", _signs_up_under, "*.example.com", False),
        ("AllowedEmailDomains", _signs_up_under, "example.com acme.example", False),
        ("AllowedEmailDomains", _signs_up_under, "https://example.com", False),
        ("DefaultKeyPrefix", _makes_keys_with, "", True),
        ("DefaultKeyPrefix", _makes_keys_with, "acme-ci_", True),
        ("DefaultKeyPrefix", _makes_keys_with, "larder_", True),
        ("DefaultKeyPrefix", _makes_keys_with, "x" * 32, True),
        ("DefaultKeyPrefix", _makes_keys_with, "x" * 33, False),
        ("DefaultKeyPrefix", _makes_keys_with, "vca_", False),
        ("DefaultKeyPrefix", _makes_keys_with, "vca_acme_", False),
        ("DefaultKeyPrefix", _makes_keys_with, "acme ci_", False),
    ],
)
def test_invalid_texts_stop_the_deployment(
    parameter: str, takes: Callable[[str], None], value: str, taken: bool, option: SetOption
) -> None:
    assert bool(re.fullmatch(PARAMETERS[parameter]["AllowedPattern"], value)) is taken
    (name,) = (field.name for field in fields(Settings) if camel_case(field.name) == parameter)
    option(name, value)
    with nullcontext() if taken else pytest.raises((SettingsError, InvalidValue)):
        takes(value)


def test_no_parameter_has_the_name_of_a_resource() -> None:
    assert not PARAMETERS.keys() & RESOURCES.keys()


def test_the_default_of_a_number_is_a_text() -> None:
    """CloudFormation can write a plain number in another way, such as 1.0E11, which no function reads."""
    assert {type(parameter["Default"]) for parameter in PARAMETERS.values()} == {str}


def test_every_parameter_has_a_description() -> None:
    assert not [name for name, parameter in PARAMETERS.items() if not parameter.get("Description")]


# ------------------------------------------------------------------------------------------ the API


CALLED_BY_CLIENTS = {
    ("PUT", "/v8/artifacts/{hash}"): "PutArtifact",
    ("GET", "/v8/artifacts/{hash}"): "FetchArtifact",
    ("HEAD", "/v8/artifacts/{hash}"): "ArtifactExists",
    ("POST", "/v8/artifacts"): "QueryArtifacts",
    ("POST", "/v8/artifacts/events"): "RecordEvents",
    ("GET", "/v8/artifacts/status"): "GetStatus",
    ("OPTIONS", "/v8/artifacts/{hash}"): "Preflight",
    ("OPTIONS", "/v8/artifacts"): "Preflight",
    ("OPTIONS", "/v8/artifacts/events"): "Preflight",
    ("OPTIONS", "/v8/artifacts/status"): "Preflight",
    ("GET", "/v1/artifacts"): "ListArtifacts",
    ("DELETE", "/v1/artifacts"): "DeleteArtifacts",
    ("GET", "/v1/artifacts/{hash}"): "InspectArtifact",
    ("DELETE", "/v1/artifacts/{hash}"): "DeleteArtifact",
    ("PUT", "/v1/artifacts/status"): "SetCachingStatus",
    ("GET", "/turborepo/token"): "ShowLogin",
    ("GET", "/turborepo/success"): "ShowLoginSuccess",
    ("GET", "/api/auth/sso"): "StartSsoLogin",
    ("GET", "/registration/verify"): "ExchangeLoginCode",
    ("POST", "/login/oauth/token"): "ExchangeIdToken",
    ("POST", "/login/oauth/token/revoke"): "RevokeCiToken",
    ("GET", "/v2/user"): "GetUser",
    ("GET", "/v5/user/tokens/current"): "GetCurrentToken",
    ("DELETE", "/v3/user/tokens/current"): "RevokeCurrentToken",
    ("POST", "/v1/teams"): "CreateTeam",
    ("GET", "/v2/teams"): "ListTeams",
    ("GET", "/v2/teams/{idOrSlug}"): "GetTeam",
    ("PATCH", "/v2/teams/{idOrSlug}"): "UpdateTeam",
    ("DELETE", "/v1/teams/{idOrSlug}"): "DeleteTeam",
    ("GET", "/v3/teams/{idOrSlug}/members"): "ListMembers",
    ("POST", "/v1/teams/{idOrSlug}/members"): "InviteMembers",
    ("POST", "/v2/teams/{idOrSlug}/members"): "InviteMembers",
    ("PATCH", "/v1/teams/{idOrSlug}/members/{uid}"): "ChangeMember",
    ("DELETE", "/v1/teams/{idOrSlug}/members/{uid}"): "RemoveMember",
    ("POST", "/v1/teams/join"): "JoinTeam",
    ("POST", "/v1/teams/{idOrSlug}/members/teams/join"): "JoinTeam",
}
"""Routes that turbo and other clients of Vercel's API call: they must not change."""


def test_routes_of_existing_clients_have_their_functions() -> None:
    assert CALLED_BY_CLIENTS.items() <= ROUTES.items()


def test_every_cache_request_can_be_preflighted() -> None:
    announced = {path for method, path in ROUTES if method == "OPTIONS"}
    assert announced - {CORS_PATH} == {path for _, path in ROUTES if path.startswith("/v8/")}


def test_preflight_requests_reach_a_function() -> None:
    # With a CorsConfiguration, the gateway would reply itself.
    (api,) = of_type("AWS::Serverless::HttpApi").values()
    assert "CorsConfiguration" not in api
    assert "HttpApi" not in TEMPLATE["Globals"]


@pytest.mark.parametrize("logical_id", HTTP_FUNCTIONS)
def test_routes_belong_to_the_api_and_use_the_default_payload_format(logical_id: str) -> None:
    for route in events(logical_id, "HttpApi").values():
        assert route.keys() == {"ApiId", "Method", "Path"}  # no PayloadFormatVersion: 2.0
        assert route["ApiId"] == {"Ref": "HttpApi"}


def test_pages_of_the_local_cloud_are_not_in_the_api() -> None:
    assert not [path for _, path in ROUTES if path.startswith("/_local")]
    assert [path for _, path in ROUTES if "+}" in path] == [CORS_PATH, "/console/{proxy+}", "/docs/{proxy+}"]


def throttled_by(option: str) -> dict[str, Any]:
    return {"ThrottlingRateLimit": {"Ref": f"{option}Rate"}, "ThrottlingBurstLimit": {"Ref": f"{option}Burst"}}


def test_routes_of_builds_and_servers_do_not_share_the_limits_of_people() -> None:
    api = RESOURCES["HttpApi"]["Properties"]
    assert api["DefaultRouteSettings"] == throttled_by("AccountThrottling")
    busy = {f"{method} {path}" for method, path in ROUTES if path.startswith("/v8/artifacts")}
    assert len(busy) == 10
    assert api["RouteSettings"] == {
        route: throttled_by("Throttling") for route in (*busy, "POST /api/auth/api-key/verify")
    }
    parameters = TEMPLATE["Parameters"]
    for people, builds in (("AccountThrottlingRate", "ThrottlingRate"), ("AccountThrottlingBurst", "ThrottlingBurst")):
        assert int(parameters[people]["Default"]) * 10 <= int(parameters[builds]["Default"])


def test_a_custom_domain_leads_to_the_same_api() -> None:
    for logical_id in ("ApiDomain", "ApiDomainMapping"):
        assert RESOURCES[logical_id]["Condition"] == "HasDomain"
    (domain,) = of_type("AWS::ApiGatewayV2::DomainName").values()
    assert domain["DomainNameConfigurations"][0]["SecurityPolicy"] == "TLS_1_2"
    (mapping,) = of_type("AWS::ApiGatewayV2::ApiMapping").values()
    assert mapping["ApiId"] == {"Ref": "HttpApi"}
    assert TEMPLATE["Outputs"]["DomainTarget"]["Condition"] == "HasDomain"


def test_the_apis_own_address_can_be_disabled_if_there_is_a_domain() -> None:
    api = RESOURCES["HttpApi"]["Properties"]
    assert api["DisableExecuteApiEndpoint"] == {"Fn::If": ["HasOnlyDomain", True, False]}
    assert PARAMETERS["DisableExecuteApiEndpoint"]["Default"] == "false"
    disabled = {"Fn::Equals": [{"Ref": "DisableExecuteApiEndpoint"}, "true"]}
    assert TEMPLATE["Conditions"]["HasOnlyDomain"] == disabled
    rule = TEMPLATE["Rules"]["DisabledEndpointNeedsDomain"]
    assert rule["RuleCondition"] == disabled
    (assertion,) = rule["Assertions"]
    assert assertion["Assert"] == TEMPLATE["Conditions"]["HasDomain"]
    condition, domain, _ = TEMPLATE["Outputs"]["ApiUrl"]["Value"]["Fn::If"]
    assert (condition, domain) == ("HasOnlyDomain", {"Fn::Sub": "https://${DomainName}"})


def test_ipv6_needs_a_domain() -> None:
    (domain,) = of_type("AWS::ApiGatewayV2::DomainName").values()
    kind = {"Fn::If": ["IsDualStack", "dualstack", {"Ref": "AWS::NoValue"}]}
    assert domain["DomainNameConfigurations"][0]["IpAddressType"] == kind
    assert PARAMETERS["DualStack"]["Default"] == "false"
    rule = TEMPLATE["Rules"]["DualStackNeedsDomain"]
    assert rule["RuleCondition"] == TEMPLATE["Conditions"]["IsDualStack"]
    (assertion,) = rule["Assertions"]
    assert assertion["Assert"] == TEMPLATE["Conditions"]["HasDomain"]


def test_mutual_tls_needs_a_domain_that_is_the_only_address() -> None:
    (domain,) = of_type("AWS::ApiGatewayV2::DomainName").values()
    condition, authentication, otherwise = domain["MutualTlsAuthentication"]["Fn::If"]
    assert (condition, otherwise) == ("HasTruststore", {"Ref": "AWS::NoValue"})
    version = ["HasTruststoreVersion", {"Ref": "TruststoreVersion"}, {"Ref": "AWS::NoValue"}]
    assert authentication == {"TruststoreUri": {"Ref": "TruststoreUri"}, "TruststoreVersion": {"Fn::If": version}}
    for condition, parameter in (("HasTruststore", "TruststoreUri"), ("HasTruststoreVersion", "TruststoreVersion")):
        assert PARAMETERS[parameter]["Default"] == ""
        assert TEMPLATE["Conditions"][condition] == {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, ""]}]}
    rule = TEMPLATE["Rules"]["MutualTlsNeedsDisabledEndpoint"]
    assert rule["RuleCondition"] == TEMPLATE["Conditions"]["HasTruststore"]
    (assertion,) = rule["Assertions"]
    assert assertion["Assert"] == TEMPLATE["Conditions"]["HasOnlyDomain"]


@pytest.mark.parametrize(
    ("uri", "taken"),
    [
        ("", True),
        ("s3://certificates.example.com/larder/truststore.pem", True),
        ("s3://certificates", False),
        ("https://certificates.s3.amazonaws.com/truststore.pem", False),
    ],
)
def test_a_truststore_is_an_object_in_s3(uri: str, taken: bool) -> None:
    assert bool(re.fullmatch(PARAMETERS["TruststoreUri"]["AllowedPattern"], uri)) is taken


@pytest.mark.parametrize("logical_id", HTTP_FUNCTIONS)
def test_every_function_with_a_route_can_refuse_direct_requests_and_networks(logical_id: str) -> None:
    variables = variables_of(logical_id)
    assert variables["LARDER_PROXY_SECRET_HASH"] == {"Ref": "ProxySecretHash"}
    assert variables["LARDER_ALLOWED_NETWORKS"] == {"Ref": "AllowedNetworks"}
    assert "LARDER_TRUSTED_PROXY_HOPS" in unpacked(variables_of(logical_id, resolved=True))


@pytest.mark.parametrize(
    ("domain", "taken"),
    [("", True), ("cache.example.com", True), ("https://cache.example.com", False), ("cache", False)],
)
def test_a_custom_domain_must_be_a_host_name(domain: str, taken: bool) -> None:
    assert bool(re.fullmatch(PARAMETERS["DomainName"]["AllowedPattern"], domain)) is taken


def test_the_access_log_is_json_without_paths_queries_and_headers() -> None:
    settings = RESOURCES["HttpApi"]["Properties"]["AccessLogSettings"]
    assert settings["DestinationArn"] == {"Fn::GetAtt": "AccessLogGroup.Arn"}
    entry = json.loads(settings["Format"])
    assert {"requestId", "route", "status", "latencyMs"} <= entry.keys()
    assert all(re.fullmatch(r"\$context\.[A-Za-z.]+", variable) for variable in entry.values())
    # A path can be a secret link, such as one to reset a password. A User-Agent can have quotes, which are not escaped.
    assert not {"$context.path", "$context.identity.userAgent"} & {*entry.values()}


# --------------------------------------------------------------------------------------------- logs


@pytest.mark.parametrize("logical_id", FUNCTIONS)
def test_a_function_logs_json_to_the_group_of_its_domain(logical_id: str) -> None:
    # Lambda drops lines below its level, and metrics and audit entries are of this one.
    levels = {"ApplicationLogLevel": "INFO", "SystemLogLevel": "WARN"}
    assert SHARED["LoggingConfig"] == {"LogFormat": "JSON", **levels}
    assert SHARED["Environment"]["Variables"]["URL_SUFFIX"] == {"Ref": "AWS::URLSuffix"}
    assert "POWERTOOLS_LOG_LEVEL" not in SHARED["Environment"]["Variables"]
    domain = FUNCTIONS[logical_id]["Handler"].partition(".")[0]
    group = f"{camel_case(domain)}LogGroup"
    assert FUNCTIONS[logical_id]["LoggingConfig"] == {"LogGroup": {"Ref": group}}
    assert group in of_type("AWS::Logs::LogGroup")


@pytest.mark.parametrize("logical_id", of_type("AWS::Logs::LogGroup"))
def test_logs_expire(logical_id: str) -> None:
    properties = RESOURCES[logical_id]["Properties"]
    assert properties["RetentionInDays"] == {"Ref": "LogRetentionDays"}


# -------------------------------------------------------------------------------------- permissions


@pytest.mark.parametrize("logical_id", FUNCTIONS)
def test_permissions_list_their_actions_and_resources(logical_id: str) -> None:
    for statement in statements(logical_id):
        assert statement.keys() - {"Condition"} == {"Effect", "Action", "Resource"}
        assert statement["Effect"] == "Allow"
    for action, target in grants(logical_id):
        if action == "ses:SendEmail":
            continue
        assert re.fullmatch(r"(dynamodb|lambda|s3|secretsmanager):[A-Za-z]+", action)
        assert re.fullmatch(
            r"[A-Za-z]+Table\.Arn"
            r"|\$\{[A-Za-z]+Table\.Arn\}/index/[a-z_]+"
            r"|ArtifactsBucket\.Arn"
            r"|(CommitUpload|RemoveArtifacts|SendAccountEmail)\.Arn"
            r"|(FetchArtifact|GetStatus|Preflight|PutArtifact|QueryArtifacts|RecordEvents|RecordRun)\.Arn"
            r"|SigningSecret"
            r"|arn:\S+-SweepArtifacts-\*"
            r"|\$\{ArtifactsBucket\.Arn\}/(artifacts|inputs)/\*",
            target,
        )


WILDCARDS = {
    "${ArtifactsBucket.Arn}/artifacts/*": "the artifacts, and no other objects in the bucket",
    "${ArtifactsBucket.Arn}/inputs/*": "the inputs of runs, and no other objects in the bucket",
    "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:${AWS::StackName}-SweepArtifacts-*": (
        "the sweep starts itself, and CloudFormation ends its name"
    ),
    "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:identity/*": "the condition limits it to the sender",
    "arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:configuration-set/*": "the sender can have one",
}
"""Resources with a wildcard, and the reason for each."""


def documents(value: Any) -> Iterator[dict[str, Any]]:
    """Every policy statement in a part of the template, wherever SAM or CloudFormation accepts one."""
    if isinstance(value, dict):
        if "Effect" in value:
            yield value
        for inner in value.values():
            yield from documents(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from documents(inner)


def test_every_wildcard_in_a_permission_has_a_reason() -> None:
    granted = [document for document in documents(RESOURCES) if document["Effect"] == "Allow"]
    assert len(granted) > 40
    for statement in granted:
        assert "*" not in json.dumps(statement["Action"])
        resources = by_default(TEMPLATE, statement["Resource"])
        for resource in resources if isinstance(resources, list) else [resources]:
            (name,) = resource.values()
            assert "*" not in name or name in WILDCARDS


def test_a_shared_policy_is_used_by_several_functions() -> None:
    for logical_id, policy in of_type("AWS::IAM::ManagedPolicy").items():
        users = [
            name
            for name, own in FUNCTIONS.items()
            if any({"Ref": logical_id} in (one, *one.get("Fn::If", [])) for one in own.get("Policies", []))
        ] + [role["Ref"] for role in policy.get("Roles", [])]
        assert len(users) > 1, f"{logical_id} belongs to {users}"


def test_a_role_has_room_for_two_policies_of_an_organization() -> None:
    """IAM attaches ten managed policies to a role. SAM adds two: to write logs, and traces."""
    attached = Counter(
        name
        for name, own in FUNCTIONS.items()
        for policy in own.get("Policies", [])
        if "Ref" in policy or "Fn::If" in policy
    )
    for policy in of_type("AWS::IAM::ManagedPolicy").values():
        attached.update(role["Ref"].removesuffix("Role") for role in policy.get("Roles", []))
    assert len(attached) > 80
    assert max(attached.values()) + 2 + 2 <= 10, attached.most_common(1)


def test_one_function_sends_mail_and_only_from_the_configured_sender() -> None:
    senders = {name for name in FUNCTIONS if "ses:SendEmail" in {one for one, _ in grants(name)}}
    assert senders == {"SendAccountEmail"}
    (statement,) = (one for one in statements("SendAccountEmail") if one["Action"] == "ses:SendEmail")
    assert statement["Condition"] == {"StringEquals": {"ses:FromAddress": {"Ref": "EmailSender"}}}


@pytest.mark.parametrize("logical_id", HTTP_FUNCTIONS)
def test_functions_that_request_mail_cannot_read_the_outbox(logical_id: str) -> None:
    assert not [target for _, target in grants(logical_id) if target.startswith("OutboxTable")]


@pytest.mark.parametrize("logical_id", FUNCTIONS)
def test_no_function_can_change_audit_entries(logical_id: str) -> None:
    on_audit = {action for action, target in grants(logical_id) if target.startswith("AuditTable")}
    assert on_audit <= {"dynamodb:PutItem", "dynamodb:Query", "dynamodb:BatchGetItem"}


@pytest.mark.parametrize("logical_id", FUNCTIONS)
def test_no_function_can_scan_a_table(logical_id: str) -> None:
    assert "dynamodb:Scan" not in {action for action, _ in grants(logical_id)}


FOR_ANYBODY = {
    "AnswerCorsPreflight", "AnswerUnknown", "ConfirmNewEmail", "ExchangeIdToken", "ExchangeLoginCode",
    "FollowResetLink", "GetOk", "ListSignInProviders", "PreviewInvitation", "RequestPasswordReset", "ResetPassword",
    "RevokeCiToken", "ShowConsole", "ShowDocs", "ShowHome", "ShowInvitation", "ShowLogin", "ShowLoginSuccess",
    "ShowOpenapi", "ShowPasswordReset", "ShowSignIn", "ShowVerified", "SignIn", "SignUp", "StartProviderSignIn",
    "StartSsoLogin", "VerifyApiKey", "VerifyEmail",
}  # fmt: skip
"""Functions without authentication."""


COUNTED_BY_USER = {"CreateTeam", "InviteMembers", "UpdateTeam"}
"""Functions with rate limits per signed-in user."""


CORS_PATH = "/api/auth/{proxy+}"
"""Paths of CORS preflights."""

UNCOUNTED = {f"/api/auth{path}" for path, limit in BY_PATH.items() if limit is None}
"""Paths without a rate limit per client address."""

COUNTED_ELSEWHERE = {"/login/oauth/token", "/registration/verify", "/v1/teams/invitation"}
"""Paths outside `/api/auth` with a rate limit per client address."""


@pytest.mark.parametrize("logical_id", HTTP_FUNCTIONS)
def test_a_function_with_a_route_can_authenticate_its_caller(logical_id: str) -> None:
    (path, *_) = (route["Path"] for route in events(logical_id, "HttpApi").values())
    named = ["VerifyToken"]
    if path.startswith(
        ("/v8/", "/v1/artifacts", "/v1/runs", "/v1/tasks", "/v1/causes", "/v1/usage", "/v1/audit", "/v1/storage")
    ):
        named = ["AuthenticateCaller"]
    if path.startswith("/api/auth/"):
        named = ["FindSession", "FindSessionInPerson"]
    policies_of_function = FUNCTIONS[logical_id].get("Policies") or [{}]
    assert (policies_of_function[0].get("Ref") in named) is (logical_id not in FOR_ANYBODY)


@pytest.mark.parametrize("logical_id", ["AnswerUnknown", *(name for name in HTTP_FUNCTIONS if name.startswith("Show"))])
def test_pages_are_the_same_for_everyone_and_can_read_no_data(logical_id: str) -> None:
    assert "Policies" not in FUNCTIONS[logical_id]


def test_one_function_handles_all_unknown_routes() -> None:
    assert [route for route in ROUTES if "$default" in route] == [("ANY", "$default")]
    assert ROUTES["ANY", "$default"] == "AnswerUnknown"


@pytest.mark.parametrize("logical_id", FUNCTIONS)
def test_functions_of_rate_limited_paths_can_count_requests(logical_id: str) -> None:
    paths = [route["Path"] for route in events(logical_id, "HttpApi").values()]
    counted = [path for path in paths if path.startswith("/api/auth/") and path not in UNCOUNTED]
    # A preflight costs little, and if it is refused, the browser does not send the request.
    counted = [path for path in counted if path != CORS_PATH]
    counted += COUNTED_ELSEWHERE.intersection(paths)
    counts = bool(counted) or logical_id in COUNTED_BY_USER
    policies = FUNCTIONS[logical_id].get("Policies", [])
    assert ({"Ref": "GuardRequests"} in policies) is counts


@pytest.mark.parametrize("holder", [*FUNCTIONS, *of_type("AWS::IAM::ManagedPolicy")])
def test_no_permission_is_granted_twice(holder: str) -> None:
    """A test cannot show whether a duplicate is needed, because removing it changes nothing."""
    # A conditional statement may repeat one that is always there.
    having = [policies(name, keys_act_as_sessions=False) for name in FUNCTIONS if holder in policies(name)]
    needed = {
        grant for held in having for grant, times in Counter(granted(chain(*held.values()))).items() if times == 1
    }
    assert {grant for held in having for grant in granted(held[holder])} <= needed


@pytest.mark.parametrize("logical_id", BACKGROUND_FUNCTIONS)
def test_a_function_without_a_route_cannot_read_api_keys(logical_id: str) -> None:
    policies = FUNCTIONS[logical_id]["Policies"]
    assert {"Ref": "AuthenticateCaller"} not in policies
    assert {"Ref": "VerifyToken"} not in policies


@pytest.mark.parametrize("logical_id", FUNCTIONS)
def test_functions_that_read_objects_can_detect_a_missing_one(logical_id: str) -> None:
    actions = {action for action, _ in grants(logical_id)}
    assert ("s3:GetObject" in actions) == ("s3:ListBucket" in actions)


@pytest.mark.parametrize(("logical_id", "action"), [("Preflight", "s3:PutObject"), ("FetchArtifact", "s3:GetObject")])
def test_functions_that_presign_urls_have_the_permission_for_the_request(logical_id: str, action: str) -> None:
    assert (action, "${ArtifactsBucket.Arn}/artifacts/*") in grants(logical_id)


# ---------------------------------------------------------------------------------- a key of your own

OWN_KEY = {"Fn::If": ["HasKmsKey", {"Ref": "KmsKeyArn"}, {"Ref": "AWS::NoValue"}]}


@pytest.mark.parametrize(
    ("arn", "taken"),
    [
        ("", True),
        ("arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab", True),
        ("arn:aws-cn:kms:cn-north-1:123456789012:key/mrk-1234abcd12ab34cd56ef1234567890ab", True),
        ("arn:aws:kms:eu-central-1:123456789012:alias/larder", False),
        ("1234abcd-12ab-34cd-56ef-1234567890ab", False),
    ],
)
def test_a_kms_key_is_named_by_its_arn(arn: str, taken: bool) -> None:
    assert bool(re.fullmatch(PARAMETERS["KmsKeyArn"]["AllowedPattern"], arn)) is taken


def test_an_own_key_encrypts_logs_and_the_signing_secret_too_and_is_off_by_default() -> None:
    assert PARAMETERS["KmsKeyArn"]["Default"] == ""
    assert TEMPLATE["Conditions"]["HasKmsKey"] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "KmsKeyArn"}, ""]}]}
    encrypted = of_type("AWS::Logs::LogGroup") | of_type("AWS::SecretsManager::Secret")
    domains = {function["Handler"].partition(".")[0] for function in FUNCTIONS.values()}
    assert len(encrypted) == len(domains) + len(["the access log", "the secret"])
    assert [name for name, own in encrypted.items() if own["KmsKeyId"] != OWN_KEY] == []


@pytest.mark.parametrize(
    ("policy", "key_action", "services", "actions"),
    [
        (
            "DecryptWithOwnKey",
            "kms:Decrypt",
            ["dynamodb", "s3", "secretsmanager"],
            ("dynamodb:", "s3:", "secretsmanager:"),
        ),
        ("EncryptUploadsWithOwnKey", "kms:GenerateDataKey", ["s3"], ("s3:PutObject",)),
    ],
)
def test_functions_use_an_own_key_only_through_the_services_that_they_call(
    policy: str, key_action: str, services: list[str], actions: tuple[str, ...]
) -> None:
    assert RESOURCES[policy]["Condition"] == "HasKmsKey"
    own = RESOURCES[policy]["Properties"]
    (statement,) = own["PolicyDocument"]["Statement"]
    assert (statement["Action"], statement["Resource"]) == (key_action, {"Ref": "KmsKeyArn"})
    ((operator, tests),) = statement["Condition"].items()
    through = tests["kms:ViaService"]
    through = through if isinstance(through, list) else [through]
    assert operator == "StringLike"
    assert through == [{"Fn::Sub": f"{service}.${{AWS::Region}}.*"} for service in services]
    callers = [name for name in FUNCTIONS if any(one.startswith(actions) for one, _ in grants(name))]
    assert callers
    assert [role["Ref"] for role in own["Roles"]] == [f"{name}Role" for name in sorted(callers)]


# -------------------------------------------------------------------------------------- the bucket

BUCKET = {"Fn::If": ["OwnsBucket", {"Ref": "ArtifactsBucket"}, {"Ref": "ExistingBucket"}]}
EDGE_URL = {
    "Fn::If": [
        "HasEdgeDomain",
        {"Fn::Sub": "https://${EdgeDomainName}"},
        {"Fn::Sub": "https://${EdgeDistribution.DomainName}"},
    ]
}


def bucket() -> dict[str, Any]:
    return of_type("AWS::S3::Bucket")["ArtifactsBucket"]


def test_there_is_one_bucket_and_the_stack_names_it() -> None:
    assert list(of_type("AWS::S3::Bucket")) == ["ArtifactsBucket"]
    assert "BucketName" not in bucket()


def test_the_bucket_is_private_and_encrypted() -> None:
    assert bucket()["PublicAccessBlockConfiguration"] == {
        "BlockPublicAcls": True,
        "BlockPublicPolicy": True,
        "IgnorePublicAcls": True,
        "RestrictPublicBuckets": True,
    }
    assert bucket()["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    (rule,) = bucket()["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule == {
        "ServerSideEncryptionByDefault": {
            "SSEAlgorithm": {"Fn::If": ["HasKmsKey", "aws:kms", "AES256"]},
            "KMSMasterKeyID": OWN_KEY,
        },
        "BucketKeyEnabled": {"Fn::If": ["HasKmsKey", True, {"Ref": "AWS::NoValue"}]},
    }


def test_the_bucket_accepts_only_tls() -> None:
    (policy,) = of_type("AWS::S3::BucketPolicy").values()
    assert policy["Bucket"] == {"Ref": "ArtifactsBucket"}
    refusals = by_default(TEMPLATE, policy["PolicyDocument"]["Statement"])
    assert all(refusal["Effect"] == "Deny" and refusal["Principal"] == "*" for refusal in refusals)
    assert all(
        refusal["Resource"] == [{"Fn::GetAtt": "ArtifactsBucket.Arn"}, {"Fn::Sub": "${ArtifactsBucket.Arn}/*"}]
        for refusal in refusals
    )
    assert {"Bool": {"aws:SecureTransport": "false"}} in [refusal["Condition"] for refusal in refusals]
    assert {"NumericLessThan": {"s3:TlsVersion": "1.2"}} in [refusal["Condition"] for refusal in refusals]


def test_the_bucket_keeps_versions() -> None:
    assert bucket()["VersioningConfiguration"] == {"Status": "Enabled"}


def test_the_bucket_accepts_only_signatures_of_presigned_urls_that_larder_makes() -> None:
    (policy,) = of_type("AWS::S3::BucketPolicy").values()
    (refusal,) = (
        one for one in by_default(TEMPLATE, policy["PolicyDocument"]["Statement"]) if one["Sid"] == "SignedWithinAnHour"
    )
    (allowed_ms,) = refusal["Condition"]["NumericGreaterThan"].values()
    longest_s = max(TEMPLATE["Parameters"][name]["MaxValue"] for name in ("UploadUrlSeconds", "DownloadUrlSeconds"))
    assert refusal["Condition"] == {"NumericGreaterThan": {"s3:signatureAge": allowed_ms}}
    assert int(allowed_ms) == longest_s * 1000


# ------------------------------------------------------------------------------------ the networks


@pytest.mark.parametrize(
    ("signed_in", "context", "refused"),
    [
        ("REST-QUERY-STRING", {"aws:SourceIp": ["203.0.113.5"]}, False),
        ("REST-QUERY-STRING", {"aws:SourceIp": ["203.0.114.5"]}, True),
        ("REST-QUERY-STRING", {"aws:SourceIp": ["2001:db8:1::5"]}, False),
        ("REST-QUERY-STRING", {"aws:SourceIp": ["2001:db9::5"]}, True),
        # Through a VPC endpoint, S3 sees no public address.
        ("REST-QUERY-STRING", {"aws:VpcSourceIp": ["10.1.2.3"]}, False),
        ("REST-QUERY-STRING", {"aws:VpcSourceIp": ["10.2.2.3"]}, True),
        ("REST-QUERY-STRING", {}, True),
        # The functions, in a VPC or not, and CloudFront.
        ("REST-HEADER", {"aws:SourceIp": ["198.51.100.7"]}, False),
        ("REST-HEADER", {"aws:VpcSourceIp": ["172.31.0.9"]}, False),
        ("REST-HEADER", {}, False),
    ],
)
def test_the_bucket_refuses_presigned_urls_alone_outside_of_the_networks(
    signed_in: str, context: dict[str, list[str]], refused: bool
) -> None:
    (policy,) = of_type("AWS::S3::BucketPolicy").values()
    (statement,) = (
        one["Fn::If"][1]
        for one in policy["PolicyDocument"]["Statement"]
        if "Fn::If" in one and one["Fn::If"][0] == "HasAllowedNetworks"
    )
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
    assert statement["Resource"] == [{"Fn::GetAtt": "ArtifactsBucket.Arn"}, {"Fn::Sub": "${ArtifactsBucket.Arn}/*"}]
    condition = statement["Condition"]
    listed = {"Fn::Split": [",", {"Ref": "AllowedNetworks"}]}
    assert condition["NotIpAddress"] == dict.fromkeys(("aws:SourceIp", "aws:VpcSourceIp"), listed)
    networks = ["203.0.113.0/24", "2001:db8::/32", "10.1.0.0/16"]
    evaluated = {**condition, "NotIpAddress": dict.fromkeys(condition["NotIpAddress"], networks)}
    assert is_met(evaluated, {"s3:authType": [signed_in], **context}) is refused


NETWORK = PARAMETERS["AllowedNetworks"]["AllowedPattern"]


@pytest.mark.parametrize(
    ("networks", "taken"),
    [
        ("", True),
        ("0.0.0.0/0", True),
        ("203.0.113.0/24,198.51.100.7/32,2001:db8::/32,::1/128,::/0,1:2:3:4:5:6:7::/112", True),
        ("203.0.113.5", False),
        ("203.0.113.0/24,", False),
        (",203.0.113.0/24", False),
        ("203.0.113.0/24, 198.51.100.0/24", False),
        ("203.0.113.0/33", False),
        ("203.0.256.0/24", False),
        ("203.0.113/24", False),
        ("2001:db8::/129", False),
        ("2001::db8::/32", False),
        ("1:2:3:4:5:6:7/64", False),
        ("1:2:3:4:5:6:7:8::/64", False),
        ("12345::/16", False),
        ("vpc-0123456789abcdef0", False),
    ],
)
def test_networks_are_in_cidr_notation(networks: str, taken: bool) -> None:
    assert bool(re.fullmatch(NETWORK, networks)) is taken


@given(st.ip_addresses(), st.integers(0, 140), st.text("0123456789abcdef:./", max_size=12), st.integers(0, 20))
def test_the_form_of_networks_is_that_of_python(
    address: IPv4Address | IPv6Address, bits: int, more: str, at: int
) -> None:
    written = f"{address}/{bits}"
    for text in (written, written[:at] + more + written[at:], more):
        try:
            is_network = bool(ip_network(text, strict=False)) and re.search(r"/(0|[1-9][0-9]*)$", text) is not None
        except ValueError:
            is_network = False
        # Python reads addresses of IPv6 that end in one of IPv4, too.
        if not (":" in text and "." in text):
            assert bool(re.fullmatch(NETWORK, text)) is (is_network or not text)


def test_by_default_functions_are_in_no_vpc_and_with_subnets_and_groups_in_one() -> None:
    condition, config, otherwise = SHARED["VpcConfig"]["Fn::If"]
    assert (condition, otherwise) == ("InVpc", {"Ref": "AWS::NoValue"})
    assert config == {name: {"Fn::Split": [",", {"Ref": name}]} for name in ("SubnetIds", "SecurityGroupIds")}
    assert all("VpcConfig" not in own for own in FUNCTIONS.values())
    assert not holds(TEMPLATE, "InVpc")
    assert not holds(TEMPLATE, "HasAllowedNetworks")


@pytest.mark.parametrize(("parameter", "prefix"), [("SubnetIds", "subnet-"), ("SecurityGroupIds", "sg-")])
def test_ids_of_a_vpc_are_separated_by_commas(parameter: str, prefix: str) -> None:
    pattern = PARAMETERS[parameter]["AllowedPattern"]
    one, other = f"{prefix}0123abcd", f"{prefix}0123456789abcdef0"
    for taken in ("", one, other, f"{one},{other}"):
        assert re.fullmatch(pattern, taken)
    for refused in (prefix, "vpc-0123abcd", f"{one}, {other}", f"{one},", f"{one}{other}"):
        assert not re.fullmatch(pattern, refused)


ENDPOINTS = {"dynamodb": "dynamodb", "s3": "s3", "secretsmanager": "secretsmanager", "lambda": "lambda", "ses": "email"}
"""The endpoint of a VPC for each service that functions call themselves."""


def test_the_documentation_names_the_endpoints_that_functions_in_a_vpc_need() -> None:
    called = {action.partition(":")[0] for name in FUNCTIONS for action, _ in grants(name)}
    # Not KMS, which these services call. Lambda itself writes logs and traces, and sends failed runs to queues.
    assert called == ENDPOINTS.keys()
    text = (ROOT / "docs" / "organization.md").read_text()
    assert set(re.findall(r"`com\.amazonaws\.REGION\.(\w+)`", text)) == set(ENDPOINTS.values())


# ---------------------------------------------------------------------------------------- the edge

OF_THE_EDGE = {"EdgeAccess", "EdgeDistribution", "EdgeKeys", "EdgeRequest", "EdgeResponse", "ReadEdgeKey"}


def distribution() -> dict[str, Any]:
    found: dict[str, Any] = RESOURCES["EdgeDistribution"]["Properties"]["DistributionConfig"]
    return found


def test_without_the_option_nothing_of_the_edge_is_deployed() -> None:
    conditional = {name for name, one in RESOURCES.items() if one.get("Condition") == "HasEdge"}
    assert conditional == OF_THE_EDGE
    assert TEMPLATE["Parameters"]["Edge"]["Default"] == "false"
    named = {name for name, one in RESOURCES.items() if one["Type"].startswith("AWS::CloudFront::")}
    assert named == OF_THE_EDGE - {"ReadEdgeKey"}


def test_only_this_distribution_reads_and_writes_artifacts_and_cannot_list_or_delete() -> None:
    (policy,) = of_type("AWS::S3::BucketPolicy").values()
    statements = [one["Fn::If"] for one in policy["PolicyDocument"]["Statement"] if "Fn::If" in one]
    (allowed,) = (statement for condition, statement, _ in statements if condition == "HasEdge")
    assert allowed["Principal"] == {"Service": "cloudfront.amazonaws.com"}
    assert allowed["Action"] == ["s3:GetObject", "s3:GetObjectVersion", "s3:PutObject"]
    assert allowed["Resource"] == {"Fn::Sub": "${ArtifactsBucket.Arn}/artifacts/*"}
    arn = "arn:${AWS::Partition}:cloudfront::${AWS::AccountId}:distribution/${EdgeDistribution}"
    assert allowed["Condition"] == {
        "StringEquals": {"aws:SourceArn": {"Fn::Sub": arn}, "aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    }


def test_each_request_of_the_edge_is_checked_and_no_reply_is_kept() -> None:
    behavior = distribution()["DefaultCacheBehavior"]
    assert "CacheBehaviors" not in distribution()
    assert {function_association["EventType"] for function_association in behavior["FunctionAssociations"]} == {
        "viewer-request",
        "viewer-response",
    }
    assert behavior["ViewerProtocolPolicy"] == "https-only"
    assert behavior["Compress"] is False
    # AWS's own policies: CachingDisabled and AllViewerExceptHostHeader.
    assert behavior["CachePolicyId"] == "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
    assert behavior["OriginRequestPolicyId"] == "b689b0a8-53d0-40ab-baf2-68738e2966ac"
    kept = {
        response["ErrorCode"]: response["ErrorCachingMinTTL"] for response in distribution()["CustomErrorResponses"]
    }
    assert kept == dict.fromkeys((403, 404, 500, 502, 503, 504), 0)


def test_cloudfront_signs_every_request_to_the_bucket() -> None:
    access = RESOURCES["EdgeAccess"]["Properties"]["OriginAccessControlConfig"]
    assert (access["SigningBehavior"], access["SigningProtocol"]) == ("always", "sigv4")
    (origin,) = distribution()["Origins"]
    assert origin["OriginAccessControlId"] == {"Fn::GetAtt": "EdgeAccess.Id"}
    assert origin["S3OriginConfig"]["OriginAccessIdentity"] == ""


def test_only_functions_that_sign_addresses_read_the_key_of_the_edge() -> None:
    readers = {
        name
        for name, own in FUNCTIONS.items()
        if any({"Ref": "ReadEdgeKey"} in policy.get("Fn::If", []) for policy in own.get("Policies", []))
    }
    assert readers == {"FetchArtifact", "Preflight"}


def test_tables_with_indexes_are_created_one_after_another() -> None:
    """CloudFormation's page of AWS::DynamoDB::Table demands it."""
    with_indexes = [name for name, table in TABLES.items() if "GlobalSecondaryIndexes" in table]
    assert len(with_indexes) > 2
    for before, name in pairwise(with_indexes):
        assert RESOURCES[name]["DependsOn"] == before


NAMES = {
    ("AWS::ApiGatewayV2::Api", "title"): 128,
    ("AWS::Budgets::Budget", "BudgetName"): 100,
    ("AWS::CloudFront::Distribution", "Comment"): 128,
    ("AWS::CloudFront::Function", "Name"): 64,
    ("AWS::CloudFront::KeyValueStore", "Name"): 64,
    ("AWS::CloudFront::OriginAccessControl", "Name"): 64,
    ("AWS::CloudWatch::Alarm", "Namespace"): 255,
    ("AWS::CloudWatch::Dashboard", "DashboardName"): 255,
    ("AWS::Lambda::Function", "FunctionName"): 64,
    ("AWS::Logs::LogGroup", "LogGroupName"): 512,
    ("AWS::Logs::MetricFilter", "MetricNamespace"): 255,
    ("AWS::Serverless::Function", "FunctionName"): 64,
    ("AWS::Serverless::HttpApi", "Name"): 128,
}
"""The most characters of each name that follows from the stack's."""
NO_NAMES = {"DashboardBody", "LARDER_OPTIONS", "Resource"}
"""Properties with such names in their text."""


def names(value: Any, property_name: str = "") -> Iterator[tuple[str, Any]]:
    """Each property with a text that follows from the stack's name or from NamePrefix, in a part of the template."""
    if isinstance(value, list):
        for one in value:
            yield from names(one, property_name)
    elif isinstance(value, dict) and (value.keys() == {"Fn::Sub"} or value.keys() == {"Ref"}):
        if "AWS::StackName" in str(value) or "NamePrefix" in str(value):
            yield property_name, value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from names(one, property_name if name.startswith("Fn::") else name)


def with_name_prefix(value: Any) -> Any:
    """`value` as in a stack with a NamePrefix."""
    if isinstance(value, list):
        return [with_name_prefix(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("Fn::If", [""])[0] == "HasNamePrefix":
        return value["Fn::If"][1]
    return {name: with_name_prefix(one) for name, one in value.items()}


@pytest.mark.parametrize(("stack", "prefixed"), [("s" * 24, False), (LONGEST_NAME_WITH_PREFIX, True)])
@pytest.mark.parametrize("logical_id", RESOURCES)
def test_every_name_fits_its_type(logical_id: str, stack: str, prefixed: bool) -> None:
    """AWS's own tools name a stack: StackSets with 46 characters and the set's name."""
    resource = RESOURCES[logical_id]
    properties = with_name_prefix(resource["Properties"]) if prefixed else by_default(TEMPLATE, resource["Properties"])
    values = {"AWS::StackName": stack, "NamePrefix": "p" * 24, "AWS::Region": "ap-southeast-2"}
    for name, value in names(properties):
        if name not in NO_NAMES:
            named = resolve(value, values.__getitem__, lambda *_: "")
            assert len(named) <= NAMES[resource["Type"], name], named


def test_the_name_of_the_sweep_is_the_one_that_it_may_start() -> None:
    sweep = RESOURCES["SweepArtifacts"]["Properties"]
    ((_, name),) = (one for one in names(with_name_prefix(sweep)) if one[0] == "FunctionName")
    allowed = [value["Fn::Sub"] for of, value in names(with_name_prefix(sweep["Policies"])) if of == "Resource"]
    assert [one.rpartition(":function:")[2] for one in allowed] == [name["Fn::Sub"]]


# ------------------------------------------------------------------------------ an existing bucket


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("", True),
        ("acme-build-cache", True),
        ("b" * 63, True),
        ("b" * 64, False),
        ("acme.build.cache", False),
        ("arn:aws:s3:::acme-build-cache", False),
        ("Acme", False),
    ],
)
def test_an_existing_bucket_is_named_without_dots(name: str, taken: bool) -> None:
    """The certificate of S3 is valid for one part of a host name."""
    assert bool(re.fullmatch(PARAMETERS["ExistingBucket"]["AllowedPattern"], name)) is taken


def test_the_stack_creates_no_bucket_if_it_gets_one_and_adds_no_policy_to_that() -> None:
    assert PARAMETERS["ExistingBucket"]["Default"] == ""
    owns = {"Fn::Equals": [{"Ref": "ExistingBucket"}, ""]}
    assert TEMPLATE["Conditions"]["OwnsBucket"] == owns
    for logical_id in ("ArtifactsBucket", "ArtifactsBucketPolicy"):
        assert RESOURCES[logical_id]["Condition"] == "OwnsBucket"


def test_whatever_names_the_bucket_names_the_existing_one_in_place_of_it() -> None:
    def choices(value: Any) -> Iterator[tuple[Any, Any]]:
        """Both branches of each choice between the buckets, and what names one of them without a choice."""
        if isinstance(value, dict) and value.get("Fn::If", [None])[0] == "OwnsBucket":
            _, own, existing = value["Fn::If"]
            yield own, existing
        elif isinstance(value, dict | list):
            for one in value.values() if isinstance(value, dict) else value:
                yield from choices(one)
        elif isinstance(value, str) and re.search(r"\b(ArtifactsBucket|ExistingBucket)\b", value):
            yield value, None

    own_alone = {"ArtifactsBucket", "ArtifactsBucketPolicy"}
    parts = [one for logical_id, one in RESOURCES.items() if logical_id not in own_alone]
    arn = "arn:${AWS::Partition}:s3:::${ExistingBucket}"
    found = {json.dumps(choice) for choice in choices([*parts, TEMPLATE["Outputs"]])}
    assert found == {
        json.dumps(one)
        for one in (
            ({"Ref": "ArtifactsBucket"}, {"Ref": "ExistingBucket"}),
            ({"Fn::GetAtt": "ArtifactsBucket.Arn"}, {"Fn::Sub": arn}),
            ({"Fn::Sub": "${ArtifactsBucket.Arn}/artifacts/*"}, {"Fn::Sub": f"{arn}/artifacts/*"}),
            ({"Fn::Sub": "${ArtifactsBucket.Arn}/inputs/*"}, {"Fn::Sub": f"{arn}/inputs/*"}),
            (
                {"Fn::GetAtt": "ArtifactsBucket.RegionalDomainName"},
                {"Fn::Sub": "${ExistingBucket}.s3.${AWS::Region}.${AWS::URLSuffix}"},
            ),
        )
    }


def test_the_function_that_sends_mail_can_write_nothing_but_tokens() -> None:
    def may_put(table: str, key: str) -> bool:
        grant = ("dynamodb:PutItem", f"{table}.Arn")
        return allows("SendAccountEmail", grant, {"dynamodb:LeadingKeys": [key]})

    assert may_put("IdentityTable", "reset#5e1f")
    assert may_put("TeamsTable", "invitation#5e1f")
    for key in ("user#usr_1", "email#ada@example.com", "invitation#5e1f", "reset", ""):
        assert not may_put("IdentityTable", key)
    for key in ("team_1", "slug#acme", "reset#5e1f", ""):
        assert not may_put("TeamsTable", key)


def test_only_functions_that_change_keys_can_while_keys_do_not_act_as_sessions() -> None:
    def can_change_keys(name: str, *, keys_act_as_sessions: bool) -> bool:
        held = statements(name, keys_act_as_sessions=keys_act_as_sessions)
        return ("dynamodb:UpdateItem", "ApiKeysTable.Arn") in granted(held)

    def having(*, keys_act_as_sessions: bool) -> set[str]:
        return {
            name
            for name in FUNCTIONS
            if "FindSession" in policies(name) and can_change_keys(name, keys_act_as_sessions=keys_act_as_sessions)
        }

    key_endpoints = {name for name in FUNCTIONS if "TidyApiKeys" in policies(name)}
    key_endpoints.add("GrantLogin")
    assert having(keys_act_as_sessions=False) == key_endpoints
    assert len(having(keys_act_as_sessions=True)) > 2 * len(key_endpoints)


def test_functions_list_no_other_prefix_of_the_bucket() -> None:
    """Without a prefix they can, because S3 may check for a missing object without one."""
    listing = set()
    for name in FUNCTIONS:
        for action in ("s3:ListBucket", "s3:ListBucketVersions"):
            grant = (action, "ArtifactsBucket.Arn")
            assert not allows(name, grant, {"s3:prefix": [""]})
            assert not allows(name, grant, {"s3:prefix": ["logs/"]})
            for prefix in ("artifacts/", "inputs/"):
                if allows(name, grant, {"s3:prefix": [prefix]}):
                    listing.add((name, prefix))
    for name in FUNCTIONS:
        if "SettlePendingUpload" in policies(name):
            assert (name, "artifacts/") in listing
    assert {prefix for _, prefix in listing} == {"artifacts/", "inputs/"}


def test_the_bucket_expires_artifacts_and_aborts_unfinished_uploads() -> None:
    rules = {rule["Id"]: rule for rule in bucket()["LifecycleConfiguration"]["Rules"]}
    assert all(rule["Status"] == "Enabled" for rule in rules.values())
    assert rules["expire-artifacts"]["Prefix"] == "artifacts/"
    retention = {"Ref": "RetentionDays"}
    assert rules["expire-artifacts"]["ExpirationInDays"] == retention
    # Shorter, it could delete a published version while another upload to its URL is the current one.
    noncurrent = rules["expire-artifacts"]["NoncurrentVersionExpiration"]
    assert noncurrent == {"NoncurrentDays": retention}
    assert rules["expire-inputs"]["Prefix"] == "inputs/"
    assert rules["expire-inputs"]["ExpirationInDays"] == {"Ref": "RunRetentionDays"}
    assert rules["expire-inputs"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 1}
    assert rules["remove-delete-markers"]["ExpiredObjectDeleteMarker"] is True
    abort = rules["abort-unfinished-uploads"]
    assert abort["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert "Prefix" not in abort


# ------------------------------------------------------------------------------------------ tables


@pytest.mark.parametrize("logical_id", TABLES)
def test_a_table_is_on_demand_capped_and_encrypted(logical_id: str) -> None:
    table = TABLES[logical_id]
    assert "TableName" not in table
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["OnDemandThroughput"] == {
        "MaxReadRequestUnits": {"Ref": "TableReadUnits"},
        "MaxWriteRequestUnits": {"Ref": "TableWriteUnits"},
    }
    # The writes of an index follow from those of its table. A limit of its own could refuse writes to the table.
    for index in table.get("GlobalSecondaryIndexes", []):
        assert index["OnDemandThroughput"] == {"MaxReadRequestUnits": {"Ref": "TableReadUnits"}}
    own_key = {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": {"Ref": "KmsKeyArn"}}
    assert table["SSESpecification"] == {"Fn::If": ["HasKmsKey", own_key, {"SSEEnabled": False}]}


def test_data_that_cannot_be_restored_is_protected() -> None:
    protection, kept = {"Ref": "ProtectData"}, ["ApiKeysTable", "AuditTable", "IdentityTable", "TeamsTable"]
    recovery = {"PointInTimeRecoveryEnabled": protection}
    recovered = [name for name, table in TABLES.items() if table.get("PointInTimeRecoverySpecification") == recovery]
    protected = [name for name, table in TABLES.items() if table.get("DeletionProtectionEnabled") == protection]
    assert (sorted(recovered), sorted(protected)) == (kept, [*kept, "UsageTable"])
    assert PARAMETERS["ProtectData"]["Default"] == "true"


@pytest.mark.parametrize("logical_id", [*TABLES, "ArtifactsBucket", "SigningSecret"])
def test_data_is_retained_when_its_resource_is_replaced(logical_id: str) -> None:
    assert RESOURCES[logical_id]["UpdateReplacePolicy"] == "Retain"


@pytest.mark.parametrize(
    ("logical_id", "ttl"),
    [
        ("IdentityTable", "expires_at"),
        ("ApiKeysTable", None),
        ("TeamsTable", "expires_at"),
        ("ArtifactsTable", "expires_at"),
        ("UsageTable", "expires_at"),
        ("AuditTable", "expires_at"),
        ("OutboxTable", "expires_at"),
        ("RateLimitsTable", "expires_at"),
    ],
)
def test_dynamodb_expires_only_items_that_need_no_code(logical_id: str, ttl: str | None) -> None:
    specification = TABLES[logical_id].get("TimeToLiveSpecification")
    assert specification == (ttl and {"AttributeName": ttl, "Enabled": True})


# ------------------------------------------------------------------------------- background work


def test_an_object_created_event_invokes_commit_upload() -> None:
    notification = bucket()["NotificationConfiguration"]
    assert notification == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    (rule,) = events("CommitUpload", "EventBridgeRule").values()
    assert rule["Pattern"] == {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {"bucket": {"name": [BUCKET]}, "object": {"key": [{"wildcard": "artifacts/*/*/*.*"}]}},
    }


@pytest.mark.parametrize("scope", [None, "c0123abc"])
@pytest.mark.parametrize(("names", "is_direct"), [("", False), (".key_1.user-1", True), (".key_1.team_1-7", True)])
def test_only_direct_uploads_invoke_commit_upload(scope: str | None, names: str, is_direct: bool) -> None:
    (rule,) = events("CommitUpload", "EventBridgeRule").values()
    upload = Upload(owner="team_a", hash=ArtifactHash("a" * 16), id="0" * 28 + names, scope=scope)
    assert parse_object_key(upload.object_key) == upload
    assert matches(rule["Pattern"]["detail"]["object"], {"key": upload.object_key}) is is_direct


@pytest.mark.parametrize("logical_id", ["SweepArtifacts", "SweepExpiredKeys", "SweepDeletedUsers", "SweepDeletedTeams"])
def test_clean_up_functions_run_every_hour(logical_id: str) -> None:
    (schedule,) = events(logical_id, "Schedule").values()
    assert schedule["Schedule"] == "rate(1 hour)"


@pytest.mark.parametrize("logical_id", sorted({*BACKGROUND_FUNCTIONS} - {"KeepWarm"}))
def test_failed_background_events_are_kept(logical_id: str) -> None:
    invocations = FUNCTIONS[logical_id]["EventInvokeConfig"]
    assert invocations["MaximumRetryAttempts"] > 0
    failures = invocations["DestinationConfig"]["OnFailure"]
    assert failures["Type"] == "SQS"
    assert failures["Destination"]["Fn::GetAtt"].removesuffix(".Arn") in QUEUES


@pytest.mark.parametrize("logical_id", sorted({*BACKGROUND_FUNCTIONS} - {*INVOKED_FUNCTIONS, "KeepWarm"}))
def test_events_that_eventbridge_cannot_deliver_are_kept(logical_id: str) -> None:
    ((name, trigger),) = FUNCTIONS[logical_id]["Events"].items()
    delivery = trigger["Properties"]
    assert delivery["RetryPolicy"]["MaximumRetryAttempts"] > 0
    undelivered = delivery["DeadLetterConfig"]["Arn"]["Fn::GetAtt"].removesuffix(".Arn")
    # SAM grants the function access to its queue. The template must grant it to EventBridge.
    (grant,) = (
        policy["PolicyDocument"]["Statement"][0]
        for policy in of_type("AWS::SQS::QueuePolicy").values()
        if policy["Queues"] == [{"Ref": undelivered}]
    )
    assert grant == {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": {"Fn::GetAtt": f"{undelivered}.Arn"},
        "Condition": {"ArnEquals": {"aws:SourceArn": ANY}},
    }
    rules = grant["Condition"]["ArnEquals"]["aws:SourceArn"]
    rule = {"Fn::GetAtt": f"{logical_id}{name}.Arn"}
    assert rule in (rules if isinstance(rules, list) else [rules])


@pytest.mark.parametrize("logical_id", QUEUES)
def test_a_dead_letter_queue_is_encrypted_and_keeps_two_weeks(logical_id: str) -> None:
    assert QUEUES[logical_id] == {"MessageRetentionPeriod": FOURTEEN_DAYS_S, "SqsManagedSseEnabled": True}


# ------------------------------------------------------------------------- alarms and dashboard

ALARMS = of_type("AWS::CloudWatch::Alarm")
ALARM_TARGET = [
    {
        "Fn::If": [
            "HasAlarmTopic",
            {"Ref": "AlarmTopic"},
            {"Fn::If": ["MailsAlarms", {"Ref": "AlarmMail"}, {"Ref": "AWS::NoValue"}]},
        ]
    }
]


def watched(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    """The metrics of an alarm. AWS charges for each."""
    if "Metrics" not in alarm:
        return [alarm]
    return [metric["MetricStat"]["Metric"] for metric in alarm["Metrics"] if "MetricStat" in metric]


OPTIONAL_ALARMS = {
    "MuchStored": "AlarmedByStoredBytes",
    "FastGrowth": "AlarmedByStoredBytes",
    "MuchTraffic": "AlarmedByTraffic",
}
S3_REQUEST_METRICS = 12
"""Those that S3 reports for our requests: it has no figures of POST and SELECT. Each costs $0.30 a month."""


def test_prod_has_alarms_on_stored_bytes_and_on_their_growth() -> None:
    samconfig = tomllib.loads((ROOT / "samconfig.toml").read_text())
    parameters = samconfig["prod"]["deploy"]["parameters"]["parameter_overrides"].split()
    values = dict(parameter.split("=") for parameter in parameters)
    assert float(values["AlarmStoredGigabytes"]) > 0
    assert {name: RESOURCES[name]["Condition"] for name in OPTIONAL_ALARMS} == OPTIONAL_ALARMS


@pytest.mark.parametrize("logical_id", ALARMS)
def test_an_alarm_notifies_the_configured_topic_and_stays_silent_without_traffic(logical_id: str) -> None:
    alarm = ALARMS[logical_id]
    assert alarm["AlarmActions"] == alarm["OKActions"] == ALARM_TARGET
    assert alarm["TreatMissingData"] == "notBreaching"
    assert RESOURCES[logical_id]["Condition"] in ("Alarmed", *OPTIONAL_ALARMS.values())


@pytest.mark.parametrize("logical_id", ALARMS)
def test_an_alarm_links_to_its_remedy(logical_id: str) -> None:
    assert ALARMS[logical_id]["AlarmDescription"].endswith(f"See docs/operations.md, {logical_id}.")
    assert f"\n### {logical_id}\n" in (ROOT / "docs" / "operations.md").read_text()


def test_the_parameters_state_the_cost_of_the_alarms() -> None:
    metrics = {name: len(watched(alarm)) for name, alarm in ALARMS.items()}
    stored = (metrics.pop("MuchStored") + metrics.pop("FastGrowth")) * 0.1
    assert f"${stored:.2f} a month" in PARAMETERS["AlarmStoredGigabytes"]["Description"]
    traffic = metrics.pop("MuchTraffic") * 0.1 + S3_REQUEST_METRICS * 0.3
    assert f"${traffic:.2f} a month" in PARAMETERS["AlarmTrafficGigabytes"]["Description"]
    assert f"${sum(metrics.values()) * 0.1:.2f} a month" in PARAMETERS["Alarms"]["Description"]
    assert sum(metrics.values()) <= 10, "more than the account's free ones"


def test_s3_measures_traffic_only_for_its_alarm() -> None:
    (metric,) = watched(ALARMS["MuchTraffic"])
    (filter_id,) = (dimension["Value"] for dimension in metric["Dimensions"] if dimension["Name"] == "FilterId")
    nothing = {"Ref": "AWS::NoValue"}
    configured = bucket()["MetricsConfigurations"]
    assert configured == {"Fn::If": ["AlarmedByTraffic", [{"Id": filter_id}], nothing]}
    assert PARAMETERS["AlarmTrafficGigabytes"]["Default"] == "0"


def test_a_budget_notifies_before_it_is_spent_and_is_off_by_default() -> None:
    assert PARAMETERS["MonthlyBudgetDollars"]["Default"] == "0"
    assert RESOURCES["MonthlyBudget"]["Condition"] == "HasBudget"
    budget = RESOURCES["MonthlyBudget"]["Properties"]
    limit = {"Amount": {"Ref": "MonthlyBudgetDollars"}, "Unit": "USD"}
    assert budget["Budget"]["BudgetLimit"] == limit
    condition, notifications, without = budget["NotificationsWithSubscribers"]["Fn::If"]
    assert (condition, without) == ("NotifiesOfBudget", {"Ref": "AWS::NoValue"})
    assert [
        (notification["Notification"]["NotificationType"], notification["Notification"]["Threshold"])
        for notification in notifications
    ] == [("ACTUAL", 80), ("FORECASTED", 100)]
    target = {
        "SubscriptionType": {"Fn::If": ["HasAlarmTopic", "SNS", "EMAIL"]},
        "Address": {"Fn::If": ["HasAlarmTopic", {"Ref": "AlarmTopic"}, {"Ref": "AlarmEmail"}]},
    }
    assert [notification["Subscribers"] for notification in notifications] == [[target]] * 2


def test_every_dead_letter_queue_has_an_alarm() -> None:
    queues = [metric["Dimensions"][0]["Value"] for metric in watched(ALARMS["DeadLetters"])]
    assert queues == [{"Fn::GetAtt": f"{name}.QueueName"} for name in QUEUES]


def test_alarms_only_watch_this_stack() -> None:
    # Needs a dimension or its own namespace, so that two stacks in one account do not trigger each other's alarms.
    assert SHARED["Environment"]["Variables"]["POWERTOOLS_METRICS_NAMESPACE"] == NAMESPACE
    for alarm in ALARMS.values():
        for metric in watched(alarm):
            assert metric.get("Dimensions") or metric["Namespace"] == NAMESPACE


def test_throttled_requests_are_counted_in_the_metric_of_requests_without_a_token(
    widgets: list[dict[str, Any]],
) -> None:
    (filter_,) = of_type("AWS::Logs::MetricFilter").values()
    (counted,) = filter_["MetricTransformations"]
    alarm = ALARMS["HitsLost"]
    assert (counted["MetricNamespace"], counted["MetricName"]) == (NAMESPACE, alarm["MetricName"])
    # No default value: a metric without data costs nothing.
    assert (counted["MetricValue"], counted["Unit"]) == ("1", "Count")
    assert "DefaultValue" not in counted
    shown = [metric for widget in widgets for metric in widget["properties"].get("metrics", [])]
    assert [one for one in shown if alarm["MetricName"] in one]
    settings = RESOURCES["HttpApi"]["Properties"]["AccessLogSettings"]
    assert filter_["LogGroupName"] == {"Ref": "AccessLogGroup"}
    logged = json.loads(settings["Format"])
    status, *routes = re.findall(r'\(\$\.(\w+) = "([^"]+)"\)', filter_["FilterPattern"])
    assert status == ("status", "429")
    assert {field for field, _ in routes} == {"route"}
    counted_routes = {
        f"{method} {path}"
        for method, path in ROUTES
        if any(fnmatchcase(f"{method} {path}", pattern) for _, pattern in routes)
    }
    limited = set(RESOURCES["HttpApi"]["Properties"]["RouteSettings"])
    assert counted_routes == {*limited, "POST /login/oauth/token"}
    assert logged["status"] == "$context.status"
    assert logged["route"] == "$context.routeKey"


NAMESPACE = {"Fn::Sub": "Larder/${AWS::StackName}"}
FREE_METRICS_OF_A_DASHBOARD = 50
DASHBOARD_COLUMNS = 24


@pytest.fixture(scope="module")
def widgets() -> list[dict[str, Any]]:
    dashboard = of_type("AWS::CloudWatch::Dashboard")["OperationsDashboard"]
    body, values = dashboard["DashboardBody"]["Fn::Sub"]
    assert values == {"Bucket": BUCKET, "Warmer": {"Fn::If": ["KeepsWarm", {"Ref": "KeepWarm"}, "none"]}}
    found: list[dict[str, Any]] = json.loads(body)["widgets"]
    return found


def test_the_dashboard_is_free_as_one_of_an_accounts_first_three(widgets: list[dict[str, Any]]) -> None:
    metrics = [metric for widget in widgets for metric in widget["properties"].get("metrics", [])]
    named = [metric for metric in metrics if isinstance(metric[0], str)]
    assert 30 < len(named) <= FREE_METRICS_OF_A_DASHBOARD


def test_the_dashboard_names_existing_resources(widgets: list[dict[str, Any]]) -> None:
    pseudo = {"AWS::Region", "AWS::StackName", "Bucket", "WarmInstances", "Warmer"}
    for name in re.findall(r"\$\{([A-Za-z:]+)[.A-Za-z]*\}", json.dumps(widgets)):
        assert name in pseudo or name in RESOURCES
    routes = {f"{method} {path}" for method, path in ROUTES}
    for metric in (one for widget in widgets for one in widget["properties"].get("metrics", [])):
        if "route" in metric:
            assert metric[metric.index("route") + 1] in routes


def test_widgets_do_not_overlap(widgets: list[dict[str, Any]]) -> None:
    taken: set[tuple[int, int]] = set()
    for widget in widgets:
        columns = range(widget["x"], widget["x"] + widget["width"])
        places = {(x, widget["y"] + down) for x in columns for down in range(widget["height"])}
        assert max(columns) < DASHBOARD_COLUMNS
        assert not places & taken
        taken |= places


def test_the_dashboard_groups_every_route(widgets: list[dict[str, Any]]) -> None:
    (query,) = (widget["properties"]["query"] for widget in widgets if widget["type"] == "log")
    pattern = re.search(r"parse route /(.+?)/ \| ", query)
    assert pattern is not None
    group = re.compile(pattern[1].replace("(?<", "(?P<").replace("\\/", "/"))
    groups = {}
    for method, path in ROUTES:
        found = group.search(path if path == "$default" else f"{method} {path}")
        assert found, f"{path} is in no group"
        groups[path] = found["endpoints"]
    assert groups["/v8/artifacts/{hash}"] == "/v8/artifacts"
    assert groups["/api/auth/sign-in/email"] == "/api/auth"
    assert groups["/api/auth/api-key/verify"] == "/api/auth/api-key"
    assert groups["/turborepo/token"] == "/turborepo"
    assert groups["/"] == "/"
    assert groups["$default"] == "$default"


# ------------------------------------------------------------------------ operators and environments


def test_the_outputs_have_everything_the_command_line_needs() -> None:
    outputs = TEMPLATE["Outputs"]
    named = {camel_case(option.name) for option in fields(Settings)} - PARAMETERS.keys()
    of_edge = {name for name, output in outputs.items() if output.get("Condition", "")[:7] == "HasEdge"}
    assert of_edge == {"EdgeDistribution", "EdgeDomainTarget", "EdgeKeys", "EdgeUrl"}
    assert outputs.keys() == named | of_edge | {
        "ApiUrl",
        "DomainTarget",
        "ReadableSince",
        "Region",
        "SetupUrl",
        "Version",
    }
    functions = {camel_case(option): invoked for invoked, option in INVOKED_FUNCTIONS.items()}
    references = {name: name for name in named} | functions
    assert {name: outputs[name]["Value"] for name in named} == {
        name: {"Ref": reference} for name, reference in references.items()
    } | {"ArtifactsBucket": BUCKET, "EdgeUrl": EDGE_URL}


@pytest.mark.parametrize("environment", ["default", "prod"])
def test_every_environment_is_linted_built_fresh_and_sets_known_parameters(environment: str) -> None:
    configuration = tomllib.loads((ROOT / "samconfig.toml").read_text())[environment]
    assert configuration["validate"]["parameters"]["lint"] is True
    assert configuration["build"]["parameters"]["cached"] is False
    overrides = configuration["deploy"]["parameters"]["parameter_overrides"].split()
    assert {override.partition("=")[0] for override in overrides} <= PARAMETERS.keys()


def test_keys_of_production_have_a_prefix_for_secret_scanners() -> None:
    """Also with the larder.toml that docs/install.md shows. The default has none, as keys of the hosted service."""
    configuration = tomllib.loads((ROOT / "samconfig.toml").read_text())["prod"]
    assert "DefaultKeyPrefix=larder_" in configuration["deploy"]["parameters"]["parameter_overrides"].split()
    shown = (ROOT / "docs" / "install.md").read_text().partition("```toml\n")[2].partition("```")[0]
    assert tomllib.loads(shown)["prod"]["options"]["DefaultKeyPrefix"] == "larder_"
    assert PARAMETERS["DefaultKeyPrefix"]["Default"] == ""


def test_production_data_is_protected() -> None:
    configuration = tomllib.loads((ROOT / "samconfig.toml").read_text())["prod"]
    assert "ProtectData=true" in configuration["deploy"]["parameters"]["parameter_overrides"]
