"""What to do about an unexpected response."""

import re

from larder_cli.http import Answer

_NO_LARDER = "the server is not Larder: give the stack's ApiUrl, or your own domain, without a path"
_BY_CODE = {
    "unauthorized": "the key is mistyped, expired, disabled or used up: `larder keys list --user` shows it,"
    " `larder keys create` creates another",
    "account_soft_blocked": "the team or user is blocked: unblock it with `larder teams set TEAM --unblock`",
    "payment_missing": "the team or user is blocked: unblock it with `larder teams set TEAM --unblock`",
    "not_a_team_member": "the key has no access to this team: choose another with --team (TEAM=), or add the key's"
    " user with `larder teams add-member`",
    "read_only": "this key, or the role of its user, is read-only: use a key that can write",
    "missing_permission": "the key lacks a permission: use one with artifacts=read,write",
    "not_found": "Larder responds, but not at this path: give the stack's ApiUrl, or your own domain, without a path",
    "remote_caching_disabled": "caching is disabled: `larder teams set TEAM --caching enabled`",
    "remote_caching_paused": "caching is paused: `larder teams set TEAM --caching enabled`",
    "remote_caching_over_limit": "the team has used up its quota: raise it with `larder teams set TEAM --quota`",
    "rate_limited": "the key's own rate limit is used up: use a key without one",
    "internal_error": "an error in Larder: the log has it as `unforeseen error` (docs/operations.md, ApiFailing)",
    "try_again": "DynamoDB or S3 did not respond: run this again; if it persists, see docs/operations.md, ApiFailing",
}
_FEW = (
    "If the log does not have the request, Lambda refused it, because the account runs too many functions at once, as "
    "new accounts do: see ConcurrentExecutions of `aws lambda get-account-settings`"
)
_BY_STATUS_OF_THE_GATEWAY = {
    403: "the domain is not mapped to this API, or a firewall blocks it: docs/deploy.md, Custom domain",
    404: _NO_LARDER,
    429: "the API throttles requests: raise ThrottlingRate and ThrottlingBurst",
    500: f"the function failed, or the API may not invoke it: read its log (docs/operations.md, ApiFailing). {_FEW}",
    503: f"the function took too long: read its log (docs/operations.md, ApiSlow). {_FEW}",
}
_BY_CODE_OF_S3 = {
    "AccessDenied": "S3 rejects the signed URL: a policy of your organisation may forbid it, or the URL has expired"
    " (check this machine's clock)",
    "SignatureDoesNotMatch": "something between here and S3 changes the URL or the headers, most likely a proxy",
    "RequestTimeTooSkewed": "this machine's clock is wrong",
    "EntityTooLarge": "the upload is larger than S3's limit for one request, 5 GB",
}
_BY_CODE_OF_EDGE = {
    "no_such_address": "the edge does not know the key of the address: `larder edge status` shows its keys",
    "address_expired": "the address has expired: check this machine's clock",
}
_CODE_OF_S3 = re.compile(rb"<Code>(\w+)</Code>")


def summary(answer: Answer) -> str:
    """The status with the error code and message, or with the beginning of the body."""
    if answer.code is not None:
        return f"{answer.status} {answer.code}: {answer.json.get('message')}"
    text = answer.body[:80].decode(errors="replace").split("\n")[0].strip()
    return f"{answer.status} {text}" if text else str(answer.status)


def about(answer: Answer) -> str:
    """What to do about an unexpected response of the API."""
    if answer.code in _BY_CODE:
        return _BY_CODE[answer.code]
    if answer.is_the_gateways and answer.status in _BY_STATUS_OF_THE_GATEWAY:
        return _BY_STATUS_OF_THE_GATEWAY[answer.status]
    if answer.code is None and not answer.is_the_gateways:
        return f"{_NO_LARDER}; or a proxy in front of it responds by itself"
    return "see the code in docs/errors.md and the request in the function's log"


def about_storage(answer: Answer, *, by_edge: bool = False) -> str:
    """What to do about an unexpected response of S3 or the edge."""
    if by_edge:
        error = answer.json.get("error") if isinstance(answer.json, dict) else None
        code = str(error.get("code")) if isinstance(error, dict) else ""
        return _BY_CODE_OF_EDGE.get(
            code,
            "check that the bucket's policy and its key let the edge in (docs/edge.md). Until then, "
            "`larder edge disable` gives clients URLs of S3",
        )
    found = _CODE_OF_S3.search(answer.body)
    code = found[1].decode() if found else ""
    return _BY_CODE_OF_S3.get(code, "the response comes from S3, or from a proxy in front of it")
