"""Sending with SES or to the outbox, and reading the outbox."""

import base64
from datetime import timedelta
from typing import Any

import pytest

from larder import aws, clock
from larder.errors import TryAgain
from larder.mail import service
from larder.mail.models import MailRefused, Message
from larder.settings import settings
from tests.conftest import SetOption
from tests.faults import answering, error, unreachable
from tests.hooks import hooked
from tests.mailbox import sent_by_ses

MESSAGE = Message(to="ada@acme.example", subject="Hello", text="a text", html="<p>a text</p>")


def message(subject: str) -> Message:
    return Message(to="ada@acme.example", subject=subject, text="", html="")


def send_many(number: int) -> None:
    now = clock.now() - timedelta(seconds=number)
    for count in range(number):
        service.send(message(str(count)), now=now + timedelta(seconds=count))


# -------------------------------------------------------------------------------------- the outbox


def test_without_a_sender_messages_go_to_the_outbox(aws_in_memory: None) -> None:
    now = clock.now()
    message_id = service.send(MESSAGE, now=now)
    stored = service.find_message(message_id, now=now)
    assert stored is not None
    assert (stored.id, stored.sent_at, stored.message) == (message_id, now, MESSAGE)


LINK = "https://cache.example.com/api/auth/reset-password/AbCdEfGhIjKlMnOpQrStUvWx"


def items() -> list[dict[str, Any]]:
    found = aws.dynamodb().scan(TableName=settings().outbox_table)["Items"]
    return [aws.deserialize(item) for item in found]


def put(item: dict[str, Any]) -> None:
    aws.dynamodb().put_item(TableName=settings().outbox_table, Item=aws.serialize(item))


def test_a_copy_of_the_table_has_no_links(aws_in_memory: None) -> None:
    text = f"Open this:\n{LINK}"
    message = Message(to="ada@acme.example", subject="Hello", text=text, html=f"<a href='{LINK}'>")
    message_id = service.send(message, now=clock.now())
    (item,) = items()
    assert item.keys() == {
        "box", "id", "sent_at", "expires_at", "recipient", "subject", "sealed",
    }  # fmt: skip
    sealed = base64.b64decode(item["sealed"])
    for shown in (str(item), sealed.decode("latin-1")):
        assert "reset-password" not in shown
        assert "AbCdEfGh" not in shown
    found = service.find_message(message_id, now=clock.now())
    assert found is not None
    assert found.message == message


def test_equal_messages_are_encrypted_differently(aws_in_memory: None) -> None:
    for _ in range(2):
        service.send(MESSAGE, now=clock.now())
    first, second = items()
    assert base64.b64decode(first["sealed"])[48:] != base64.b64decode(second["sealed"])[48:]


def test_messages_are_readable_until_their_secret_is_dropped(aws_in_memory: None, option: SetOption) -> None:
    option("signing_secret", "one")
    message_id = service.send(MESSAGE, now=clock.now())

    def text() -> str:
        found = service.find_message(message_id, now=clock.now())
        assert found is not None
        assert found.message.to == MESSAGE.to
        return found.message.text

    option("signing_secret", "two,one")
    assert text() == MESSAGE.text
    option("signing_secret", "three,two")
    assert "cannot be decrypted" in text()
    assert len(service.read_outbox(now=clock.now()).messages) == 1


def test_no_one_can_change_or_exchange_messages_in_the_table(aws_in_memory: None) -> None:
    now = clock.now()
    first, second = (service.send(MESSAGE, now=now) for _ in range(2))
    for item in items():
        changed = bytearray(base64.b64decode(item["sealed"]))
        changed[-1] ^= 1
        sealed = base64.b64encode(changed).decode()
        put({**item, "sealed": sealed} if item["id"] == first else {**item, "id": first + "0"})
    for message_id in (first, first + "0"):
        found = service.find_message(message_id, now=now)
        assert found is not None
        assert "cannot be decrypted" in found.message.text
    assert service.find_message(second, now=now) is not None


def test_messages_of_version_0_1_0_are_readable(aws_in_memory: None) -> None:
    service.send(MESSAGE, now=clock.now())
    (item,) = items()
    del item["sealed"]
    put({**item, "text": "an old text", "html": "<p>an old text</p>"})
    (stored,) = service.read_outbox(now=clock.now()).messages
    assert (stored.message.text, stored.message.html) == ("an old text", "<p>an old text</p>")


def test_the_newest_message_comes_first(aws_in_memory: None) -> None:
    send_many(3)
    page = service.read_outbox(now=clock.now())
    assert [stored.message.subject for stored in page.messages] == ["2", "1", "0"]
    assert page.next_before is None


def test_pages_return_all_messages_in_order(aws_in_memory: None) -> None:
    send_many(7)
    subjects: list[str] = []
    before = None
    for _ in range(4):
        page = service.read_outbox(limit=2, before=before, now=clock.now())
        subjects += [stored.message.subject for stored in page.messages]
        before = page.next_before
        if before is None:
            break
    assert subjects == ["6", "5", "4", "3", "2", "1", "0"]


def test_an_expired_message_is_gone_even_if_dynamodb_still_has_it(aws_in_memory: None, option: SetOption) -> None:
    option("outbox_retention_days", 1)
    now = clock.now()
    message_id = service.send(MESSAGE, now=now)
    later = now + timedelta(days=1, seconds=1)
    assert service.find_message(message_id, now=later) is None
    assert service.read_outbox(now=later).messages == ()
    assert len(aws.dynamodb().scan(TableName=settings().outbox_table)["Items"]) == 1


def test_an_unknown_message_id_returns_none(aws_in_memory: None) -> None:
    assert service.find_message("unknown", now=clock.now()) is None


def test_an_unreachable_outbox_is_reported(aws_in_memory: None) -> None:
    with unreachable("dynamodb", "PutItem"), pytest.raises(TryAgain):
        service.send(MESSAGE, now=clock.now())


# --------------------------------------------------------------------------------------------- SES


@pytest.fixture
def ses(option: SetOption, aws_in_memory: None) -> None:
    """A deployment with a sender whose domain is verified in SES."""
    option("email_sender", "larder@acme.example")
    aws.sesv2().create_email_identity(EmailIdentity="acme.example")


def test_with_a_sender_messages_go_to_ses(ses: None) -> None:
    message_id = service.send(MESSAGE, now=clock.now())
    (sent,) = sent_by_ses()
    assert sent.id == message_id
    assert sent.source == "Larder <larder@acme.example>"
    assert sent.destinations == {"ToAddresses": ["ada@acme.example"]}
    assert sent.subject == "Hello"
    assert service.read_outbox(now=clock.now()).messages == ()


@pytest.mark.parametrize(
    ("name", "sender"),
    [
        ("Acme, Inc.", '"Acme, Inc." <larder@acme.example>'),
        ('The "best" <cache>', '"The \\"best\\" <cache>" <larder@acme.example>'),
        ("Lärder", "=?utf-8?q?L=C3=A4rder?= <larder@acme.example>"),
        ("Larder\r\nBcc: eve@evil.example", '"Larder Bcc: eve@evil.example" <larder@acme.example>'),
    ],
)
def test_the_product_name_is_quoted_and_cannot_add_a_header(
    ses: None, option: SetOption, name: str, sender: str
) -> None:
    option("product_name", name)
    service.send(MESSAGE, now=clock.now())
    assert sent_by_ses()[0].source == sender


@pytest.mark.parametrize(
    ("address", "on_the_wire"),
    [
        ("eve,ada@acme.example", '"eve,ada"@acme.example'),
        ("a<b>@acme.example", '"a<b>"@acme.example'),
        ("ada@bücher.example", "ada@xn--bcher-kva.example"),
        ("ada@faß.example", "ada@xn--fa-hia.example"),
    ],
)
def test_an_address_cannot_become_several(ses: None, address: str, on_the_wire: str) -> None:
    service.send(Message(to=address, subject="", text="", html=""), now=clock.now())
    assert sent_by_ses()[0].destinations == {"ToAddresses": [on_the_wire]}


def test_text_and_html_are_sent_as_utf_8(ses: None) -> None:
    bodies: list[dict[str, dict[str, str]]] = []

    def look(params: dict[str, object], **_: object) -> None:
        bodies.append(params["Content"]["Simple"]["Body"])  # type: ignore[index]

    with hooked("provide-client-params.sesv2.SendEmail", look, aws.sesv2()):
        service.send(MESSAGE, now=clock.now())
    assert bodies == [
        {"Text": {"Data": "a text", "Charset": "UTF-8"}, "Html": {"Data": "<p>a text</p>", "Charset": "UTF-8"}}
    ]


@pytest.mark.parametrize("code", ["MessageRejected", "MailFromDomainNotVerifiedException"])
def test_a_refusal_by_ses_is_reported_only_by_its_code(ses: None, code: str) -> None:
    with answering("sesv2", "SendEmail", error(code)), pytest.raises(MailRefused) as refused:
        service.send(MESSAGE, now=clock.now())
    assert str(refused.value) == code
    assert refused.value.__suppress_context__


def test_an_unknown_sender_is_refused(aws_in_memory: None, option: SetOption) -> None:
    option("email_sender", "larder@acme.example")
    with pytest.raises(MailRefused, match="MessageRejected"):
        service.send(MESSAGE, now=clock.now())


def test_an_error_for_a_busy_ses_can_be_retried(ses: None) -> None:
    busy = error("TooManyRequestsException", 429)
    with answering("sesv2", "SendEmail", busy), pytest.raises(TryAgain):
        service.send(MESSAGE, now=clock.now())


def test_an_error_for_an_unreachable_ses_can_be_retried(ses: None) -> None:
    with unreachable("sesv2", "SendEmail"), pytest.raises(TryAgain):
        service.send(MESSAGE, now=clock.now())
