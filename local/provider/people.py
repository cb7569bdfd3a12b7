"""The people of Example Company."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DOMAIN = "company.example"


@dataclass(frozen=True, slots=True)
class Person:
    """`subject` identifies a person for ever, as in a real provider."""

    subject: str
    name: str
    groups: tuple[str, ...] = ()
    is_verified: bool = True

    @property
    def email(self) -> str:
        return f"{self.name.lower()}@{DOMAIN}"

    @property
    def claims(self) -> dict[str, Any]:
        return {
            "sub": self.subject,
            "name": self.name,
            "email": self.email,
            "email_verified": self.is_verified,
            "groups": list(self.groups),
        }


PEOPLE = {
    person.subject: person
    for person in (
        Person("employee-1", "Ada", groups=("admins",)),
        Person("employee-2", "Bob", groups=("eng",)),
        Person("employee-3", "Cy"),
        Person("employee-4", "Mallory", is_verified=False),
    )
}
