"""What a user leaves behind: the receipt of the commands that take access away."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from larder import clock
from larder_cli.output import Record, echo, print_record, print_table

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
        "teams": [
            f"{membership.team.slug} {_role(membership)}" for membership in holdings.memberships
        ],
        "keys": [key.id for key in holdings.keys],
        "accounts": [account.provider_id for account in holdings.accounts],
    }


def _role(membership: "TeamMembership") -> str:
    member = membership.member
    if member.managed_by is None:
        return member.role.value
    return f"{member.role.value} ({member.managed_by}: {member.group or 'everyone'})"


def print_with_receipt(
    record: Record,
    email: str,
    traces: "Iterable[Traces]",
    *,
    rotates: bool = False,
    as_json: bool,
) -> None:
    """Print a record, what of the user still works, and how to end it.

    With `rotates`, the keys of teams that the user knows are replaced first.
    """
    found = [(_slug(trace.team_id), trace) for trace in traces]
    rotated = [new for team, one in found for new in _rotated(team, one)] if rotates else []
    known, rules = _known(found), _rules(found)
    more = {"known_keys": known, "rules": rules, "rotated": rotated}
    print_record({**record, **(more if as_json else {})}, as_json=as_json)
    if not as_json:
        _print_receipt(email, known, rules, rotated)


def _print_receipt(
    email: str, known: Sequence[Record], rules: Sequence[Record], rotated: Sequence[Record]
) -> None:
    for one in rotated:
        echo(
            "",
            f"{one['team']}: {one['key_id']} replaces {one['replaces']}. The new key: {one['key']}",
        )
    replaced = {one["replaces"] for one in rotated}
    if left := [one for one in known if one["id"] not in replaced]:
        echo("", f"{email} knows these keys of teams, which go on to work. Rotate them:")
        print_table(left, ("team", "id", "name", "can", "ends_at"), empty="", as_json=False)
        echo("`larder keys rotate ID` replaces one key, --rotate-known all of them.")
    if rules:
        listed = (f"{rule['team']} {rule['id']}" for rule in rules)
        echo("", f"{email} has added these rules, which still give tokens to CI jobs:", *listed)
        echo(
            "`larder trust show TEAM RULE` shows a rule, `larder trust remove TEAM RULE` removes it."
        )
    if not left and not rules:
        echo("", f"{email} knows no other key of a team, and has added no rule.")


def _rotated(team: str, traces: "Traces") -> Iterator[Record]:
    """Replace the keys of the team that the user knows. A warning names one that cannot be replaced."""
    from larder.api_keys.keys import rotate_key
    from larder.errors import LarderError

    for key, _ in traces.known_keys:
        try:
            made = rotate_key(key.id, overlap_s=_OVERLAP_S, now=clock.now())
        except LarderError as error:
            echo(f"Warning: {key.id} of {team} was not replaced: {error}", err=True)
            continue
        if made is not None:
            new, raw = made
            yield {"team": team, "replaces": key.id, "key_id": new.id, "key": raw}


def _slug(team_id: str) -> str:
    from larder.teams.teams import find_team

    team = find_team(team_id)
    return team_id if team is None else team.slug


def _known(found: "Iterable[tuple[str, Traces]]") -> list[Record]:
    return [
        {
            "team": team,
            "id": key.id,
            "name": key.name,
            "can": ", ".join(key.permissions.get("artifacts", ())),
            "ends_at": ends_at,
        }
        for team, one in found
        for key, ends_at in one.known_keys
    ]


def _rules(found: "Iterable[tuple[str, Traces]]") -> list[Record]:
    return [{"team": team, "id": rule_id} for team, one in found for rule_id in one.rules]
