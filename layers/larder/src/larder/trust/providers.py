"""What the id tokens of each CI mean, as data. docs/trust.md describes the rows for people.

A claim that the owner of a job's code can choose never decides: `sub` of GitHub can be customized, and a tag can have
the name of a branch.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

from larder.trust.models import Claims, Job

_NOTHING: Mapping[str, str] = MappingProxyType({})

GENERIC = "generic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """The claims of one CI.

    `issuer` is that of the hosted service, None if each customer has their own. `pins` identify the repository and
    never change: the first one names the repository, the others its owner. `repository` is the claim with its name.
    `ref` is the claim with the ref, before which `ref_prefix` is added. If the CI says the name of a tag in another
    claim, that is `tag`, and `ref` can have the same name then. `event` is the claim that says why a job runs,
    and `trusted_events` those of a rule that names none. People start `replace_events` by hand, and their trusted jobs
    replace what a protected team keeps. Events that match `outsiders` can run the code of people who cannot push, so no
    rule can trust them. `protected` is the claim that says whether the ref is protected, and `needs_protected` whether
    a rule that does not say otherwise requires it. `required` are claims that each rule must name a value of. A token
    with a value of `refused` is refused.

    Own scopes differ by the claims of `scoped_by`. Outsiders can choose those of jobs that are not of `trusted_events`,
    or theirs are the ones of the base branch. So own scopes of such jobs differ by `pipeline`, too, the claim with the
    id of the pipeline. Not if the ref matches `numbered`, which only one pull request has, or if the claim `vouched` is
    there, by which the CI says that the ref is of the pinned repository.

    `token_id` identifies one token, which gives at most `uses` keys. `run` has the claims that describe the job, and
    `run_url` is its page, with claims in braces.
    """

    name: str
    issuer: str | None = None
    audience: str | None = None
    pins: tuple[str, ...] = ()
    repository: str | None = None
    can_pend: bool = False
    ref: str | None = None
    ref_prefix: str = ""
    tag: str | None = None
    event: str | None = None
    trusted_events: tuple[str, ...] = ()
    replace_events: tuple[str, ...] = ()
    outsiders: re.Pattern[str] = re.compile("(?!)")
    queue: re.Pattern[str] | None = None
    protected: str | None = None
    needs_protected: bool = False
    required: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    scoped_by: tuple[str, ...] = ()
    pipeline: str | None = None
    numbered: re.Pattern[str] = re.compile("(?!)")
    vouched: str | None = None
    token_id: str = "jti"  # noqa: S105  # the name of a claim
    uses: int = 20
    run: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    run_url: str | None = None

    def job(self, claims: Claims) -> Job:
        texts = _texts(claims)
        event = texts.get(self.event) if self.event else None
        return Job(
            claims=texts,
            repository=texts.get(self.repository) if self.repository else None,
            ids={pin: texts[pin] for pin in self.pins if texts.get(pin)},
            ref=self._ref_of(texts, event),
            event=event,
            scope=tuple(map(texts.get, self._scope_claims(texts, event))),
            run=self._run_of(texts),
            token_id=texts.get(self.token_id),
        )

    def _ref_of(self, texts: Mapping[str, str], event: str | None) -> str | None:
        """The ref that the job builds. For a merge queue, the branch that the queue leads to."""
        if self.tag is not None and (tag := texts.get(self.tag)):
            return f"refs/tags/{tag}"
        text = None if self.ref is None else texts.get(self.ref)
        if text is None:
            return None
        if self.queue is not None and (match := self.queue.fullmatch(text)):
            # Anyone who can push can create a branch with such a name; only the queue makes this event.
            return f"refs/heads/{match['branch']}" if event == "merge_group" else text
        return self.ref_prefix + text

    def _scope_claims(self, texts: Mapping[str, str], event: str | None) -> tuple[str, ...]:
        """The claims by which the own scope of this job differs from others. Empty if the CI has none."""
        if self.pipeline is None or self.event is None or self.ref is None:
            return self.scoped_by
        tells_apart = (
            event in self.trusted_events
            or self.numbered.fullmatch(texts.get(self.ref, "")) is not None
            or (self.vouched is not None and self.vouched in texts)
        )
        return self.scoped_by if tells_apart else (*self.scoped_by, self.pipeline)

    def _run_of(self, texts: Mapping[str, str]) -> dict[str, str]:
        wanted: Mapping[str, str | None] = {
            "repository": self.repository or next(iter(self.pins), None),
            "ref": self.ref,
            "event": self.event,
            **self.run,
            "token": self.token_id,
        }
        run = {
            label: shown(texts[name])
            for label, name in wanted.items()
            if name is not None and name in texts
        }
        if self.run_url is not None and texts.get("iss") == self.issuer:
            # If a claim is missing, there is no page to name.
            with suppress(KeyError):
                run["url"] = shown(self.run_url.format_map(texts))
        return run


PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        one.name: one
        for one in (
            Provider(
                name="github",
                issuer="https://token.actions.githubusercontent.com",
                pins=("repository_id", "repository_owner_id"),
                repository="repository",
                can_pend=True,
                ref="ref",
                event="event_name",
                trusted_events=("push", "schedule", "workflow_dispatch", "merge_group"),
                replace_events=("workflow_dispatch",),
                outsiders=re.compile(
                    r"pull_request.*|workflow_run|issue_comment|issues|discussion.*|check_.*"
                ),
                queue=re.compile(
                    r"refs/heads/gh-readonly-queue/(?P<branch>.+)/pr-[0-9]+-[0-9a-f]{40,64}"
                ),
                protected="ref_protected",
                scoped_by=("event_name", "ref"),
                # Not `head_ref`: people with a fork choose its name.
                pipeline="run_id",
                numbered=re.compile(r"refs/pull/[0-9]+/.+"),
                uses=1,
                run={"sha": "sha", "workflow": "job_workflow_ref"},
                run_url="https://github.com/{repository}/actions/runs/{run_id}",
            ),
            Provider(
                name="gitlab",
                issuer="https://gitlab.com",
                pins=("project_id", "namespace_id"),
                repository="project_path",
                can_pend=True,
                ref="ref_path",
                event="pipeline_source",
                trusted_events=("push", "schedule", "web"),
                replace_events=("web",),
                outsiders=re.compile(r"merge_request_event|external_pull_request_event"),
                protected="ref_protected",
                needs_protected=True,
                # The ref of a merge request is the name of its source branch.
                scoped_by=("ref_path",),
                pipeline="pipeline_id",
                numbered=re.compile(r"refs/merge-requests/[0-9]+/.+"),
                # With it, a merge request from a fork has the fork's ids: gitlab.com/gitlab-org/gitlab/-/issues/563038
                vouched="job_project_id",
                run={"sha": "sha", "job": "job_id"},
                run_url="{iss}/{project_path}/-/jobs/{job_id}",
            ),
            Provider(
                name="circleci",
                pins=("oidc.circleci.com/project-id",),
                ref="oidc.circleci.com/vcs-ref",
                required=("oidc.circleci.com/vcs-origin",),
                refused={"oidc.circleci.com/ssh-rerun": "true"},
                scoped_by=("oidc.circleci.com/vcs-origin", "oidc.circleci.com/vcs-ref"),
                # Its tokens have no `jti`.
                token_id="oidc.circleci.com/job-id",  # noqa: S106  # the name of a claim
                run={"job": "oidc.circleci.com/job-id"},
            ),
            Provider(
                name="buildkite",
                issuer="https://agent.buildkite.com",
                pins=("pipeline_id", "organization_id"),
                repository="pipeline_slug",
                ref="build_branch",
                ref_prefix="refs/heads/",
                tag="build_tag",
                event="build_source",
                trusted_events=("webhook", "schedule"),
                scoped_by=("build_branch",),
                uses=1,
                run={"sha": "build_commit", "job": "job_id"},
                run_url="https://buildkite.com/{organization_slug}/{pipeline_slug}/builds/{build_number}",
            ),
            Provider(
                name="bitbucket",
                pins=("repositoryUuid",),
                ref="branchName",
                ref_prefix="refs/heads/",
                scoped_by=("branchName",),
                run={"job": "stepUuid", "pipeline": "pipelineUuid"},
            ),
            Provider(
                name="azure",
                audience="api://AzureADTokenExchange",
                pins=("def_id", "prj_id", "org_id"),
                ref="rpo_ref",
                scoped_by=("rpo_ref",),
                uses=1,
                run={"sha": "rpo_ver"},
            ),
            Provider(name="jenkins"),
            Provider(name=GENERIC),
        )
    }
)


def described(claims: Claims) -> str:
    """The job of these claims, for an error: `repository 74 (acme/web), refs/heads/main, push`."""
    texts = _texts(claims)
    for provider in PROVIDERS.values():
        if provider.pins and all(texts.get(pin) for pin in provider.pins):
            named = texts.get(provider.repository) if provider.repository else None
            parts = [
                f"repository {texts[provider.pins[0]]}" + (f" ({named})" if named else ""),
                texts.get(provider.ref) if provider.ref else None,
                texts.get(provider.event) if provider.event else None,
            ]
            return shown(", ".join(part for part in parts if part))
    return shown(f"subject {texts.get('sub')}")


def _texts(claims: Claims) -> dict[str, str]:
    """The claims as texts. Those that are no text, number or truth value are left out: they count as missing."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in claims.items()
        if isinstance(value, bool | int | str)
    }


def shown(text: str) -> str:
    """Text of a token, cut and without control characters, for a message or a list."""
    return "".join(c if c.isprintable() else "?" for c in text[:300])
