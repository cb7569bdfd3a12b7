"""The texts of emails. Every value is escaped for HTML, and a header never has a line break.

No email contains the name of a user. A name is free text, and anyone can sign up with another person's address: Larder
would deliver their message to that person. For the same reason emails show the slug of a team, not its name.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from types import MappingProxyType

from larder.mail.models import Message

_TEXT = """\
{title}

{lead}

{url}

{note}

--
{product}
"""

_HTML = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
</head>
<body style="margin:0;padding:32px 16px;background:#faf8f5;color:#1c1917;\
font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif">
<div style="max-width:520px;margin:0 auto;padding:32px;background:#ffffff;border:1px solid #e2ddd6;border-radius:8px">
<h1 style="margin:0 0 16px;font-size:22px;line-height:1.3">{title}</h1>
<p style="margin:0 0 24px">{lead}</p>
<p style="margin:0 0 24px"><a href="{url}" style="display:inline-block;padding:12px 20px;background:#b45309;\
color:#ffffff;font-weight:600;text-decoration:none;border-radius:6px">{action}</a></p>
<p style="margin:0 0 24px;font-size:14px;color:#57534e">If the button does not work, open this address:<br>
<a href="{url}" style="color:#92400e;word-break:break-all">{url}</a></p>
<p style="margin:0;font-size:14px;color:#57534e">{note}</p>
</div>
<p style="max-width:520px;margin:16px auto 0;text-align:center;font-size:13px;color:#57534e">{product}</p>
</body>
</html>
"""


def verify_email(*, to: str, product: str, url: str) -> Message:
    """Ask the user to verify their address. `url` is the link."""
    return _message(
        to,
        product,
        title="Verify your address",
        lead="You, or someone else, used the address {to} at {product}. "
        "Open this link to verify that it is yours. If you are signed in, open it in the same browser:",
        action="Verify your address",
        url=url,
        note="The link works for one hour. If it was not you, ignore this email. The address then stays unverified.",
    )


def change_email(*, to: str, product: str, url: str) -> Message:
    """Ask the user to confirm a new address. Send it to that address. `url` is the link."""
    return _message(
        to,
        product,
        title="Confirm your new address",
        lead="You, or someone else, asked to use {to} as the new address of an account at {product}. "
        "Open this link to confirm that it is yours:",
        action="Use this address",
        url=url,
        note="The link works for one hour. If it was not you, ignore this email, and nothing changes.",
    )


def confirm_email_change(*, to: str, product: str, url: str, new_email: str) -> Message:
    """Ask the user to confirm a change of address. Send it to the current address. `url` is the link.

    The email shows only the first letter and the domain of the new address, like that of `email_was_changed`.
    """
    return _message(
        to,
        product,
        title="Confirm the change of your address",
        lead="Someone who is signed in to your account at {product} asked to change its address from {to} to {new}. "
        "If it was you, open this link and confirm the change. We then send another link to the new address:",
        action="Change the address",
        url=url,
        note="The link works for one hour. If it was not you, do not open it: someone else is signed in to your "
        "account. Reset your password, which signs out all browsers.",
        values={"new": _masked(new_email)},
    )


def reset_password(*, to: str, product: str, url: str) -> Message:
    """Let the user choose a new password. `url` is the link."""
    return _message(
        to,
        product,
        title="Reset your password",
        lead="You, or someone else, asked to reset the password of {to} at {product}. "
        "Open this link to choose a new one:",
        action="Choose a new password",
        url=url,
        note="The link works once, for one hour. If it was not you, ignore this email. Your password stays the same.",
    )


def sign_in_with_provider(*, to: str, product: str, url: str, provider: str) -> Message:
    """Reply to a request for a reset link: no password works. `url` is the page to sign in, `provider` a name."""
    name = one_line(provider)
    return _message(
        to,
        product,
        title=f"Sign in with {name}",
        lead="You, or someone else, asked to reset the password of {to} at {product}. "
        "You do not need one: sign in with {provider}:",
        action="Go to {product}",
        url=url,
        values={"provider": name},
        note="If it was not you, ignore this email.",
    )


def access_ends(*, to: str, product: str, url: str, provider: str, ends_at: datetime) -> Message:
    """Warn a user whose sessions and keys end soon. `url` is the page to sign in, `provider` a name."""
    name = one_line(provider)
    return _message(
        to,
        product,
        title="Sign in to keep your keys",
        lead="Your API keys at {product} stop working on {ends_at}, because you have not signed in with {provider} for"
        " some time. Sign in once, and they keep working:",
        action="Sign in with {provider}",
        url=url,
        values={"provider": name, "ends_at": f"{ends_at.astimezone(UTC):%d %B %Y at %H:%M} UTC"},
        note="If you do not use {product} any more, ignore this email.",
    )


def password_was_reset(
    *, to: str, product: str, url: str, sessions_ended: bool, keys_deleted: bool
) -> Message:
    """Notify the user that a link changed the password, and what else that ended. `url` is the service's address."""
    sessions = "Browsers that were signed in to the account stay signed in."
    if sessions_ended:
        sessions = "All browsers that were signed in to the account have been signed out."
    keys = "The API keys of the account still work. Delete any that you do not recognize."
    if keys_deleted:
        keys = (
            "The API keys of the account were deleted, because no one who used it had confirmed before that they "
            "receive mail at this address. Create new ones."
        )
    return _message(
        to,
        product,
        title="Your password was changed",
        lead="The password of {to} at {product} was changed with a link that we sent to this address.",
        action="Go to {product}",
        url=url,
        note=f"{sessions} {keys} If you did not change the password, someone else can read your email. "
        "Secure your mailbox, then reset the password again.",
    )


def provider_linked(*, to: str, product: str, url: str, provider: str) -> Message:
    """Notify the user that they can now sign in with an identity provider. `url` is the service's address."""
    return _message(
        to,
        product,
        title="A new way to sign in",
        lead="An account at {provider} was linked to the account with the address {to} at {product}. "
        "It can now sign in to it:",
        action="Go to {product}",
        url=url,
        note="If it was not you, sign in, remove it under Account, and end all sessions. "
        "If you cannot, contact the operator of {product}.",
        values={"provider": provider},
    )


def email_was_changed(
    *,
    to: str,
    product: str,
    url: str,
    new_email: str,
    changed_at: datetime,
    by_operator: bool,
    by_provider: str = "",
) -> Message:
    """Notify the user's previous address that it was replaced by `new_email`. `url` is the service's address.

    The email shows only the first letter and the domain of the new address. Someone else may read this mailbox by now,
    and the part before the @ is free text, like a name.
    """
    how = "It was confirmed with a link that we sent to the new address."
    if_not_you = (
        "If it was not you, someone else is using your account, and you cannot recover it yourself. "
        "Contact the operator of {product} immediately."
    )
    if by_provider:
        how = "{provider}, which you sign in with, has this address for you now."
    if by_operator:
        how = "The operator of {product} changed it."
        if_not_you = "If you did not expect this, contact the operator."
    return _message(
        to,
        product,
        title="Your address was changed",
        # By now {to} may belong to another account, so the text is about "that account".
        lead="The account with the address {to} at {product} was changed to the address {new} on {when}. "
        + how,
        action="Go to {product}",
        url=url,
        note=f"You can no longer sign in to that account, or reset its password, with {{to}}. {if_not_you}",
        values={
            "new": _masked(new_email),
            "provider": by_provider,
            "when": f"{changed_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        },
    )


def key_never_expires(*, to: str, product: str, url: str, key_id: str, key_start: str) -> Message:
    """Notify the user of an API key that never expires. `url` is the service's address.

    The email shows neither the key's name nor its prefix, which are free text.
    """
    which = f" and it begins with {key_start} after its prefix" if key_start else ""
    return _message(
        to,
        product,
        title="An API key never expires",
        lead="An API key of the account {to} at {product} was created, or changed, so that it never expires. "
        f"Its id is {key_id}{which}.",
        action="Go to {product}",
        url=url,
        note="If it was not you, someone else can use your account. Reset your password, then delete the key and any "
        "others that you do not recognize.",
    )


def rule_pinned(*, to: str, product: str, url: str, team: str, rule_id: str) -> Message:
    """Notify an owner of a team that a rule for CI jobs is in use. `url` is the team's protection in the console.

    The email shows neither the name of the rule nor that of the repository, which are free text.
    """
    return _message(
        to,
        product,
        title=f"A rule of {team} is in use",
        lead=f"A CI job has used the rule {rule_id} of the team {team} at {{product}} for the first time. "
        "The rule is now fixed to the repository of that job, by ids that never change. The console shows them where "
        "you change the rule:",
        action="Look at the rules of the team",
        url=url,
        note="If nobody has just run CI in the repository of the rule, delete the rule: someone else may have taken "
        "the name of the repository.",
    )


def team_protected(*, to: str, product: str, url: str, team: str) -> Message:
    """Notify an owner that the team is protected. `url` is the service's address, and `team` the slug."""
    return _message(
        to,
        product,
        title="Your team is protected",
        lead=f"The team {team} at {{product}} is now protected. Its first trusted API key or rule for CI jobs has "
        "turned this on, or the operator. From now on, only trusted credentials write what everyone in the team "
        "restores. Others write to their own part of the cache. What was stored before is usually hidden, so the next "
        "builds start from an empty cache.",
        action="Go to {product}",
        url=url,
        note="An owner can turn the protection off. If you do not recognize this, look at the keys and the activity of "
        "the team in the console.",
    )


def team_unprotected(*, to: str, product: str, url: str, team: str) -> Message:
    """Notify an owner that the operator has ended the team's protection. The parameters are as above."""
    return _message(
        to,
        product,
        title="Your team is no longer protected",
        lead=f"The operator of {{product}} has ended the protection of the team {team}. From now on, every credential "
        "that can write to the cache writes what everyone in the team restores. Artifacts that were hidden are visible "
        "again.",
        action="Go to {product}",
        url=url,
        note="If you did not ask for this, contact the operator. An owner can protect the team again.",
    )


def trust_given(
    *, to: str, product: str, url: str, team: str, maker: str, rule_id: str, key_id: str
) -> Message:
    """Notify an owner of a new rule or of a new trusted key. `maker` is the address of the user who made it.

    `url` is the view of the team in the console that shows it.
    """
    what = f"rule {rule_id} for CI jobs" if rule_id else f"trusted API key {key_id}"
    return _message(
        to,
        product,
        title=f"New {'rule for CI jobs' if rule_id else 'trusted API key'} of {team}",
        lead=f"The team {team} at {{product}} has the new {what}. It was made by {{maker}}. "
        "In a protected team, it decides what everyone restores.",
        action="Look at it in the console",
        url=url,
        note="If you do not recognize it, delete it, and ask the person who made it. If it was not them, someone else "
        "uses their account: they have to reset their password.",
        values={"maker": maker},
    )


def maker_left(
    *,
    to: str,
    product: str,
    url: str,
    team: str,
    maker: str,
    rules: Sequence[str],
    keys: Sequence[str],
    known: Sequence[str],
    ending: Mapping[str, datetime],
) -> Message:
    """Notify an owner of what someone leaves behind who can no longer make rules and keys. The rest is as above.

    `known` are the team's keys whose secret they know. `ending` says which of these end, and when.
    """
    rules_text = (
        f" They added the rules {', '.join(rules)}, which still give tokens to CI jobs."
        if rules
        else ""
    )
    keys_text = f" Their trusted API keys no longer work: {', '.join(keys)}." if keys else ""
    if known:
        keys_text += f" They know these API keys of the team: {', '.join(known)}. Rotate them."
    ends = {f"{end:%-d %B %Y}" for end in ending.values()}
    for day in sorted(ends):
        ids = [key_id for key_id, end in ending.items() if f"{end:%-d %B %Y}" == day]
        keys_text += (
            f" {', '.join(ids)} will end on {day} unless an owner or admin rotates it before."
        )
    return _message(
        to,
        product,
        title=f"Check the rules and keys of {team}",
        lead=f"{{maker}} has left the team {team} at {{product}}, is no longer an owner or admin, or has lost all "
        f"access.{rules_text}{keys_text}",
        action=f"Look at the {'keys' if known else 'rules'} of the team",
        url=url,
        note="Delete rules that you do not need. With a rule for a repository of their own, or a key that they know, "
        "they still write what everyone in the team restores.",
        values={"maker": maker},
    )


def sign_up_again(*, to: str, product: str, url: str) -> Message:
    """Notify the owner of an account that someone tried to sign up with their address.

    The reply to that sign-up does not reveal that the account exists.
    """
    return _message(
        to,
        product,
        title="You already have an account",
        lead="You, or someone else, tried to sign up at {product} with the address {to}, which already has an account. "
        "Nothing has changed. Sign in with your password, or reset it if you forgot it:",
        action="Go to {product}",
        url=url,
        note="If it was not you, ignore this email.",
    )


def team_invitation(*, to: str, product: str, url: str, team: str) -> Message:
    """Invite the owner of an address to a team. `url` is the link, and `team` the team's slug."""
    return _message(
        to,
        product,
        title=f"Join the team {team}",
        lead=f"The team {team} invites {{to}} to share its build cache at {{product}}. "
        "Open this link to join. You sign in or sign up with this address:",
        action=f"Join {team}",
        url=url,
        note="The link works once, for seven days. If you do not know the team, ignore this email.",
    )


def one_line(text: str) -> str:
    """`text` without characters that could end a header or control a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _masked(email: str) -> str:
    local, _, domain = email.rpartition("@")
    return f"{local[:1]}***@{domain}"


def _message(
    to: str,
    product: str,
    *,
    title: str,
    url: str,
    values: Mapping[str, str] = MappingProxyType({}),
    **parts: str,
) -> Message:
    product = one_line(product)
    values = {"product": product, "to": to, **values}
    filled = {name: text.format_map(values) for name, text in parts.items()}
    filled |= {"title": title, "url": url, "product": product}
    return Message(
        to=to,
        subject=f"{product}: {title}",
        text=_TEXT.format_map(filled),
        html=_HTML.format_map({name: escape(text) for name, text in filled.items()}),
    )
