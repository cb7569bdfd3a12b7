"""The policies and the role of deploy/deployer/template.yaml, as an account gets them."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from local.cloudformation import read_template, resolve

ACCOUNT = "123456789012"
REGION = "eu-central-1"
TEMPLATE = read_template(Path(__file__).resolve().parents[1] / "deploy" / "deployer" / "template.yaml")
EXISTING_BUCKET = "ExistingBucketPolicy"
POLICIES = ("StackPolicy", "FunctionsPolicy", "DataPolicy", "ApiPolicy", EXISTING_BUCKET)
PLAN = ("PlanPolicy", EXISTING_BUCKET)

Document = dict[str, Any]

_KNOWN = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "GitHub": f"arn:aws:iam::{ACCOUNT}:oidc-provider/token.actions.githubusercontent.com",
}


class Deployer:
    """The template with these parameters, and defaults for the others."""

    def __init__(
        self, parameters: Mapping[str, str] | None = None, policies: Sequence[str] = POLICIES, **pseudo: str
    ) -> None:
        """`pseudo` replaces pseudo parameters by their last part: `Region="us-east-1"`."""
        given, self._policies = parameters or {}, policies
        assert given.keys() <= TEMPLATE["Parameters"].keys()
        self._values = {
            **_KNOWN,
            **{f"AWS::{name}": value for name, value in pseudo.items()},
            **{name: one["Default"] for name, one in TEMPLATE["Parameters"].items()},
            **given,
        }

    def document(self, policy: str) -> Document:
        resolved: Document = self._resolved(TEMPLATE["Resources"][policy]["Properties"]["PolicyDocument"])
        return resolved

    def trust(self, role: str = "GitHubRole") -> Document:
        properties = TEMPLATE["Resources"][role]["Properties"]
        resolved: Document = self._resolved(properties["AssumeRolePolicyDocument"])
        return resolved

    def has(self, logical_id: str) -> bool:
        condition = TEMPLATE["Resources"][logical_id].get("Condition")
        return condition is None or self._holds(condition)

    def statements(self) -> Iterator[Document]:
        for policy in filter(self.has, self._policies):
            yield from self.document(policy)["Statement"]

    def allows(self, action: str, arn: str, context: Mapping[str, str] | None = None) -> bool:
        """Whether IAM allows the call: a statement allows it and none denies it."""
        effects = {
            statement["Effect"]
            for statement in self.statements()
            if any(fnmatchcase(action.lower(), pattern.lower()) for pattern in statement["Action"])
            and any(fnmatchcase(arn, pattern) for pattern in statement["Resource"])
            and _is_met(statement.get("Condition", {}), context or {})
        }
        return effects == {"Allow"}

    def _resolved(self, value: Any) -> Any:
        return resolve(self._chosen(value), self._values.__getitem__, _no_attribute)

    def _chosen(self, value: Any) -> Any:
        """The value without conditional parts."""
        if isinstance(value, list):
            chosen = [self._chosen(one) for one in value]
            return [one for one in chosen if one != {"Ref": "AWS::NoValue"}]
        if not isinstance(value, dict):
            return value
        if "Fn::If" in value:
            condition, yes, no = value["Fn::If"]
            return self._chosen(yes if self._holds(condition) else no)
        parts = {name: self._chosen(one) for name, one in value.items()}
        return {name: one for name, one in parts.items() if one != {"Ref": "AWS::NoValue"}}

    def _holds(self, condition: Any) -> bool:
        if isinstance(condition, str):
            return self._holds(TEMPLATE["Conditions"][condition])
        ((operator, argument),) = condition.items()
        match operator:
            case "Condition":
                return self._holds(argument)
            case "Fn::Equals":
                one, other = map(self._resolved, argument)
                return bool(one == other)
            case "Fn::Not":
                return not self._holds(argument[0])
            case "Fn::And":
                return all(map(self._holds, argument))
        raise AssertionError(f"tests/deployer.py does not evaluate {operator}")


def _is_met(condition: Document, context: Mapping[str, str]) -> bool:
    assert condition.keys() <= {"StringEquals", "StringEqualsIfExists", "StringLike"}
    wanted, patterns = condition.get("StringEquals", {}), condition.get("StringLike", {})
    if_there = condition.get("StringEqualsIfExists", {})
    return (
        all(context.get(key) == value for key, value in wanted.items())
        and all(context.get(key, value) == value for key, value in if_there.items())
        and all(fnmatchcase(context.get(key, ""), pattern) for key, pattern in patterns.items())
    )


def _no_attribute(name: str, attribute: str) -> Any:
    raise KeyError(f"{name}.{attribute}")
