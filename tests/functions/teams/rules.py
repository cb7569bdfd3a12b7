"""Requests about rules, and a rule of the team acme."""

from typing import Any

from larder import clock
from larder.trust.models import NewRule, Rule
from larder.trust.rules import create_rule
from tests.issuer import ORIGIN
from tests.requests import Cloud

RULES = "/v1/teams/acme/rules"
IDS = {"repository_id": "74", "repository_owner_id": "65"}


def made(cloud: Cloud, **new: Any) -> Rule:
    """A rule of the team; without arguments, for the repository with `IDS` at GitHub."""
    values = new or {"provider": "github", "pinned": IDS}
    return create_rule(cloud.team.id, NewRule(**values), by=None, origin=ORIGIN, now=clock.now())
