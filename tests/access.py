"""Who can send each request of the cache and of teams, and in which state of the team.

This is the contract. tests/functions/test_access.py sends each request in each role, status and kind of block, and
docs/teams.md has the states (`tools.generate.access`). A new endpoint gets a row here.
"""

TABLE = """
                                 OWNER ADMIN MEMBER DEVELOPER VIEWER | enabled disabled paused over_limit | blocked
PUT     /v8/artifacts/{hash}     yes   yes   yes    yes       reads  | yes     off      off    off        | 402
OPTIONS /v8/artifacts/{hash}     yes   yes   yes    yes       reads  | yes     off      off    off        | 402
GET     /v8/artifacts/{hash}     yes   yes   yes    yes       yes    | yes     off      off    yes        | 402
HEAD    /v8/artifacts/{hash}     yes   yes   yes    yes       yes    | yes     off      off    yes        | 402
POST    /v8/artifacts            yes   yes   yes    yes       yes    | yes     off      off    yes        | 402
POST    /v8/artifacts/events     yes   yes   yes    yes       yes    | yes     yes      yes    yes        | 402
GET     /v8/artifacts/status     yes   yes   yes    yes       yes    | yes     yes      yes    yes        | 402
OPTIONS /v8/artifacts            yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
OPTIONS /v8/artifacts/events     yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
OPTIONS /v8/artifacts/status     yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
PUT     /v1/artifacts/status     yes   role  role   role      role   | yes     yes      yes    yes        | 402
GET     /v1/artifacts            yes   yes   role   role      role   | yes     yes      yes    yes        | 402
GET     /v1/artifacts/removals   yes   yes   role   role      role   | yes     yes      yes    yes        | 402
GET     /v1/artifacts/{hash}     yes   yes   role   role      role   | yes     yes      yes    yes        | 402
DELETE  /v1/artifacts/{hash}     yes   yes   role   role      role   | yes     yes      yes    yes        | 402
DELETE  /v1/artifacts            yes   yes   role   role      role   | yes     yes      yes    yes        | 402
GET     /v1/usage                yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
GET     /v1/usage/metrics        yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
GET     /v1/usage/by             yes   yes   role   role      role   | yes     yes      yes    yes        | 402
GET     /v1/storage              yes   yes   role   role      role   | yes     yes      yes    yes        | 402
GET     /v1/audit                yes   yes   role   role      role   | yes     yes      yes    yes        | yes
POST    /v1/causes               yes   yes   yes    yes       yes    | yes     yes      yes    yes        | 402
POST    /v1/runs                 yes   yes   yes    yes       reads  | yes     yes      yes    yes        | 402
GET     /v1/runs                 yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
GET     /v1/runs/{runId}         yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
GET     /v1/tasks/history        yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
DELETE  /v1/runs                 yes   yes   role   role      reads  | yes     yes      yes    yes        | 402
GET     /v2/user                 yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
GET     /v2/teams                yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
GET     /v2/teams/{idOrSlug}     yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
GET     /v5/user/tokens/current  yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
DELETE  /v3/user/tokens/current  yes   yes   yes    yes       yes    | yes     yes      yes    yes        | yes
PATCH   /v2/teams/{idOrSlug}     yes   yes   role   role      role   | yes     yes      yes    yes        | 402
GET     /v3/teams/{idOrSlug}/members        yes yes yes  yes  yes    | yes     yes      yes    yes        | yes
POST    /v2/teams/{idOrSlug}/members        yes yes role role role   | yes     yes      yes    yes        | 402
POST    /v1/teams/{idOrSlug}/members        yes yes role role role   | yes     yes      yes    yes        | 402
PATCH   /v1/teams/{idOrSlug}/members/{uid}  yes yes role role role   | yes     yes      yes    yes        | yes
DELETE  /v1/teams/{idOrSlug}/members/{uid}  yes yes role role role   | yes     yes      yes    yes        | yes
GET     /v1/teams/{idOrSlug}/keys           yes yes role role role   | yes     yes      yes    yes        | yes
DELETE  /v1/teams/{idOrSlug}/keys/{keyId}   yes yes role role role   | yes     yes      yes    yes        | yes
GET     /v1/teams/{idOrSlug}/rules          yes yes yes  yes  yes    | yes     yes      yes    yes        | yes
POST    /v1/teams/{idOrSlug}/rules          yes yes role role role   | yes     yes      yes    yes        | 402
GET     /v1/teams/{idOrSlug}/rules/{ruleId} yes yes yes  yes  yes    | yes     yes      yes    yes        | yes
PATCH   /v1/teams/{idOrSlug}/rules/{ruleId} yes yes role role role   | yes     yes      yes    yes        | 402
DELETE  /v1/teams/{idOrSlug}/rules/{ruleId} yes yes role role role   | yes     yes      yes    yes        | 402
POST    /v1/teams/{idOrSlug}/rules/explain  yes yes role role role   | yes     yes      yes    yes        | 402
GET     /v1/teams/{idOrSlug}/protection     yes yes yes  yes  yes    | yes     yes      yes    yes        | yes
PUT     /v1/teams/{idOrSlug}/protection     yes yes role role role   | yes     yes      yes    yes        | 402
GET     /v1/teams/{idOrSlug}/scopes         yes yes role role role   | yes     yes      yes    yes        | yes
DELETE  /v1/teams/{idOrSlug}     yes   role  role   role      role   | yes     yes      yes    yes        | 402
"""
"""The outcome of a request for each role, and for an owner in each caching status and when blocked for either reason.
It is the same for a session and for a key with every permission, except for `IN_PERSON` and `MAKES_TRUST`. The words
are those of `refusal` in tests/functions/test_access.py.
"""

IN_PERSON = {"PUT /v1/teams/{idOrSlug}/protection"}
"""Endpoints that refuse every key."""

MAKES_TRUST = {
    "POST /v1/teams/{idOrSlug}/rules",
    "PATCH /v1/teams/{idOrSlug}/rules/{ruleId}",
    "PATCH /v1/teams/{idOrSlug}/members/{uid}",
}
"""Endpoints that refuse a key where a session passes, because the request makes something that is trusted."""

INDEPENDENT_PREFIXES = ("/api/auth/", "/login/oauth/", "/registration/verify")
"""Prefixes of paths that do not depend on a role or a caching status, because they only concern the user. Pages do not
depend on them either.
"""

INDEPENDENT_ENDPOINTS = {
    "POST /v1/teams",
    "POST /v1/teams/invitation",
    "POST /v1/teams/join",
    "POST /v1/teams/{idOrSlug}/members/teams/join",
}
"""Requests that make the caller a member, or lead to that, do not depend on a role or a caching status either."""


def rows() -> dict[str, dict[str, str]]:
    """For each endpoint, the word under each title."""
    titles, *lines = (line.replace("|", " ").split() for line in TABLE.strip().splitlines())
    return {f"{method} {path}": dict(zip(titles, words, strict=True)) for method, path, *words in lines}


ROWS = rows()
