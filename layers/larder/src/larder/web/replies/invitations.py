"""Invitations in replies, named as in the hosted service's REST API."""

from collections.abc import Sequence
from typing import Literal, TypedDict

from larder.accounts.team_invitations import InvitationPreview
from larder.clock import Milliseconds
from larder.invitations.models import Invitation
from larder.records import shaped
from larder.teams.models import Role
from larder.web.replies.clients import username


class InvitedJson(TypedDict):
    """`uid` is the id of the invitation. It stands where the id of a user will be, once they have joined."""

    uid: str
    username: str
    email: str
    role: Role
    confirmed: Literal[False]
    createdAt: Milliseconds
    expiresAt: Milliseconds


class InvitationsJson(InvitedJson):
    """The first invitation, as clients of the hosted service read it, and all of them in `invitations`."""

    invitations: list[InvitedJson]


class InvitedProviderJson(TypedDict):
    """The identity provider of the invited address. If it is `required`, the address can have no password."""

    id: str
    name: str
    required: bool


class InvitationPreviewJson(TypedDict):
    """`invitedBy` is the address of the member who sent the invitation, null for the operator.

    `provider` is null if no identity provider has the domain of the invited address.
    """

    slug: str
    role: Role
    invitedBy: str | None
    expiresAt: Milliseconds
    provider: InvitedProviderJson | None


def invitations_json(invitations: Sequence[Invitation]) -> InvitationsJson:
    invited = [_invited_json(invitation) for invitation in invitations]
    return {**invited[0], "invitations": invited}


def _invited_json(invitation: Invitation) -> InvitedJson:
    return shaped(
        InvitedJson,
        invitation,
        uid=invitation.id,
        username=username(invitation.email),
        confirmed=False,
    )


def preview_json(preview: InvitationPreview) -> InvitationPreviewJson:
    return shaped(InvitationPreviewJson, preview, provider=_provider_json(preview))


def _provider_json(preview: InvitationPreview) -> InvitedProviderJson | None:
    if preview.provider is None:
        return None
    provider = preview.provider
    return {"id": provider.id, "name": provider.name, "required": preview.requires_provider}
