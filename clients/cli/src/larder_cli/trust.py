"""`larder trust`: rules by which CI jobs get tokens of a team."""

import json
from typing import IO, TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import click

from larder import clock
from larder.settings import settings
from larder_cli.commands import CommandGroup, examples, json_option, table_options
from larder_cli.ids import the_only
from larder_cli.mail_context import notify, operator_mail_context
from larder_cli.output import (
    Record,
    echo,
    fields,
    print_indented,
    print_json,
    print_line,
    print_record,
    print_table,
)
from larder_cli.quantities import seconds
from larder_cli.teams import agree_to_protect, note_protection, require_team

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from larder.trust.makers import Maker
    from larder.trust.models import Explanation, Rule

_PROVIDERS = ("github", "gitlab", "circleci", "buildkite", "bitbucket", "azure", "jenkins")
_OTHERS = ("scope", "read", "refuse")

F = TypeVar("F", bound="Callable[..., object]")
_TERMS = (
    click.option("--name", help="A name for the rule, 1 to 100 characters."),
    click.option(
        "--ref",
        "refs",
        multiple=True,
        metavar="REF",
        help="A ref whose jobs are trusted, such as refs/heads/main. Can be given several times.",
    ),
    click.option(
        "--event",
        "events",
        multiple=True,
        metavar="EVENT",
        help="An event whose jobs are trusted. Can be given several times.",
    ),
    click.option(
        "--replace-event",
        "replace_events",
        multiple=True,
        metavar="EVENT",
        help=(
            "A trusted event whose jobs replace artifacts that a protected team keeps. Can be given several times."
        ),
    ),
    click.option(
        "--claim",
        "claims",
        multiple=True,
        metavar="NAME=VALUE",
        help="A claim and a value that trusted jobs must have. Can be given several times.",
    ),
    click.option(
        "--protected-ref/--any-ref",
        "requires_protected_ref",
        default=None,
        help="Whether the CI must say that the ref is protected.",
    ),
    click.option(
        "--others",
        type=click.Choice(_OTHERS),
        help="What jobs get that are not trusted: a cache of their own, a token that only reads, or none.",
    ),
    click.option(
        "--lifetime",
        "lifetime_s",
        metavar="TIME",
        type=seconds,
        help="How long a token is valid, such as 30m: from 5 minutes to 6 hours.",
    ),
)


class _Terms(TypedDict):
    """The values of the options in _TERMS."""

    name: str | None
    refs: tuple[str, ...]
    events: tuple[str, ...]
    replace_events: tuple[str, ...]
    claims: tuple[str, ...]
    requires_protected_ref: bool | None
    others: str | None
    lifetime_s: int | None


def _with_terms(command: F) -> F:
    """Add the options of what a rule trusts, which new and changed rules share."""
    for option in reversed(_TERMS):
        command = option(command)
    return command


def _properties(terms: _Terms) -> dict[str, Any]:
    """The properties of a NewRule or a RuleChange. What is not given is None."""
    from larder.trust.models import Others

    others = terms["others"]
    given = {name: None if value == () else value for name, value in terms.items()}
    return {
        **given,
        "claims": _pairs("--claim", terms["claims"]) or None,
        "others": None if others is None else Others(others),
    }


def _origin() -> str:
    return settings().base_url.rstrip("/")


def _records(rules: "Sequence[Rule]", now: "datetime") -> list[Record]:
    from larder.trust.makers import makers_of

    makers = makers_of(rules[0].team_id, rules) if rules else {}
    return [_record(rule, makers.get(rule.created_by or ""), now) for rule in rules]


def _made_by(maker: "Maker | None") -> str:
    if maker is None:
        return "unknown"
    if maker.user_id is None:
        return "the operator"
    name = maker.email or "a deleted user"
    if maker.role is None:
        return f"{name}, who left"
    return name if maker.role.names_trusted else f"{name}, now {maker.role.value}"


def _record(rule: "Rule", maker: "Maker | None", now: "datetime") -> Record:
    trusted = rule.trusted
    return {
        **fields(rule, "id", "name", "provider", "issuer"),
        "audience": rule.audience or _origin(),
        **fields(rule, "repository", "pinned"),
        "state": rule.status(now).value,
        "pending_until_at": rule.pending_until,
        **fields(trusted, "refs", "events", "replace_events"),
        "protected_ref": trusted.requires_protected_ref,
        "claims": trusted.claims,
        **fields(rule, "others", "scope_claim", "lifetime_s", "last_exchange_at"),
        "made_by": _made_by(maker),
        "created_at": rule.created_at,
    }


@click.group(
    cls=CommandGroup,
    epilog=examples(
        "larder trust add acme --github acme/web",
        "larder trust list acme",
        "larder trust explain acme claims.json",
    ),
)
def trust() -> None:
    """Manage the rules by which CI jobs get tokens. Jobs then need no stored secret.

    TEAM is a slug or an id. RULE is an id, or the first characters of one.
    """


@trust.command(
    "add",
    epilog=examples(
        "larder trust add acme --github acme/web",
        "larder trust add acme --github acme/web --pin repository_id=74 --pin repository_owner_id=65",
        "larder trust add acme --gitlab acme/web --issuer https://gitlab.acme.example",
        "larder trust add acme --provider jenkins --issuer https://ci.acme.example/oidc \\",
        "    --pin sub=https://ci.acme.example/job/web/ --claim branch=main --scope-claim branch",
    ),
)
@click.argument("team", metavar="TEAM")
@click.option("--github", metavar="OWNER/NAME", help="A repository at GitHub.")
@click.option("--gitlab", metavar="PATH", help="A project at GitLab.")
@click.option(
    "--provider",
    type=click.Choice([*_PROVIDERS, "generic"]),
    help="The CI, if it is neither GitHub nor GitLab.",
)
@click.option("--issuer", metavar="URL", help="The issuer, if it is not that of the hosted CI.")
@click.option("--audience", help="The audience of the tokens, if it is not the service's address.")
@click.option(
    "--pin",
    "pins",
    multiple=True,
    metavar="CLAIM=VALUE",
    help=(
        "A claim that identifies the repository and never changes, such as repository_id=74. Can be "
        "given several times."
    ),
)
@_with_terms
@click.option(
    "--scope-claim",
    metavar="CLAIM",
    help="The claim by which the own caches of jobs differ, for Jenkins and generic issuers.",
)
@click.option(
    "--protect/--no-protect",
    default=None,
    help="Whether this protects the team if it is its first rule. By default it does, after a question if that hides "
    "stored artifacts.",
)
@json_option
def add(
    team: str,
    github: str | None,
    gitlab: str | None,
    provider: str | None,
    issuer: str | None,
    audience: str | None,
    pins: tuple[str, ...],
    scope_claim: str | None,
    protect: bool | None,
    as_json: bool,
    **terms: Unpack[_Terms],
) -> None:
    """Add a rule to TEAM. The first one protects the team.

    Without --pin, the first token of the repository within seven days fixes its ids.
    """
    from larder.accounts.team_notices import notify_owners_of_trust
    from larder.teams.protection import first_trust
    from larder.trust.models import NewRule
    from larder.trust.rules import create_rule

    chosen = [one for one in (github and "github", gitlab and "gitlab", provider) if one]
    if len(chosen) != 1:
        raise click.UsageError("give one of --github, --gitlab and --provider")
    new = NewRule(
        provider=chosen[0],
        issuer=issuer,
        audience=audience,
        repository=github or gitlab,
        pinned={claim: values[0] for claim, values in _pairs("--pin", pins).items()},
        scope_claim=scope_claim,
        **_properties(terms),
    )
    found, now = require_team(team), clock.now()
    trust = first_trust(found.id, protect=protect is not False, actor=None)
    if protect is None:
        agree_to_protect(found.slug, trust)
    rule = create_rule(found.id, new, trust=trust, by=None, origin=_origin(), now=now)
    print_record(_records([rule], now)[0], as_json=as_json)
    _warn_of_same_jobs(rule, now)
    notify(
        found.slug,
        lambda: notify_owners_of_trust(
            found.id, operator_mail_context("larder trust add"), rule_id=rule.id
        ),
    )
    note_protection(found.slug, trust, "larder trust add")


@trust.command("list", epilog=examples("larder trust list acme", "larder trust list acme --json"))
@click.argument("team", metavar="TEAM")
@table_options
def list_(team: str, as_json: bool) -> None:
    """List the rules of TEAM, oldest first. Warns if no trusted credential has uploaded anything for two weeks."""
    from larder.trust.rules import list_rules
    from larder.trust.scopes import use_of_shared

    found, now = require_team(team), clock.now()
    if use_of_shared(found.id, found.state.protection, now=now).is_idle:
        echo(
            f"Warning: {found.slug} is protected, but no trusted job or key has uploaded anything for two weeks."
            " Nobody in the team gets new hits: see `larder trust explain`",
            err=True,
        )
    print_table(
        _records(list_rules(found.id), now),
        (
            "id",
            "name",
            "provider",
            "repository",
            "state",
            "refs",
            "others",
            "made_by",
            "last_exchange_at",
        ),
        empty=f"{found.slug} has no rules: add one with `larder trust add {found.slug}`",
        as_json=as_json,
    )


@trust.command("show", epilog=examples("larder trust show acme rule_7Jp..."))
@click.argument("team", metavar="TEAM")
@click.argument("rule", metavar="RULE")
@json_option
def show(team: str, rule: str, as_json: bool) -> None:
    """Show the rule RULE of TEAM."""
    from larder.trust.rules import find_rule

    found = find_rule(*_named(team, rule))
    print_record(_records([found], clock.now())[0], as_json=as_json)


@trust.command(
    "set",
    epilog=examples(
        "larder trust set acme rule_7Jp... --ref refs/heads/main --ref refs/heads/release",
        "larder trust set acme rule_7Jp... --disable",
    ),
)
@click.argument("team", metavar="TEAM")
@click.argument("rule", metavar="RULE")
@_with_terms
@click.option("--enable/--disable", "enabled", default=None, help="Whether the rule gives tokens.")
@json_option
def set_(
    team: str,
    rule: str,
    enabled: bool | None,
    as_json: bool,
    **terms: Unpack[_Terms],
) -> None:
    """Change the rule RULE of TEAM. Its tokens end at once.

    Refs, events and claims replace those of the rule.
    """
    from larder.trust.models import RuleChange
    from larder.trust.rules import change_rule

    change = RuleChange(enabled=enabled, **_properties(terms))
    if change == RuleChange():
        raise click.UsageError("nothing to change: give an option")
    now = clock.now()
    changed = change_rule(*_named(team, rule), change, by=None, now=now)
    print_record(_records([changed], now)[0], as_json=as_json)
    _warn_of_same_jobs(changed, now)


def _warn_of_same_jobs(rule: "Rule", now: "datetime") -> None:
    from larder.trust.rules import rules_for_same_jobs

    for other in rules_for_same_jobs(rule, now):
        echo(
            f"Warning: the rule {other.name} ({other.id}) accepts the same jobs. A job gets no token until it names one"
            " of the two, in policy_id or LARDER_RULE",
            err=True,
        )


@trust.command("remove", epilog=examples("larder trust remove acme rule_7Jp..."))
@click.argument("team", metavar="TEAM")
@click.argument("rule", metavar="RULE")
@json_option
def remove(team: str, rule: str, as_json: bool) -> None:
    """Delete the rule RULE of TEAM. Its tokens end at once."""
    from larder.trust.rules import delete_rule

    deleted = delete_rule(*_named(team, rule), by=None)
    print_record({"id": deleted.id, "name": deleted.name, "deleted": True}, as_json=as_json)


@trust.command("explain", epilog=examples("larder trust explain acme claims.json"))
@click.argument("team", metavar="TEAM")
@click.argument("claims", metavar="FILE", type=click.File())
@json_option
def explain(team: str, claims: IO[str], as_json: bool) -> None:
    """Explain which rule of TEAM accepts a job, and why others do not.

    FILE has the claims of the job as JSON. - reads standard input. Give the claims, never the token.
    """
    from larder.trust import rules

    try:
        sent = json.load(claims)
    except ValueError:
        sent = None
    if not isinstance(sent, dict):
        raise click.UsageError("FILE must hold the claims as a JSON object")
    found = require_team(team)
    explained = rules.explain(found.id, sent, origin=_origin(), now=clock.now())
    if as_json:
        print_json([_explanation_record(one) for one in explained])
        return
    if not explained:
        print_line(f"{found.slug} has no rules: add one with `larder trust add {found.slug}`")
    for one in explained:
        print_line(f"{one.rule.name} ({one.rule.id})")
        print_indented(_verdict(one))
        for reason in _reasons(one):
            print_indented(reason)


def _verdict(one: "Explanation") -> str:
    if one.match is None or not one.match.actions:
        return "gives no token"
    trusted = "not trusted" if one.match.distrusted else "trusted"
    return f"gives a token, {trusted}, scope {one.match.scope}"


def _reasons(one: "Explanation") -> tuple[str, ...]:
    return one.refused if one.match is None else one.match.distrusted


def _explanation_record(one: "Explanation") -> Record:
    match = one.match
    return {
        "rule": one.rule.id,
        "name": one.rule.name,
        "accepted": match is not None and bool(match.actions),
        "trusted": match is not None and not match.distrusted,
        "scope": match.scope if match is not None and match.actions else None,
        "why": "; ".join(_reasons(one)),
    }


def _named(team: str, rule: str) -> tuple[str, str]:
    """The ids of the team and of its rule, of which the first characters are enough. Raises ClickException."""
    from larder.trust.rules import list_rules

    team_id = require_team(team).id
    return team_id, the_only(rule, (one.id for one in list_rules(team_id)), "rules") or rule


def _pairs(option: str, texts: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The values by claim."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, is_pair, value = text.partition("=")
        if not (is_pair and name and value):
            raise click.UsageError(f"{option} must be NAME=VALUE, not {text!r}")
        found[name] = (*found.get(name, ()), value)
    return found
