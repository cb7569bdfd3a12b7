"""The identity table: `(user id, "user")` is the person, `("email#<address>", "email")` keeps an address to one."""

from larder import aws
from larder.accounts.models import EmailTaken, User
from larder.clock import from_ms, to_ms
from larder.settings import settings


def _user(item: aws.Item) -> User:
    return User(
        id=item["pk"],
        email=item["email"],
        name=item["name"],
        email_verified=item.get("email_verified", False),
        created_at=from_ms(item["created_at"]),
        updated_at=from_ms(item["created_at"]),
    )


def add(user: User) -> None:
    """Store the person and the claim on the address in one transaction. Raises EmailTaken."""
    person = {
        "pk": user.id,
        "sk": "user",
        "email": user.email,
        "name": user.name,
        "created_at": to_ms(user.created_at),
    }
    claim = {"pk": f"email#{user.email}", "sk": "email", "user_id": user.id}
    if not aws.put_new(settings().identity_table, [claim, person]):
        raise EmailTaken(user.email)


def get(user_id: str) -> User | None:
    found = aws.get_item(settings().identity_table, {"pk": user_id, "sk": "user"})
    return None if found is None else _user(found)


def find_by_email(email: str) -> User | None:
    claim = aws.get_item(settings().identity_table, {"pk": f"email#{email}", "sk": "email"})
    return None if claim is None else get(claim["user_id"])
