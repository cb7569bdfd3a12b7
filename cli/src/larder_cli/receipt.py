"""What a user leaves behind: the receipt of the commands that take access away."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from larder import clock
from larder_cli.output import Record, echo, print_table

if TYPE_CHECKING:
    from larder.teams.models import TeamMembership
    from larder.trust.holdings import Holdings
    from larder.trust.makers import Traces

_OVERLAP_S = 86_400

rotate_known_option = click.option(
    "--rotate-known",
    is_flag=True,
    help="Also replace the keys of teams that the user knows. Each old key works for another day.",
)


def holdings_record(holdings: "Holdings") -> Record:
    """What the user holds, without what they know."""
    return {
        "sessions": len(holdings.sessions),
        "teams": [f"{one.team.slug} {_role(one)}" for one in holdings.memberships],
        "keys": [key.id for key in holdings.keys],
        "accounts": [one.provider_id for one in holdings.accounts],
    }


def _role(membership: "TeamMembership") -> str:
    member = membership.member
    if member.managed_by is None:
        return member.role.value
    return f"{member.role.value} ({member.managed_by}: {member.group or 'everyone'})"


def receipt_record(traces: "Iterable[Traces]", rotated: Sequence[Record] = ()) -> Record:
    found = list(traces)
    return {
        "known_keys": _known(found),
        "rules": [
            {"team": _slug(one.team_id), "id": rule_id} for one in found for rule_id in one.rules
        ],
        "rotated": list(rotated),
    }


def print_receipt(email: str, traces: "Iterable[Traces]", rotated: Sequence[Record] = ()) -> None:
    """What still works after the command, and how to end it. `rotated` are the new keys, with their secrets."""
    found = list(traces)
    for one in rotated:
        echo(
            "",
            f"{one['team']}: {one['key_id']} replaces {one['replaces']}. The new key: {one['key']}",
        )
    replaced = {one["replaces"] for one in rotated}
    if known := [one for one in _known(found) if one["id"] not in replaced]:
        echo("", f"{email} knows these keys of teams, which go on to work. Rotate them:")
        print_table(known, ("team", "id", "name", "can", "ends_at"), empty="", as_json=False)
        echo("`larder keys rotate ID` replaces one key, --rotate-known all of them.")
    rules = [f"{_slug(one.team_id)} {rule_id}" for one in found for rule_id in one.rules]
    if rules:
        echo("", f"{email} has added these rules, which still give tokens to CI jobs:", *rules)
        echo(
            "`larder trust show TEAM RULE` shows a rule, `larder trust remove TEAM RULE` removes it."
        )
    if not known and not rules:
        echo("", f"{email} knows no other key of a team, and has added no rule.")


def rotate_known(traces: "Iterable[Traces]") -> list[Record]:
    """Replace the keys of teams that the user knows. A warning names one that cannot be replaced."""
    from larder.api_keys.service import rotate_key
    from larder.errors import LarderError

    rotated: list[Record] = []
    for one in traces:
        for key, _ in one.known_keys:
            try:
                made = rotate_key(key.id, overlap_s=_OVERLAP_S, now=clock.now())
            except LarderError as error:
                echo(
                    f"Warning: {key.id} of {_slug(one.team_id)} was not replaced: {error}", err=True
                )
                continue
            if made is not None:
                new, raw = made
                record = {
                    "team": _slug(one.team_id),
                    "replaces": key.id,
                    "key_id": new.id,
                    "key": raw,
                }
                rotated.append(record)
    return rotated


def _slug(team_id: str) -> str:
    from larder.teams.teams import find_team

    team = find_team(team_id)
    return team_id if team is None else team.slug


def _known(traces: "Iterable[Traces]") -> list[Record]:
    return [
        {
            "team": _slug(one.team_id),
            "id": key.id,
            "name": key.name,
            "can": ", ".join(key.permissions.get("artifacts", ())),
            "ends_at": ends_at,
        }
        for one in traces
        for key, ends_at in one.known_keys
    ]
