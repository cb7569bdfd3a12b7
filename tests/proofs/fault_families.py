"""How the end after a fault can differ from the undisturbed one, and how a repeated request can be refused. The fault
oracle accepts nothing else. docs/faults.md is generated from it.
"""

import re
from typing import NamedTuple


class Family(NamedTuple):
    """An end with more (`+`) or fewer (`-`) of some items."""

    signs: str
    items: str
    """A pattern of tests.proofs.fault_oracle.State."""
    seen: str
    """What users see."""
    requests: str
    """Those with such an end, as tests.proofs.fault_cases names them."""

    @property
    def of(self) -> list[str]:
        return self.requests.split("; ")

    def explains(self, line: str) -> bool:
        return line[0] in self.signs and re.match(self.items, line[2:]) is not None


FAMILIES = {
    "audited": Family(
        "+",
        r"audit ",
        "The audit has the change twice.",
        "POST /api/auth/sign-in/email; PUT /v1/artifacts/status; DELETE /v1/artifacts; POST "
        "/api/auth/api-key/create; POST /api/auth/api-key/update; POST /api/auth/revoke-other-sessions; PATCH "
        "/v1/teams/{idOrSlug}/rules/{ruleId}; POST /api/auth/delete-user; POST /api/auth/turbo-login; POST "
        "/v1/teams/{idOrSlug}/members; POST /v2/teams/{idOrSlug}/members; DELETE /v1/artifacts (of a user); "
        "POST /api/auth/api-key/create (the first trusted one); POST /api/auth/api-key/create (that replaces "
        "another); POST /api/auth/api-key/create (of the team, in place of a member's); POST "
        "/api/auth/api-key/create (of the team); SweepArtifacts (of a removal); RemoveArtifacts",
    ),
    "late": Family(
        "+-",
        r"audit .*(removal_done|member_removed)|teams \S+/left#",
        "A schedule completes it, so the audit has a later time, or counts less of what was deleted.",
        "DELETE /v1/artifacts; POST /api/auth/delete-user; DELETE /v1/artifacts (of a user); SweepArtifacts "
        "(of a removal); RemoveArtifacts",
    ),
    "session": Family(
        "+",
        r"identity (\S+/session#<>|session#<>/session) ",
        "A session stays that no client has, until it expires.",
        "POST /api/auth/sign-in/email",
    ),
    "no-session": Family(
        "-",
        r"identity (\S+/session#<>|session#<>/session) |audit .*signed_in",
        "The change is made, but it starts no session: sign in.",
        "POST /api/auth/sign-up/email; POST /api/auth/change-password",
    ),
    "key": Family(
        "+",
        r"api-keys (<>|#metadata#<>)",
        "A key stays that no client has. It is listed, and expires in its time.",
        "POST /api/auth/api-key/create; POST /api/auth/turbo-login; POST /api/auth/api-key/create (the first "
        "trusted one); POST /api/auth/api-key/create (that replaces another); POST /api/auth/api-key/create "
        "(of the team, in place of a member's); POST /api/auth/api-key/create (of the team)",
    ),
    "link": Family(
        "+",
        r"teams invitation#<>/",
        "Two links of the invitation work.",
        "POST /v1/teams/{idOrSlug}/members; POST /v2/teams/{idOrSlug}/members; SendAccountEmail (team_invitation)",
    ),
    "mailed": Family(
        "+",
        r"(outbox|mail) ",
        "A message arrives twice.",
        "POST /api/auth/sign-up/email; POST /api/auth/confirm-email-change; POST "
        "/api/auth/request-password-reset; POST /v1/teams/{idOrSlug}/rules; POST /api/auth/reset-password; "
        "POST /api/auth/change-email; POST /v1/teams/{idOrSlug}/members; POST /v2/teams/{idOrSlug}/members; "
        "POST /api/auth/api-key/create (the first trusted one); POST /api/auth/sign-up/email (with "
        "verification); POST /api/auth/api-key/create (that replaces another); GET /api/auth/verify-email (of "
        "a new address); POST /api/auth/api-key/create (of the team, in place of a member's); POST "
        "/api/auth/api-key/create (of the team); GET /api/auth/callback/{id} (of an account that a stranger "
        "made); POST /v1/teams/{idOrSlug}/rules (the first); SendAccountEmail (reset_password); "
        "SendAccountEmail (email_changed); SendAccountEmail (team_invitation); SendAccountEmail (by SES)",
    ),
    "unmailed": Family(
        "-",
        r"(outbox|mail) |teams invitation#<>/",
        "A message is not sent. Ask for another link; notices get lost.",
        "POST /api/auth/sign-up/email; POST /v1/teams/{idOrSlug}/rules; POST /api/auth/reset-password; POST "
        "/api/auth/api-key/create (the first trusted one); POST /api/auth/sign-up/email (with verification); "
        "POST /api/auth/api-key/create (that replaces another); GET /api/auth/verify-email (of a new "
        "address); POST /api/auth/api-key/create (of the team, in place of a member's); POST "
        "/api/auth/api-key/create (of the team); GET /api/auth/callback/{id} (of an account that a stranger "
        "made); POST /v1/teams/{idOrSlug}/rules (the first); SendAccountEmail (reset_password); "
        "SendAccountEmail (email_changed); SendAccountEmail (team_invitation); SendAccountEmail (by SES)",
    ),
    "figures": Family(
        "+-",
        r"usage (?!\S+/run#)",
        "An upload or a batch of events counts again, or on another day, in the usage figures.",
        "PUT /v8/artifacts/{hash}; POST /v8/artifacts/events; PUT /v8/artifacts/{hash} (that replaces "
        "another); PUT /v8/artifacts/{hash} (that makes room); GET /v8/artifacts/{hash} (of an upload that "
        "has just arrived); HEAD /v8/artifacts/{hash} (of an upload that has just arrived); POST "
        "/v8/artifacts (of an upload that has just arrived); CommitUpload; CommitUpload (that "
        "replaces another); SweepArtifacts",
    ),
    "counted": Family(
        "+-",
        r"teams \S+/team .*invitations_made",
        "The invitation counts twice for the limit of the team.",
        "POST /v1/teams/{idOrSlug}/members; POST /v2/teams/{idOrSlug}/members",
    ),
    "uses": Family(
        "+-",
        r"api-keys [^#<]",
        "Each attempt takes a use of the key, or counts for its rate limit: three at most. The last use never "
        "succeeds twice.",
        "POST /api/auth/api-key/verify (with an allowance); POST /api/auth/api-key/verify (a refill is due); "
        "POST /api/auth/api-key/verify (with a rate limit)",
    ),
    "kept": Family(
        "+",
        r"api-keys [^<]",
        "A key without uses stays until it is verified again.",
        "POST /api/auth/api-key/verify (the last use)",
    ),
    "skipped": Family(
        "+-",
        r"artifacts \S+/(#refused#|#storage|x45347b63f)|identity sso-providers/|"
        r"usage \S+/(run|point)#|bucket inputs/|api-keys [^#<]",
        "Left out is what the reply does not need: the time of a last use or sign-in, the note of a refused "
        "upload, the inputs of a run, its place in trends.",
        "PUT /v8/artifacts/{hash} (refused); GET /api/auth/callback/{id} (that signs in); GET "
        "/api/auth/callback/{id} (of an account that a stranger made); CommitUpload (over the quota); POST "
        "/v1/runs; POST /v1/runs (with inputs); GET /v8/artifacts/{hash} (with a known key); HEAD "
        "/v8/artifacts/{hash} (with a known key); GET /v8/artifacts/status (with a known key); "
        "GET /v8/artifacts/{hash} (that records a "
        "use)",
    ),
    "evicted": Family(
        "+-",
        r"(artifacts|bucket) ",
        "One more artifact is evicted, or the eviction waits for the next upload.",
        "PUT /v8/artifacts/{hash} (that makes room); RemoveArtifacts (to make room)",
    ),
    "unreferenced": Family(
        "+",
        r"bucket ",
        "An object to which nothing refers stays until the lifecycle of the bucket deletes it.",
        "CommitUpload (of an earlier upload than the published one); PUT /v8/artifacts/{hash}; PUT "
        "/v8/artifacts/{hash} (that replaces another); PUT /v8/artifacts/{hash} (refused)",
    ),
}

IN_PARTS = {
    "PUT /v8/artifacts/{hash} (that makes room)", "RemoveArtifacts", "RemoveArtifacts (to make room)",
    "SweepArtifacts (of a removal)",
}  # fmt: skip
"""Those that change one thing after the other: meanwhile, a list shows some from before and some from after."""

REFUSALS = {
    "200 usage_exceeded": "The first request took the key's last use.",
    "200 invalid_api_key": "The first request took the key's last use, and the key is deleted.",
    "302 state_mismatch": "The person is signed in with a session that no browser has. Sign in again.",
    "400 invalid_password": "The password is changed.",
    "400 invalid_request": "The id token has given a key, which expires in its time. Get another id token.",
    "400 account_not_found": "The account is unlinked.",
    "400 failed_to_unlink_last_account": "The account is unlinked, and one way to sign in is left.",
    "400 invalid_token": "The link is used, and the password is changed.",
    "401 unauthorized": "The session or key is revoked, or the user is deleted.",
    "401 invalid_login_code": "The code is used. Its key is listed, and expires in its time. Log in again.",
    "404 key_not_found": "The key is deleted.",
    "404 rule_not_found": "The rule is deleted.",
    "404 team_not_found": "The team is deleted.",
    "404 member_not_found": "The member is removed, or the invitation withdrawn.",
    "404 invitation_not_found": "The invitation is accepted, and the user is a member.",
    "409 slug_taken": "The team exists, and the caller owns it.",
    "409 rule_exists": "The rule exists: list the rules.",
    "422 user_already_exists_use_another_email": "The user exists: sign in.",
}
"""By the reply to a repeated request: what it means."""
