"""The notices of API keys: to the user of one that never expires, and to the owners of a team that trusts one."""

from contextlib import suppress

from larder.accounts.email_jobs import KeyNeverExpires, MailContext, send_later
from larder.accounts.team_notices import notify_owners_of_key
from larder.api_keys.models import ApiKey
from larder.errors import TryAgain
from larder.web.principals.session import UserPrincipal


def notify_of_new_key(key: ApiKey, principal: UserPrincipal, mail_context: MailContext) -> None:
    """Have the owners of the team notified of a key that writes what everyone reads, and send the other notice."""
    if key.may_trust:
        user_id = key.user_id if key.has_user else None
        notify_owners_of_key(key.id, user_id, key.team_id, principal.user_id, mail_context)
    notify_if_never_expires(key, principal, mail_context)


def notify_if_never_expires(
    key: ApiKey, principal: UserPrincipal, mail_context: MailContext
) -> None:
    """Have the notice sent, for a team's own key to the principal.

    The key exists, so a failure to send it must not look like a failure to create the key.
    """
    user_id = key.user_id if key.has_user else principal.user_id
    # For another user's key, the function that sends the notice looks up whether the address is verified.
    unverified = user_id == principal.user_id and not principal.user.email_verified
    if key.expires_at is not None or unverified:
        return
    with suppress(TryAgain):
        send_later(
            KeyNeverExpires(
                user_id=user_id,
                key_id=key.id,
                key_start=(key.start or "").removeprefix(key.prefix or ""),
                mail_context=mail_context,
            )
        )
