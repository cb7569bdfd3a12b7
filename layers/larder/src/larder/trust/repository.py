"""Rules in the table of teams (docs/data-model.md#teamstable-pk-sk), and the transaction of an exchange."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from larder.api_keys import repository as keys
from larder.api_keys.models import ApiKey
from larder.clock import to_ms
from larder.conditions import Condition, above, begins_with, below, equals, exists, missing
from larder.issuers import repository as issuers
from larder.records import Form
from larder.tables import TEAMS, Item, Write, commit, failed_writes
from larder.teams.models import Member
from larder.teams.repository import RULE, role_checks
from larder.trust.models import Rule

_ALL = "rules"
_RULE = Form(Rule, apart=("id", "team_id"))


def add(
    rule: Rule,
    *also: Write,
    protecting: Sequence[Write] = (),
    by: Member | None,
    rules_version: int,
    most: int,
) -> bool:
    """Store a new rule. False if the team has `most` already, was deleted, or `by` no longer has the role.

    Also False if `rules_version` is no longer that of the team's rules. `protecting` are the writes that decide whether
    the first rule protects the team, with one to the team's item.
    """
    # A transaction cannot have two actions on one item.
    of_team = protecting or (TEAMS.check(rule.team_id, "team", when=exists("pk")),)
    fits = missing("count") | below(count=most)
    return commit(
        TEAMS.put(_item(rule), when=missing("pk")),
        TEAMS.update(
            rule.team_id, _ALL, add={"count": 1, "version": 1}, when=fits & _have(rules_version)
        ),
        *of_team,
        issuers.named(rule.issuer),
        *role_checks(rule.team_id, by),
        *also,
    )


def change(
    old: Rule, new: Rule, *also: Write, by: Member | None, rules_version: int | None = None
) -> bool:
    """Replace a rule. False if it has changed since it was read, is gone, or `by` no longer has the role.

    Also False if `rules_version` is given and is no longer that of the team's rules.
    """
    changes = _RULE.item(new)
    del changes["last_exchange_at"]
    update = TEAMS.update(old.team_id, RULE + old.id, set=changes, when=_is_as_read(old))
    if rules_version is not None:
        also = (
            *also,
            TEAMS.update(old.team_id, _ALL, add={"version": 1}, when=_have(rules_version)),
        )
    return commit(update, *role_checks(old.team_id, by), *also)


def delete(rule: Rule, *also: Write, by: Member | None) -> bool:
    """Delete a rule. False if it is gone, or `by` no longer has the role."""
    return commit(
        TEAMS.delete(rule.team_id, RULE + rule.id, when=exists("pk")),
        TEAMS.update(rule.team_id, _ALL, add={"count": -1}, when=above(count=0)),
        *role_checks(rule.team_id, by),
        *also,
    )


def find(team_id: str, rule_id: str) -> Rule | None:
    item = TEAMS.get(team_id, RULE + rule_id)
    return None if item is None else _rule(item)


def version_of_all(team_id: str) -> int:
    """The version of a team's rules together. Read before the rules, it shows whether they have changed since."""
    return int((TEAMS.get(team_id, _ALL) or {}).get("version", 0))


def list_of(team_id: str) -> list[Rule]:
    """The rules of a team, oldest first."""
    found = TEAMS.query(equals(pk=team_id) & begins_with(sk=RULE))
    return sorted(map(_rule, found), key=lambda rule: (rule.created_at, rule.id))


def exchange(
    key: ApiKey,
    token: Write,
    rule: Rule,
    *also: Write,
    pins: Mapping[str, str] | None,
    now: datetime,
) -> list[Write]:
    """Store the key of a job, count the use of its id token, and note the exchange in the rule: all or nothing.

    `token` is the write that counts the use. With `pins`, the rule is fixed to these ids, which raises its version: the
    key must have the version after that. Returns the writes whose condition failed, none if all is stored.
    """
    changes: dict[str, Any] = {"last_exchange_at": to_ms(now)}
    if pins is not None:
        changes |= {"pinned": dict(pins), "pending_until": None, "version": rule.version + 1}
    noted = TEAMS.update(rule.team_id, RULE + rule.id, set=changes, when=_is_as_read(rule))
    return failed_writes(keys.putting(key), token, noted, *also)


def _is_as_read(rule: Rule) -> Condition:
    return equals(version=rule.version)


def _have(version: int) -> Condition:
    return equals(version=version) if version else missing("version")


def _item(rule: Rule) -> Item:
    return {"pk": rule.team_id, "sk": RULE + rule.id, **_RULE.item(rule)}


def _rule(item: Item) -> Rule:
    return _RULE.record(item, id=item["sk"].removeprefix(RULE), team_id=item["pk"])
