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
        created_at=from_ms(item["created_at"]),
    )


def add(user: User) -> None:
    """Store the person and the claim on the address in one transaction. Raises EmailTaken."""
    table = settings().identity_table
    person = {
        "pk": user.id,
        "sk": "user",
        "email": user.email,
        "name": user.name,
        "created_at": to_ms(user.created_at),
    }
    claim = {"pk": f"email#{user.email}", "sk": "email", "user_id": user.id}
    try:
        aws.dynamodb().transact_write_items(
            TransactItems=[
                {
                    "Put": {
                        "TableName": table,
                        "Item": aws.serialize(item),
                        "ConditionExpression": "attribute_not_exists(pk)",
                    }
                }
                for item in (claim, person)
            ]
        )
    except aws.ClientError as error:
        if aws.error_code(error) == "TransactionCanceledException":
            raise EmailTaken(user.email) from None
        raise


def get(user_id: str) -> User | None:
    found = _get(user_id, "user")
    return None if found is None else _user(found)


def find_by_email(email: str) -> User | None:
    claim = _get(f"email#{email}", "email")
    return None if claim is None else get(claim["user_id"])


def _get(pk: str, sk: str) -> aws.Item | None:
    reply = aws.dynamodb().get_item(
        TableName=settings().identity_table,
        Key=aws.serialize({"pk": pk, "sk": sk}),
        ConsistentRead=True,
    )
    return aws.deserialize(reply["Item"]) if "Item" in reply else None
