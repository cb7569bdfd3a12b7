"""What mail says. Every value is escaped where it enters HTML, and headers are made of one line.

A person's name is in none of them: whoever signs up chooses it, and the address may be somebody else's. Larder would
deliver any sentence that fits into a name. A team is called by its slug for the same reason.
"""

from collections.abc import Mapping
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
<body style="margin:0;padding:32px 16px;background:#f3f4f6;color:#1f2937;\
font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif">
<div style="max-width:520px;margin:0 auto;padding:32px;background:#ffffff;border:1px solid #e5e7eb;border-radius:8px">
<h1 style="margin:0 0 16px;font-size:22px;line-height:1.3">{title}</h1>
<p style="margin:0 0 24px">{lead}</p>
<p style="margin:0 0 24px"><a href="{url}" style="display:inline-block;padding:12px 20px;background:#1d4ed8;\
color:#ffffff;font-weight:600;text-decoration:none;border-radius:6px">{action}</a></p>
<p style="margin:0 0 24px;font-size:14px;color:#4b5563">The button does not work? Open this address:<br>
<a href="{url}" style="color:#1d4ed8;word-break:break-all">{url}</a></p>
<p style="margin:0;font-size:14px;color:#4b5563">{note}</p>
</div>
<p style="max-width:520px;margin:16px auto 0;text-align:center;font-size:13px;color:#6b7280">{product}</p>
</body>
</html>
"""


def verify_email(*, to: str, product: str, url: str) -> Message:
    """Prove that the address is yours. `url` is the link."""
    return _message(
        to,
        product,
        title="Verify your address",
        lead="Somebody, most likely you, gave {product} the address {to}. "
        "Open this link to confirm that it is yours:",
        action="Verify your address",
        url=url,
        note="The link works for one hour. If it was not you, do nothing, and the address stays unconfirmed.",
    )


def change_email(*, to: str, product: str, url: str) -> Message:
    """Take a new address on; it goes to that address. `url` is the link."""
    return _message(
        to,
        product,
        title="Confirm your new address",
        lead="Somebody, most likely you, wants {to} to be their address at {product}. "
        "Open this link to confirm that it is yours:",
        action="Use this address",
        url=url,
        note="The link works for one hour. If it was not you, do nothing, and nothing changes.",
    )


def reset_password(*, to: str, product: str, url: str) -> Message:
    """Choose another password. `url` is the link."""
    return _message(
        to,
        product,
        title="Reset your password",
        lead="Somebody, most likely you, asked for another password for {to} at {product}. "
        "Open this link to choose one:",
        action="Choose another password",
        url=url,
        note="The link works once, and for one hour. If it was not you, do nothing, and your password stays as it is.",
    )


def password_was_reset(
    *, to: str, product: str, url: str, sessions_ended: bool, keys_deleted: bool
) -> Message:
    """Notice that the password was changed by a link, and what ended with it. `url` is where the service is."""
    sessions = "Browsers that were signed in to the account stay signed in."
    if sessions_ended:
        sessions = "All browsers that were signed in to the account are signed out."
    keys = "API keys of the account still work: delete those that you do not know."
    if keys_deleted:
        keys = "Until then the address was not verified, so the API keys of the account were deleted: create new ones."
    return _message(
        to,
        product,
        title="Your password was changed",
        lead="The password of {to} at {product} was changed by a link that was sent to this address.",
        action="Go to {product}",
        url=url,
        note=f"{sessions} {keys} If you did not change the password, another person can read your mail: "
        "secure your mailbox, then reset the password again.",
    )


def email_was_changed(
    *, to: str, product: str, url: str, new_email: str, changed_at: datetime, by_operator: bool
) -> Message:
    """Notice to the address that somebody has left for `new_email`. `url` is where the service is.

    Of the new address it shows as much as its owner knows again: somebody else may read the mailbox by now, and the
    part before the @ is as free as a name.
    """
    how = "A link that was sent to the new address confirmed it."
    if_not_you = (
        "If it was not you, somebody else uses your account, and you cannot take it back by yourself: "
        "ask whoever runs {product} at once."
    )
    if by_operator:
        how = "Whoever runs {product} changed it."
        if_not_you = "If you did not expect that, ask them."
    return _message(
        to,
        product,
        title="Your address was changed",
        lead=f"The account that had the address {{to}} at {{product}} has the address {{new}} since {{when}}. {how}",
        action="Go to {product}",
        url=url,
        note=f"It can no longer be signed in to, or get another password, with {{to}}. {if_not_you}",
        values={
            "new": _masked(new_email),
            "when": f"{changed_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
        },
    )


def sign_up_again(*, to: str, product: str, url: str) -> Message:
    """Who signs up with an address that has an account gets the same answer as anybody; its owner gets this."""
    return _message(
        to,
        product,
        title="You have an account already",
        lead="Somebody, most likely you, tried to sign up at {product} with the address {to}, which has an account. "
        "Nothing has changed. Sign in with your password, or ask for another one if you have forgotten it:",
        action="Go to {product}",
        url=url,
        note="If it was not you, you need not do anything.",
    )


def team_invitation(*, to: str, product: str, url: str, team: str) -> Message:
    """A place in a team, for whoever has the address. `url` is the link, `team` the team's slug."""
    return _message(
        to,
        product,
        title=f"Join the team {team}",
        lead=f"The team {team} invites {{to}} to share its build cache at {{product}}. "
        "Open this link to join; you sign in, or up, with this address:",
        action=f"Join {team}",
        url=url,
        note="The link works once, and for seven days. If you do not know the team, do nothing.",
    )


def one_line(text: str) -> str:
    """`text` without what could end a header or steer a terminal."""
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
    said = {name: text.format_map(values) for name, text in parts.items()}
    said |= {"title": title, "url": url, "product": product}
    return Message(
        to=to,
        subject=f"{product}: {title}",
        text=_TEXT.format_map(said),
        html=_HTML.format_map({name: escape(text) for name, text in said.items()}),
    )
