"""What API keys do, in the words of docs/clients/better-auth.md and docs/api-keys.md: an executable model.

A request changes the model at one moment. So if two requests overlap, the product must give the replies and the state
of the model after one of the two orders. Times are milliseconds.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from tests.machines.orders import OK, REFUSED

NOT_FOUND = "KEY_NOT_FOUND"
DAY = 86_400_000
MOST_KEYS = 4
"""How many keys a user may have, or a team own."""


@dataclass(frozen=True)
class Key:
    """`actions` are those on artifacts. `limited` says whether the rate limit counts."""

    holder: str
    in_team: bool
    actions: tuple[str, ...]
    limited: bool
    window: int
    most: int
    window_ends: int
    count: int = 0
    enabled: bool = True
    remaining: int | None = None
    refill: tuple[int, int] | None = None
    """Amount and interval."""
    refill_due: int | None = None
    metadata: str | None = None
    expires: int | None = None
    ended: bool = False
    """Its user has left the team or was deleted, or its team was."""

    @property
    def is_counted(self) -> bool:
        return self.remaining is not None or self.limited

    def is_expired(self, now: int) -> bool:
        return self.expires is not None and self.expires <= now

    def is_over(self, now: int) -> bool:
        """Whether the key has ended for good. Then Larder may delete it at any time."""
        return self.ended or self.is_expired(now) or (self.remaining == 0 and self.refill is None)

    def refilled(self, now: int) -> "Key":
        if self.refill is None or self.refill_due is None or now <= self.refill_due:
            return self
        amount, interval = self.refill
        periods = 1 + (now - self.refill_due - 1) // interval
        remaining = (self.remaining or 0) + periods * amount
        return replace(self, remaining=remaining, refill_due=self.refill_due + periods * interval)


@dataclass
class Model:
    """Keys by a name of the test's own, and the users and teams that exist."""

    now: int
    keys: dict[str, Key] = field(default_factory=dict)
    holders: set[str] = field(default_factory=lambda: {"ada", "bob", "team"})
    codes: dict[str, int] = field(default_factory=dict)
    """Login codes of Ada for the team, and when they expire."""
    has_team: bool = True
    bob_is_member: bool = True
    bob_has_access: bool = True

    def create(self, name: str, holder: str, in_team: bool, given: dict[str, Any]) -> str:
        if holder not in self.holders:
            return REFUSED
        if in_team and (not self.has_team or (holder == "bob" and not self.bob_is_member)):
            return REFUSED
        if sum(key.holder == holder and not key.is_expired(self.now) for key in self.keys.values()) >= MOST_KEYS:
            return "KEY_LIMIT_REACHED"
        self.keys[name] = self._new(holder, in_team, given)
        return OK

    def _new(self, holder: str, in_team: bool, given: dict[str, Any]) -> Key:
        window = given.get("window", 60_000)
        return Key(
            holder=holder,
            in_team=in_team,
            actions=("read", "write"),
            limited="most" in given,
            window=window,
            most=given.get("most", 10),
            window_ends=self.now + window,
            remaining=given.get("remaining"),
            refill=given.get("refill"),
            refill_due=self.now + given["refill"][1] if given.get("refill") else None,
            metadata=given.get("metadata"),
            expires=self.now + given["lasts"] if "lasts" in given else None,
        )

    def exchange(self, code: str, name: str) -> str:
        if not self.now < self.codes.get(code, 0):
            return REFUSED
        got = self.create(name, "ada", True, {"lasts": 90 * DAY})
        if got == OK:
            del self.codes[code]
        return got

    def rotate(self, old: str, name: str, overlap: int) -> str:
        """Replace a key by one with the same owner and the default properties. The old one ends after the overlap."""
        if old not in self.keys:
            return NOT_FOUND
        key = self.keys[old]
        if key.ended:
            return REFUSED
        if (
            sum(each.holder == key.holder and not each.is_expired(self.now) for each in self.keys.values())
            > 2 * MOST_KEYS
        ):
            return "KEY_LIMIT_REACHED"
        self.keys[name] = self._new(key.holder, key.in_team, {})
        ends = self.now + overlap
        self.keys[old] = replace(key, expires=ends if key.expires is None else min(key.expires, ends))
        return OK

    def use(self, name: str, action: str) -> str | tuple[int | None, int | None]:
        """The allowance and the count in the window that are left, or the first rule that the key breaks."""
        key = self.keys.get(name)
        if key is None or key.is_over(self.now):
            return REFUSED
        if not key.enabled:
            return "KEY_DISABLED"
        if action not in key.actions:
            return NOT_FOUND
        refilled = key.refilled(self.now)
        if refilled.remaining == 0:
            return "USAGE_EXCEEDED"
        if key.limited and key.count >= key.most and self.now < key.window_ends:
            return "RATE_LIMITED"
        if key.is_counted:
            left = None if refilled.remaining is None else refilled.remaining - 1
            used = replace(refilled, remaining=left, count=key.count + 1)
            if self.now >= key.window_ends:
                used = replace(used, count=1, window_ends=self.now + key.window)
            self.keys[name] = key = used
        if key.holder == "bob" and not self.bob_has_access:
            # One write has counted the use, before the user is read.
            return REFUSED
        return key.remaining, key.count if key.limited else None

    def update(self, name: str, given: dict[str, Any]) -> str:
        key = self.keys.get(name)
        if key is None:
            return NOT_FOUND
        if key.ended and key.holder != "team" and "actions" in given:
            # Its user, who has left the team, holds no permission there.
            return REFUSED
        new = replace(key, **{field: value for field, value in given.items() if field not in ("lasts", "refill")})
        if "lasts" in given:
            new = replace(new, expires=None if given["lasts"] is None else self.now + given["lasts"])
        if "refill" in given:
            refill, due = given["refill"], new.refill_due
            if refill is None:
                due = None
            elif key.refill is None or key.refill[1] != refill[1]:
                due = self.now + refill[1]
            new = replace(new, refill=refill, refill_due=due)
        if new.refill is not None and new.remaining is None:
            return "VALIDATION_ERROR"
        if (new.limited, new.window) != (key.limited, key.window):
            new = replace(new, window_ends=self.now + new.window, count=0)
        self.keys[name] = new
        return OK

    def delete(self, name: str) -> str:
        return NOT_FOUND if self.keys.pop(name, None) is None else OK

    def leave(self) -> str:
        if not (self.bob_is_member and self.bob_has_access):
            return REFUSED
        self.bob_is_member = False
        self._end(lambda key: key.holder == "bob" and key.in_team)
        return OK

    def delete_user(self) -> str:
        if not ("bob" in self.holders and self.bob_has_access):
            return REFUSED
        self.holders.discard("bob")
        self.bob_is_member = False
        self._end(lambda key: key.holder == "bob")
        return OK

    def suspend(self) -> str:
        self.bob_has_access = False
        return OK

    def resume(self) -> str:
        self.bob_has_access = True
        return OK

    def delete_team(self) -> str:
        if not self.has_team:
            return REFUSED
        self.has_team = self.bob_is_member = False
        self.holders.discard("team")
        self._end(lambda key: key.in_team)
        return OK

    def _end(self, ends: Any) -> None:
        self.keys = {name: replace(key, ended=key.ended or ends(key)) for name, key in self.keys.items()}
