"""The texts of emails, one row for each. Every value is escaped for HTML, and a header never has a line break.

`{to}` is the recipient, `{product}` the name of this deployment. No email contains the name of a user. A name is free
text, and anyone can sign up with another person's address: Larder would deliver their message to that person. For the
same reason emails show the slug of a team, not its name, and the ids of keys and rules.
"""

from html import escape
from typing import NamedTuple

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


class Text(NamedTuple):
    """The parts of an email. `action` is the label of the link, and `note` stands under it."""

    title: str
    lead: str
    action: str
    note: str


TEXTS = {
    "verify_email": Text(
        "Verify your address",
        "You, or someone else, used the address {to} at {product}. "
        "Open this link to verify that it is yours. If you are signed in, open it in the same browser:",
        "Verify your address",
        "The link works for one hour. If it was not you, ignore this email. The address then stays unverified.",
    ),
    "change_email": Text(
        "Confirm your new address",
        "You, or someone else, asked to use {to} as the new address of an account at {product}. "
        "Open this link to confirm that it is yours:",
        "Use this address",
        "The link works for one hour. If it was not you, ignore this email, and nothing changes.",
    ),
    "confirm_email_change": Text(
        "Confirm the change of your address",
        "Someone who is signed in to your account at {product} asked to change its address from {to} to {new}. "
        "If it was you, open this link and confirm the change. We then send another link to the new address:",
        "Change the address",
        "The link works for one hour. If it was not you, do not open it: someone else is signed in to your "
        "account. Reset your password, which signs out all browsers.",
    ),
    "reset_password": Text(
        "Reset your password",
        "You, or someone else, asked to reset the password of {to} at {product}. Open this link to choose a new one:",
        "Choose a new password",
        "The link works once, for one hour. If it was not you, ignore this email. Your password stays the same.",
    ),
    "sign_in_with_provider": Text(
        "Sign in with {provider}",
        "You, or someone else, asked to reset the password of {to} at {product}. "
        "You do not need one: sign in with {provider}:",
        "Go to {product}",
        "If it was not you, ignore this email.",
    ),
    "sign_up_again": Text(
        "You already have an account",
        "You, or someone else, tried to sign up at {product} with the address {to}, which already has an account. "
        "Nothing has changed. Sign in with your password, or reset it if you forgot it:",
        "Go to {product}",
        "If it was not you, ignore this email.",
    ),
    "access_ends": Text(
        "Sign in to keep your keys",
        "Your API keys at {product} stop working on {ends_at}, because you have not signed in with {provider} for"
        " some time. Sign in once, and they keep working:",
        "Sign in with {provider}",
        "If you do not use {product} any more, ignore this email.",
    ),
    "password_reset": Text(
        "Your password was changed",
        "The password of {to} at {product} was changed with a link that we sent to this address.",
        "Go to {product}",
        "{sessions} {keys} If you did not change the password, someone else can read your email. "
        "Secure your mailbox, then reset the password again.",
    ),
    "provider_linked": Text(
        "A new way to sign in",
        "An account at {provider} was linked to the account with the address {to} at {product}. "
        "It can now sign in to it:",
        "Go to {product}",
        "If it was not you, sign in, remove it under Account, and end all sessions. "
        "If you cannot, contact the operator of {product}.",
    ),
    # By now {to} may belong to another account, so the text is about "that account".
    "email_changed": Text(
        "Your address was changed",
        "The account with the address {to} at {product} was changed to the address {new} on {when}. {how}",
        "Go to {product}",
        "You can no longer sign in to that account, or reset its password, with {to}. {if_not_you}",
    ),
    "key_never_expires": Text(
        "An API key never expires",
        "An API key of the account {to} at {product} was created, or changed, so that it never expires. "
        "Its id is {which}.",
        "Go to {product}",
        "If it was not you, someone else can use your account. Reset your password, then delete the key and any "
        "others that you do not recognize.",
    ),
    "rule_pinned": Text(
        "A rule of {team} is in use",
        "A CI job has used the rule {rule} of the team {team} at {product} for the first time. "
        "The rule is now fixed to the repository of that job, by ids that never change. The console shows them where "
        "you change the rule:",
        "Look at the rules of the team",
        "If nobody has just run CI in the repository of the rule, delete the rule: someone else may have taken "
        "the name of the repository.",
    ),
    "team_protected": Text(
        "Your team is protected",
        "The team {team} at {product} is now protected. Its first trusted API key or rule for CI jobs has "
        "turned this on, or the operator. From now on, only trusted credentials write what everyone in the team "
        "restores. Others write to their own part of the cache. What was stored before is usually hidden, so the next "
        "builds start from an empty cache.",
        "Go to {product}",
        "An owner can turn the protection off. If you do not recognize this, look at the keys and the activity of "
        "the team in the console.",
    ),
    "team_unprotected": Text(
        "Your team is no longer protected",
        "The operator of {product} has ended the protection of the team {team}. From now on, every credential "
        "that can write to the cache writes what everyone in the team restores. Artifacts that were hidden are visible "
        "again.",
        "Go to {product}",
        "If you did not ask for this, contact the operator. An owner can protect the team again.",
    ),
    "trust_given": Text(
        "New {what} of {team}",
        "The team {team} at {product} has the new {which}. It was made by {maker}. "
        "In a protected team, it decides what everyone restores.",
        "Look at it in the console",
        "If you do not recognize it, delete it, and ask the person who made it. If it was not them, someone else "
        "uses their account: they have to reset their password.",
    ),
    "maker_left": Text(
        "Check the rules and keys of {team}",
        "{maker} has left the team {team} at {product}, is no longer an owner or admin, or has lost all access. {left}",
        "Look at the {view} of the team",
        "Delete rules that you do not need. With a rule for a repository of their own, or a key that they know, "
        "they still write what everyone in the team restores.",
    ),
    "key_paused": Text(
        "A public read key of {team} has reached its bound",
        "The public read key {key} of the team {team} at {product} has given all that it may on {day} (UTC). Until the"
        " end of that day, builds with it go on without the cache. Then it works again.",
        "Look at it in the console",
        "If your own builds need more, replace it by a key with higher bounds. If someone else uses it up, delete it.",
    ),
    "team_invitation": Text(
        "Join the team {team}",
        "The team {team} invites {to} to share its build cache at {product}. "
        "Open this link to join. You sign in or sign up with this address:",
        "Join {team}",
        "The link works once, for seven days. If you do not know the team, ignore this email.",
    ),
}


def message(text: str, *, to: str, product: str, url: str, **values: str) -> Message:
    """The email of TEXTS[text], whose link is `url`. Raises ValueError for a control character in the address."""
    values = {name: one_line(value) for name, value in values.items()}
    values |= {"to": to, "product": one_line(product)}
    parts = {name: part.format_map(values).strip() for name, part in TEXTS[text]._asdict().items()}
    parts |= {"url": url, "product": values["product"]}
    return Message(
        to=to,
        subject=f"{values['product']}: {parts['title']}",
        text=_TEXT.format_map(parts),
        html=_HTML.format_map({name: escape(part) for name, part in parts.items()}),
    )


def one_line(text: str) -> str:
    """`text` without characters that could end a header or control a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def masked(email: str) -> str:
    """The first letter and the domain of an address: the rest is free text, like a name."""
    local, _, domain = email.rpartition("@")
    return f"{local[:1]}***@{domain}"
