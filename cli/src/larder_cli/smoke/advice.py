"""What to do about an answer that should not be."""

import re

from larder_cli.smoke.http import Answer, Unreachable

_NO_LARDER = (
    "what answers there is no Larder: give the stack's ApiUrl, or your own domain, without a path"
)
_BY_CODE = {
    "unauthorized": "the key is mistyped, expired, switched off or used up: `larder keys list --user` shows it,"
    " `larder keys create` makes another",
    "account_soft_blocked": "the team or user is blocked: lift it by `larder teams set TEAM --unblock`",
    "payment_missing": "the team or user is blocked: lift it by `larder teams set TEAM --unblock`",
    "not_a_team_member": "the key does not act for this team: say the right one by --team (TEAM=), or add the key's"
    " user by `larder teams add-member`",
    "read_only": "this key, or the role of its user, only reads: take one that writes",
    "missing_permission": "the key lacks a permission: take one with artifacts=read,write",
    "not_found": "Larder answers, but not at this path: give the stack's ApiUrl, or your own domain, without a path",
    "remote_caching_disabled": "caching is switched off: `larder teams set TEAM --caching enabled`",
    "remote_caching_paused": "caching is paused: `larder teams set TEAM --caching enabled`",
    "remote_caching_over_limit": "the team has used up its quota: raise it by `larder teams set TEAM --quota`",
    "rate_limited": "the key's own rate limit is used up: take a key without one",
    "internal_error": "a fault of Larder's: the log has it as `unforeseen error` (docs/operations.md, ApiFailing)",
    "try_again": "DynamoDB or S3 did not answer: run this again; if it stays, docs/operations.md, ApiFailing",
}
_BY_STATUS_OF_THE_GATEWAY = {
    403: "the domain is not mapped to this API, or a firewall refuses: docs/operations.md, A domain of your own",
    404: _NO_LARDER,
    429: "the API's throttling refuses: raise ThrottlingRate and ThrottlingBurst",
    500: "the function failed or may not be called: read its log (docs/operations.md, ApiFailing)",
    503: "the function took too long: read its log (docs/operations.md, ApiSlow)",
}
_BY_CODE_OF_S3 = {
    "AccessDenied": "S3 refuses what the function signed: a policy of your organisation may forbid it, or the address"
    " has expired: is this machine's clock right?",
    "SignatureDoesNotMatch": "something between here and S3 changes the address or the headers: a proxy, most likely",
    "RequestTimeTooSkewed": "this machine's clock is wrong",
    "EntityTooLarge": "more than S3 takes at once, 5 GB",
}
_CODE_OF_S3 = re.compile(rb"<Code>(\w+)</Code>")

_NO_ADDRESS = (
    "there is no such host: check the address, and that a new domain's DNS record has spread"
)
_BY_WORDS = (
    ("CERTIFICATE_VERIFY_FAILED", "the certificate is not trusted: if it is your company's, name it in SSL_CERT_FILE"),
    ("Name or service not known", _NO_ADDRESS),
    ("nodename nor servname", _NO_ADDRESS),
    ("name resolution", _NO_ADDRESS),
    ("refused", "nothing listens there: check host and port, and whether it runs"),
    ("timed out", "no answer in time: a firewall, a VPN that is off, or a service that hangs"),
)  # fmt: skip


def told(answer: Answer) -> str:
    """The answer in a few words."""
    if answer.code is not None:
        return f"{answer.status} {answer.code}: {answer.json.get('message')}"
    text = answer.body[:80].decode(errors="replace").split("\n")[0].strip()
    return f"{answer.status} {text}" if text else str(answer.status)


def about(answer: Answer) -> str:
    """What to do about an answer of the API that was expected to be another."""
    if answer.code in _BY_CODE:
        return _BY_CODE[answer.code]
    if answer.is_the_gateways and answer.status in _BY_STATUS_OF_THE_GATEWAY:
        return _BY_STATUS_OF_THE_GATEWAY[answer.status]
    if answer.code is None and not answer.is_the_gateways:
        return f"{_NO_LARDER}; or a proxy in front of it answers by itself"
    return "docs/errors.md explains the code; the function's log has the request"


def about_s3(answer: Answer) -> str:
    found = _CODE_OF_S3.search(answer.body)
    code = found[1].decode() if found else ""
    return _BY_CODE_OF_S3.get(code, "the answer is S3's, or of a proxy in front of it")


def about_silence(reason: Unreachable) -> str:
    for words, advice in _BY_WORDS:
        if words in str(reason):
            return advice
    return "check the address and the network; no proxy of the environment is used here"
