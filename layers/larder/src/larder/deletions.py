"""Delete what is left of deleted users and teams. Every run continues where the last one stopped."""

from collections.abc import Callable
from datetime import datetime

from larder.accounts import service as accounts
from larder.accounts.email_jobs import OF_SCHEDULE, MailContext
from larder.api_keys.keys import (
    delete_keys_created_until,
    delete_keys_of,
    delete_keys_of_member,
    delete_keys_of_team,
)
from larder.api_keys.ownership import made_keys, settle_orphans
from larder.artifacts.removals import UPLOADS_ARE_OVER_AFTER, delete_owner_data
from larder.errors import TryAgain
from larder.invitations import service as invitations
from larder.sso import memberships
from larder.teams import members, teams
from larder.teams.state import delete_personal_state
from larder.trust.makers import notify_of_user
from larder.why.runs import delete_inputs


def sweep_users(*, now: datetime, has_time: Callable[[], bool]) -> int:
    """Delete the sessions, keys and memberships of deleted users, and what they stored without a team.

    Also delete the keys of users whose password reset was interrupted before it deleted them.

    Returns how many users are completely deleted.
    """
    for user_id, reset_at in accounts.users_with_ending_keys():
        # Only those: since then, the user may have created new ones.
        delete_keys_created_until(user_id, reset_at)
        accounts.finish_ending_keys(user_id)

    # First revoke the rights of all users, so that one large cache does not delay this for others.
    revoked = [
        (user_id, deleted_at, _revoke_rights(user_id))
        for user_id, deleted_at in accounts.deleted_users()
    ]
    finished = 0
    for user_id, deleted_at, is_revoked in revoked:
        delete_personal_state(user_id)
        is_empty = accounts.delete_sessions(user_id, has_time=has_time) and delete_owner_data(
            user_id, now=now, has_time=has_time
        )
        if is_revoked and is_empty and now - deleted_at > UPLOADS_ARE_OVER_AFTER:
            accounts.finish_deletion(user_id)
            finished += 1
    return finished


def end_given_memberships(*, now: datetime, has_time: Callable[[], bool]) -> None:
    """End the memberships that a provider gave to people who have not signed in with it for too long, or unlinked it.

    Reads one small item for each person with such memberships.
    """
    for provider_id, user_id, until in memberships.given_memberships():
        if until <= now and has_time():
            for team_id in memberships.end_given(provider_id, user_id, until, now=now):
                delete_keys_of_member(team_id, user_id)


def settle_keys(*, now: datetime, has_time: Callable[[], bool]) -> None:
    """Let the keys of teams end whose makers have left or lost the role or all access (`api_keys.ownership`)."""
    for user_id, team_ids, version in members.changes_to_settle():
        if not has_time():
            return
        for team_id in team_ids:
            keys = made_keys(team_id)
            makers = accounts.find_users([key.made_by for key in keys if key.made_by])
            settle_orphans(team_id, keys, makers, now=now)
        members.finish_settling(user_id, version)


def note_ended_access(user_id: str) -> None:
    """Send the owners of the user's teams what the user knows and has made, and let keys end that they have made."""
    user = accounts.find_user(user_id)
    if user is not None:
        provider = accounts.managing_provider(user)
        origin = provider.origin if provider else ""
        notify_of_user(user, MailContext(base_url=origin, request=OF_SCHEDULE))
        members.note_access_changed(user_id)


def _revoke_rights(user_id: str) -> bool:
    """False if some are left for the next run, so that one user does not delay this for others."""
    try:
        delete_keys_of(user_id)
    except TryAgain:
        return False
    return members.leave_teams(user_id)


def sweep_teams(*, now: datetime, has_time: Callable[[], bool]) -> int:
    """Delete the keys, invitations, members and data of deleted teams.

    Returns how many are completely deleted.
    """
    finished = 0
    for team_id, deleted_at in teams.deleted_teams():
        delete_keys_of_team(team_id)
        delete_keys_of(team_id)
        is_empty = (
            invitations.delete_all(team_id, has_time=has_time)
            and teams.delete_team_items(team_id, has_time=has_time)
            and delete_owner_data(team_id, now=now, has_time=has_time)
            and delete_inputs(team_id, has_time=has_time)
        )
        if is_empty and now - deleted_at > UPLOADS_ARE_OVER_AFTER:
            teams.finish_deletion(team_id)
            finished += 1
    return finished
