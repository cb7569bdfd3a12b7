"""A user with all kinds of data in the API, and the values of it that a request can contain.

A request that hypothesis generates from a schema contains no ids that exist. So some of its values are replaced by
those of this scene: ids of the user and of others, single-use tokens, and correct passwords.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from urllib.parse import quote

from larder import clock
from larder.accounts import repository as accounts
from larder.accounts.link_tokens import issue_confirmation_token, issue_verification_token
from larder.accounts.models import Credential, User
from larder.accounts.password_resets import issue_reset_token
from larder.accounts.passwords import hash_password
from larder.accounts.service import new_account
from larder.accounts.sessions import start_session
from larder.actor import Actor
from larder.api_keys.keys import create_key
from larder.api_keys.models import Permissions
from larder.api_keys.properties import NewKey
from larder.artifacts import uploads
from larder.artifacts.models import UNPROTECTED, ArtifactHash, ArtifactMetadata, CacheRequest
from larder.invitations import service as invitations
from larder.invitations.models import Invitation, Invitee
from larder.signing import sign
from larder.teams.members import add_member
from larder.teams.models import Role, Team
from larder.teams.teams import create_team
from larder.turbo_login import service as turbo_login
from larder.turbo_login.service import Grant

PASSWORD = "correct horse battery staple"
MARK = "OF-ANOTHER-OWNER"
"""Part of the name of everything that belongs to another user."""

EVERYTHING: Permissions = {"artifacts": ("read", "write", "manage"), "teams": ("read", "write")}
HASHES = ("deadbeefdeadbeef", "0123456789abcdef")
ORIGIN = "ORIGIN"
"""A placeholder for the address of the deployment."""


@dataclass(frozen=True)
class Stranger:
    """Another user with a team, a key and an invitation, none of which may appear in a reply."""

    user: User
    team: Team
    key_id: str
    invitation_id: str
    session: str


@dataclass
class Scene:
    """The data for the requests of one operation. `renewed` restores what a request has used up."""

    stranger: Stranger
    _credentials: dict[str, str] = field(default_factory=dict)
    user: User = field(init=False)
    team: Team = field(init=False)

    def __post_init__(self) -> None:
        self.user = new_user("ada")
        self.team = create_team("Own", slug(), owner_user_id=self.user.id, now=clock.now())
        for hash in HASHES:
            store(self.team.id, hash, self.user)
            store(self.user.id, hash, self.user)

    def renewed(self, operation_id: str) -> Scene:
        """Restore what the previous request has deleted or revoked."""
        if operation_id in _ENDS_THE_USER:
            self.user = new_user("ada")
        if operation_id == "delete_team":
            self.team = create_team("Own", slug(), owner_user_id=self.user.id, now=clock.now())
        if operation_id in _ENDS_CREDENTIALS:
            self._credentials.clear()
        return self

    # Callers ---------------------------------------------------------------------------------

    def credentials(self, kind: str) -> dict[str, str]:
        """The headers that authenticate a kind of caller."""
        match kind:
            case "nobody":
                return {}
            case "unknown":
                return {"Authorization": f"Bearer {'k' * 64}"}
            case "session":
                return {"Authorization": f"Bearer {self.session}"}
            case "cookie":
                signed = quote(f"{self.session}.{sign(self.session)}", safe="")
                return {"Cookie": f"better-auth.session_token={signed}", "Origin": ORIGIN}
            case "x-api-key":
                return {"x-api-key": self.of_key(EVERYTHING)}
            case "reader":
                return {"Authorization": f"Bearer {self.of_key({'artifacts': ('read',)})}"}
            case "viewer":
                return {"Authorization": f"Bearer {self.viewer}"}
        return {"Authorization": f"Bearer {self.of_key(EVERYTHING)}"}

    @property
    def session(self) -> str:
        return self._kept("session", lambda: start_session(self.user, now=clock.now())[1])

    def of_key(self, permissions: Permissions) -> str:
        return self._kept(str(permissions), lambda: self.new_key(permissions)[1])

    @property
    def viewer(self) -> str:
        return self._kept("viewer", self._new_viewer)

    def _kept(self, name: str, make: Callable[[], str]) -> str:
        if name not in self._credentials:
            self._credentials[name] = make()
        return self._credentials[name]

    def _new_viewer(self) -> str:
        viewer = new_user("vera")
        add_member(self.team.id, viewer.id, Role.VIEWER, now=clock.now())
        return start_session(viewer, now=clock.now())[1]

    def new_key(self, permissions: Permissions) -> tuple[str, str]:
        """Returns the id and the key."""
        new = NewKey(user_id=self.user.id, name="fuzz", permissions=permissions)
        key, raw = create_key(new, now=clock.now())
        return key.id, raw

    # Values of a request ----------------------------------------------------------------------

    def values(self, name: str, operation_id: str) -> Sequence[Callable[[], object]]:
        """Functions that return a value for a property or parameter of this name. Each creates its data when called."""
        if name in ("token", "inviteCode"):
            return self._tokens(operation_id)
        known: dict[str, Sequence[Callable[[], object]]] = {
            "hash": [lambda: HASHES[0], lambda: HASHES[1]],
            "hashes": [lambda: list(HASHES), lambda: [*HASHES, "missing"]],
            "idOrSlug": [*[lambda: self.team.id, lambda: self.team.slug] * 2, lambda: self.stranger.team.id],
            "teamId": [lambda: self.team.id, lambda: self.stranger.team.id],
            "team": [lambda: self.team.slug, lambda: self.stranger.team.slug],
            "slug": [lambda: self.team.slug, slug],
            "uid": [
                self.member,
                self.invitation_id,
                lambda: self.user.id,
                lambda: self.stranger.user.id,
                lambda: self.stranger.invitation_id,
            ],
            "keyId": [lambda: self.new_key({})[0], lambda: self.stranger.key_id],
            "id": [lambda: self.new_key({})[0], lambda: self.stranger.key_id],
            "key": [lambda: self.of_key(EVERYTHING)],
            "userId": [lambda: self.user.id, lambda: self.stranger.user.id],
            "writer": [lambda: self.user.id, lambda: self.stranger.user.id],
            "role": [lambda: secrets.choice(list(Role)).value],
            "email": [lambda: self.user.email, address, lambda: self.stranger.user.email],
            "newEmail": [address, lambda: self.stranger.user.email],
            "name": [lambda: "Ada"],
            "password": [lambda: PASSWORD, lambda: "wrong"],
            "newPassword": [lambda: PASSWORD],
            "currentPassword": [lambda: PASSWORD, lambda: "wrong"],
            "permissions": [lambda: {"artifacts": ["read"]}],
            "expiresIn": [lambda: 3600],
            "prefix": [lambda: "ci_"],
            "redirectUri": [lambda: "http://127.0.0.1:9789"],
            "redirect_uri": [lambda: "http://127.0.0.1:9789"],
            "callbackURL": [lambda: "/verified", lambda: "https://evil.example/"],
            "redirectTo": [lambda: "/reset-password", lambda: "https://evil.example/"],
            "access-control-request-method": [lambda: "PUT"],
            "to": [lambda: clock.now().date().isoformat()],
            "from": [lambda: (clock.now() - timedelta(days=3)).date().isoformat()],
        }
        return known.get(name, [])

    def _tokens(self, operation_id: str) -> Sequence[Callable[[], object]]:
        now = clock.now()
        known: dict[str, Sequence[Callable[[], object]]] = {
            "verify_email": [lambda: issue_verification_token(self.user, now=now)],
            "confirm_new_email": [
                lambda: issue_confirmation_token(
                    self.user, new_email=f"{secrets.token_hex(8)}@new.example", callback_url="", now=now
                )
            ],
            "reset_password": [lambda: issue_reset_token(self.user, now=now)],
            "follow_reset_link": [lambda: issue_reset_token(self.user, now=now)],
            "revoke_session": [lambda: self.session, lambda: self.stranger.session],
            "exchange_login_code": [
                lambda: turbo_login.create_token(self.user, Grant(sso_team=self.team.id), now=now).text
            ],
            "join_team": [self.invitation],
            "preview_invitation": [self.invitation],
            "join_team_of_team": [self.invitation],
        }
        return known.get(operation_id, [])

    def member(self) -> str:
        member = new_user("member")
        add_member(self.team.id, member.id, Role.MEMBER, now=clock.now())
        return member.id

    def invitation(self) -> str:
        """The token of an invitation of the user to another user's team."""
        inviting = create_team("Inviting", slug(), owner_user_id=new_user("host").id, now=clock.now())
        return invitations.issue_token(_invited(inviting, self.user.email))

    def invitation_id(self) -> str:
        return _invited(self.team, address()).id


_ENDS_THE_USER = frozenset({"delete_user"})
_ENDS_CREDENTIALS = frozenset(
    {
        "change_password",
        "delete_team",
        "delete_user",
        "reset_password",
        "revoke_current_token",
        "revoke_other_sessions",
        "revoke_session",
        "revoke_sessions",
        "sign_out",
    }
)


def new_stranger() -> Stranger:
    user = new_user(MARK.lower())
    team = create_team(MARK, f"{MARK.lower()}-{slug()}"[:48], owner_user_id=user.id, now=clock.now())
    key, _ = create_key(NewKey(user_id=user.id, name=MARK), now=clock.now())
    return Stranger(
        user=user,
        team=team,
        key_id=key.id,
        invitation_id=_invited(team, address()).id,
        session=start_session(user, now=clock.now())[1],
    )


def new_user(name: str) -> User:
    """Create a user with a verified address and the password PASSWORD."""
    email = f"{name}-{secrets.token_hex(6)}@fuzz.example"
    account = new_account(email, name, email_verified=True, now=clock.now())
    accounts.add(replace(account, credential=_credential()))
    return account.user


def store(owner: str, hash: str, user: User, *, now: datetime | None = None) -> None:
    """Store an artifact that requests can read."""
    uploads.store(
        CacheRequest(
            owner=owner,
            hash=ArtifactHash(hash),
            writer=Actor("fuzz", user.id),
            view=UNPROTECTED,
            now=now or clock.now(),
        ),
        b"an artifact" * 10,
        ArtifactMetadata(duration_ms=1234, tag="dGFn", sha="abc123"),
    )


def _invited(team: Team, email: str) -> Invitation:
    invitee = Invitee(email=email, address=email, role=Role.MEMBER)
    (invitation,) = invitations.create_invitations(team.id, [invitee], by=None, now=clock.now())
    return invitation


def slug() -> str:
    return f"fuzz-{secrets.token_hex(6)}"


def address() -> str:
    return f"user-{secrets.token_hex(6)}@fuzz.example"


@cache
def _credential() -> Credential:
    now = clock.now()
    return Credential(password_hash=hash_password(PASSWORD), created_at=now, updated_at=now)
