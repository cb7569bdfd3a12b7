"""Members, invitations and sessions of a team, in the words of docs/teams.md: an executable model.

A request changes it at one moment, and is refused without a change. The model does not say with which code.
"""

from dataclasses import dataclass, field

from tests.machines.orders import EITHER, OK, REFUSED

OWNER, ADMIN, MEMBER = "OWNER", "ADMIN", "MEMBER"
MOST_INVITATIONS = 2


@dataclass(frozen=True)
class Invitation:
    """`number` is of the test's own. A new invitation to a person replaces the one before."""

    number: int
    role: str
    by: str


@dataclass
class Model:
    roles: dict[str, str]
    invitations: dict[str, Invitation] = field(default_factory=dict)
    exists: bool = True
    signed_out: set[str] = field(default_factory=set)
    """Whose sessions were all revoked."""
    passwords: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    """The user whose password a link sets. All links of a user end when the password changes."""

    def _role(self, by: str) -> str | None:
        return self.roles.get(by) if self.exists and by not in self.signed_out else None

    def _manages(self, by: str, *roles: str) -> bool:
        role = self._role(by)
        return role == OWNER or (role == ADMIN and OWNER not in roles)

    def _is_last_owner(self, user: str) -> bool:
        return [name for name, role in self.roles.items() if role == OWNER] == [user]

    def invite(self, by: str, user: str, role: str, number: int) -> str:
        before = self.invitations.get(user)
        if not self._manages(by, role, *([before.role] if before else [])):
            return REFUSED
        if len(self.invitations.keys() - {user}) >= MOST_INVITATIONS:
            return REFUSED
        self.invitations[user] = Invitation(number, role, by)
        return OK

    def withdraw(self, by: str, user: str, number: int) -> str:
        found = self.invitations.get(user)
        if found is None or found.number != number or not self._manages(by, found.role):
            return REFUSED
        del self.invitations[user]
        return OK

    def join(self, user: str, number: int) -> str:
        """Only while the author could still make the invitation. A member keeps the role."""
        found = self.invitations.get(user)
        if not self.exists or user in self.signed_out or found is None or found.number != number:
            return REFUSED
        author = self.roles.get(found.by)
        if author != OWNER and (author != ADMIN or found.role == OWNER):
            return REFUSED
        del self.invitations[user]
        self.roles.setdefault(user, found.role)
        return OK

    def change(self, by: str, user: str, role: str) -> str:
        before = self.roles.get(user)
        if before is None or not self._manages(by, before, role):
            return REFUSED
        if before != role and self._is_last_owner(user):
            return REFUSED
        self.roles[user] = role
        return OK

    def remove(self, by: str, user: str) -> str:
        before = self.roles.get(user)
        if before is None or self._role(by) is None or (by != user and not self._manages(by, before)):
            return REFUSED
        if self._is_last_owner(user):
            return REFUSED
        del self.roles[user]
        return OK

    def delete(self, by: str) -> str:
        if self._role(by) != OWNER:
            return REFUSED
        self.exists = False
        return OK

    def read(self, by: str) -> str:
        return REFUSED if self._role(by) is None else OK

    def revoke_sessions(self, by: str) -> str:
        if by in self.signed_out:
            # Of two at once, both may have read the session before it ended.
            return EITHER
        self.signed_out.add(by)
        return OK

    def reset(self, link: str, password: str) -> str:
        """Set the password with a link from an email. It ends the user's sessions and other links."""
        user = self.links.get(link)
        if user is None:
            return REFUSED
        self.passwords[user] = password
        self.links = {name: whose for name, whose in self.links.items() if whose != user}
        self.signed_out.add(user)
        return OK

    def sign_in(self, user: str, password: str) -> str:
        return OK if self.passwords[user] == password else REFUSED
