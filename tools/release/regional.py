"""The plain template for regions that lack budgets, and for GovCloud and China, which lack CloudFront, too. Resources
of these types, and all that exists only with them, are left out, because CloudFormation may refuse an unknown type even
if its condition is false. `MonthlyBudgetDollars` and `Edge=true` have no effect there.
"""

from typing import Any

BUDGETS = "AWS::Budgets::"
CLOUDFRONT = "AWS::CloudFront::"
_NO_VALUE = {"Ref": "AWS::NoValue"}
_NOTHING = object()


def without_types(template: dict[str, Any], *absent: str) -> dict[str, Any]:
    """The template without types that begin with one of `absent`. Conditions that need them count as false."""
    false = {
        str(resource["Condition"])
        for resource in template["Resources"].values()
        if resource["Type"].startswith(absent)
    }
    while more := {
        name
        for name, condition in template["Conditions"].items()
        if name not in false and "Fn::And" in condition and _names_any(condition, false)
    }:
        false |= more
    kept = dict(template)
    for part in ("Resources", "Outputs"):
        kept[part] = {
            name: _folded(one, false)
            for name, one in template[part].items()
            if one.get("Condition") not in false
        }
    kept["Conditions"] = {
        name: one for name, one in template["Conditions"].items() if name not in false
    }
    return kept


def _names_any(value: Any, names: set[str]) -> bool:
    if isinstance(value, dict):
        return value.get("Condition") in names or any(
            _names_any(one, names) for one in value.values()
        )
    return isinstance(value, list) and any(_names_any(one, names) for one in value)


def _folded(value: Any, false: set[str]) -> Any:
    """`value` with the other branch of each `Fn::If` whose condition is false."""
    if isinstance(value, dict):
        if value.keys() == {"Fn::If"} and value["Fn::If"][0] in false:
            other = value["Fn::If"][2]
            return _NOTHING if other == _NO_VALUE else _folded(other, false)
        folded = {name: _folded(one, false) for name, one in value.items()}
        return {name: one for name, one in folded.items() if one is not _NOTHING}
    if isinstance(value, list):
        return [one for one in (_folded(one, false) for one in value) if one is not _NOTHING]
    return value
