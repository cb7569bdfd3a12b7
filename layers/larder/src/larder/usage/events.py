"""The events that a build reports, and who reports them."""

from dataclasses import dataclass

OTHER_TOOL = "other"
"""The name for all tools that are not in TOOLS, such as those that use the sidecar's `plain` path."""

TOOLS = frozenset({"bazel", "ccache", "gradle", "moon", "nx", "rush", "sccache"})
"""The build tools that the sidecar speaks for. Clients choose the hashes, so the list is closed."""


def tool_of(hash: str) -> str | None:
    """The build tool of a hash such as `nx-15803998449929193174`. None for turbo, whose hashes have no prefix."""
    name, dash, _ = hash.partition("-")
    if not dash:
        return None
    return name if name in TOOLS else OTHER_TOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageEvent:
    """One look-up of an artifact in a cache (local or remote), as the client reports it."""

    session_id: str
    source: str
    event: str
    hash: str
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """The sender of a batch of events. `ci` is None if the client names no CI, as on a developer's machine.

    `key_id` is the id of a key or session, and `user_id` its user. The token of a CI job has `rule_id` instead.
    What someone with a public read key reports is not counted: it can be made up.
    """

    key_id: str
    user_id: str | None
    rule_id: str | None = None
    ci: str | None
    interactive: bool | None
    is_public: bool = False

    @property
    def counted_as(self) -> str:
        """Each job has a key of its own, so all jobs of a rule count as the rule."""
        return self.rule_id or self.key_id
