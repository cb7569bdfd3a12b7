"""A change set in words, and which changes lose data. `larder plan` and `resources.txt` of a release print them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

KEPT = {
    "AWS::DynamoDB::Table": (
        *("TableName", "KeySchema", "AttributeDefinitions", "ImportSourceSpecification"),
        *("GlobalSecondaryIndexes", "LocalSecondaryIndexes"),
    ),
    "AWS::S3::Bucket": ("BucketName", "BucketNamePrefix", "BucketNamespace"),
    # With another GenerateSecretString, CloudFormation generates a new secret, which signs all users out.
    "AWS::SecretsManager::Secret": ("Name", "GenerateSecretString"),
    # Its address is in the settings of builds. SAM sets its only property that cannot change.
    "AWS::Serverless::HttpApi": (),
    "AWS::ApiGatewayV2::Api": ("ProtocolType",),
}
"""The types of resources to keep, and the properties that CloudFormation cannot change without replacing them."""

CODE = ("AWS::Lambda::Function", "AWS::Lambda::LayerVersion")
_OF_ATTRIBUTES = "AttributeDefinitions"
_INDEXES = "GlobalSecondaryIndexes"
_BY_NAME = {_OF_ATTRIBUTES: "AttributeName", _INDEXES: "IndexName"}
"""Lists that can get and lose entries. The order does not matter."""
_FIXED = ("AttributeType", "KeySchema", "Projection")
"""What cannot change in such an entry."""

Resources = Mapping[str, Mapping[str, Any]]
"""For each logical id, `Type` and properties."""


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """A change of one resource: `Add`, `Modify` or `Remove`. `properties` are the changed ones, if known."""

    action: str
    id: str
    type: str
    replaced: bool = False
    properties: tuple[str, ...] = ()

    @property
    def short_type(self) -> str:
        return self.type.removeprefix("AWS::")


def read_changes(changes: Iterable[Mapping[str, Any]]) -> list[ResourceChange]:
    """The changes of CloudFormation's `DescribeChangeSet`."""
    read = []
    for change in (listed["ResourceChange"] for listed in changes):
        names = {
            detail["Target"]["Name"]
            for detail in change.get("Details", [])
            if detail.get("Target", {}).get("Name")
        }
        read.append(
            ResourceChange(
                change["Action"],
                change["LogicalResourceId"],
                change["ResourceType"],
                replaced=change.get("Replacement") == "True",
                properties=tuple(sorted(names)),
            )
        )
    return read


def losses(changes: Iterable[ResourceChange], *, leaves_bucket: bool = False) -> Iterator[str]:
    """The changes that would delete data, or change the address or the secret.

    `leaves_bucket` says that an option names another bucket from now on. CloudFormation then leaves the stack's own
    bucket as it is, unless it is empty.
    """
    for change in changes:
        if change.type not in KEPT or (leaves_bucket and change.type == "AWS::S3::Bucket"):
            continue
        if change.action == "Remove":
            yield f"{change.id} would be deleted with its data"
        elif change.replaced:
            named = f" ({', '.join(change.properties)})" if change.properties else ""
            yield f"{change.id} would be replaced{named}, and what it holds lost"
        elif "GenerateSecretString" in change.properties:
            yield f"{change.id} would get a new secret, which signs all users out"


def problems(before: Resources, now: Resources) -> Iterator[str]:
    """The reasons why an upgrade would lose data or be refused by CloudFormation."""
    for logical_id, old in before.items():
        new = now.get(logical_id)
        if new is None or new["Type"] != old["Type"]:
            yield f"{logical_id} is missing: CloudFormation would delete it with its data"
            continue
        for name in KEPT[old["Type"]]:
            if name in _BY_NAME:
                yield from _changed_entries(logical_id, name, old.get(name, []), new.get(name, []))
            elif old.get(name) != new.get(name):
                yield f"{logical_id} has another {name}: CloudFormation would replace it"


def kept_resources(template: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The resources to keep of a plain template, with the properties that must not change, as they are written."""
    return {
        logical_id: {
            "Type": one["Type"],
            **{
                name: one["Properties"][name]
                for name in KEPT[one["Type"]]
                if name in one.get("Properties", {})
            },
        }
        for logical_id, one in template["Resources"].items()
        if one["Type"] in KEPT
    }


def in_words(changes: Iterable[ResourceChange]) -> list[str]:
    """Lines of two columns: what is added, changed, replaced and removed. Replaced and removed ones by name."""
    changes = list(changes)
    lines = []
    code = [change for change in changes if change.type in CODE and change.action == "Modify"]
    others = [change for change in changes if change not in code and change.type != CODE[1]]
    if any(change.type == CODE[1] for change in changes):
        lines.append(
            f"code       {len(code)} functions get the new code, in place; for about a minute both versions answer"
        )
    elif code:
        lines.append(f"changed    {len(code)} functions, in place")
    added = [one for one in others if one.action == "Add"]
    changed = [one for one in others if one.action == "Modify" and not one.replaced]
    for word, listed in (("added", added), ("changed", changed)):
        if listed:
            lines.append(f"{word:<10} {_counted(listed)}")
    for word, listed in (
        ("replaced", [one for one in others if one.replaced]),
        ("removed", [one for one in others if one.action == "Remove"]),
    ):
        lines += [f"{word:<10} {one.id} ({one.short_type})" for one in listed]
    return lines


def _counted(changes: Iterable[ResourceChange]) -> str:
    counts = Counter(change.short_type for change in changes)
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    plural = "" if counts.total() == 1 else "s"
    return f"{counts.total()} resource{plural}: {listed}"


def _changed_entries(
    logical_id: str, name: str, old: list[dict[str, Any]], new: list[dict[str, Any]]
) -> Iterator[str]:
    before, now = ({one[_BY_NAME[name]]: one for one in entries} for entries in (old, new))
    for entry in sorted(before.keys() & now.keys()):
        if any(before[entry].get(one) != now[entry].get(one) for one in _FIXED):
            what = "the index" if name == _INDEXES else "the attribute"
            yield f"{logical_id} changes {what} {entry}, which CloudFormation refuses: use another name"
    changed = sorted(before.keys() ^ now.keys())
    if name == _INDEXES and len(changed) > 1:
        yield (
            f"{logical_id} gets or loses {len(changed)} indexes ({', '.join(changed)}): CloudFormation"
            " allows one per table in an upgrade, so leave the others to the next releases"
        )
