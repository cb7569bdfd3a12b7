"""`larder outbox`."""

from datetime import timedelta

from larder import clock
from larder.mail import service
from larder.mail.models import Message

from .conftest import Larder


def send(subject: str, *, text: str = "", seconds_ago: float = 0) -> str:
    message = Message(to="ada@acme.example", subject=subject, text=text, html="<p>hello</p>")
    return service.send(message, now=clock.now() - timedelta(seconds=seconds_ago))


def test_list_shows_the_newest_first(larder: Larder) -> None:
    old, new = send("old", seconds_ago=60), send("new")
    assert [one["id"] for one in larder.json("outbox", "list")] == [new, old]
    shown = larder("outbox", "list").stdout
    assert shown.index("new") < shown.index("old")
    for expected in ("ada@acme.example", "UTC", new):
        assert expected in shown


def test_list_reads_pages_up_to_the_limit(larder: Larder) -> None:
    for number in range(105):
        send(str(number), seconds_ago=200 - number)
    assert len(larder.json("outbox", "list")) == 50
    subjects = [one["subject"] for one in larder.json("outbox", "list", "--limit", "103")]
    assert subjects == [str(number) for number in range(104, 1, -1)]


def test_list_says_when_the_outbox_is_empty(larder: Larder) -> None:
    assert larder("outbox", "list").stdout == "the outbox is empty\n"
    assert larder.json("outbox", "list") == []


def test_list_does_not_show_message_bodies(larder: Larder) -> None:
    send("a link", text="https://cache.example.com/secret")
    assert "secret" not in larder("outbox", "list").stdout


def test_show_prints_the_message_as_it_was_sent(larder: Larder) -> None:
    link = f"https://cache.example.com/{'x' * 200}"
    message_id = send("a link", text=f"Open this:\n\n{link}\n")
    shown = larder("outbox", "show", message_id).stdout
    assert f"\nOpen this:\n\n{link}\n" in shown
    assert "ada@acme.example" in shown
    output = larder.json("outbox", "show", message_id[:-2])
    assert output["text"] == f"Open this:\n\n{link}\n"
    assert output["html"] == "<p>hello</p>"
    assert output["sent_at"].endswith("Z")


def test_a_message_cannot_write_to_the_terminal(larder: Larder) -> None:
    message_id = send("a link", text="a\x1b[31mb\r\nc")
    shown = larder("outbox", "show", message_id).stdout
    assert "\x1b" not in shown
    assert "\r" not in shown


def test_show_reports_an_expired_or_unknown_message(larder: Larder) -> None:
    gone = send("old", seconds_ago=8 * 24 * 3600)
    for message_id in (gone, "nothing"):
        refusal = larder.refusal("outbox", "show", message_id)
        assert refusal.startswith(f"there is no message {message_id}, or it has expired")
    assert larder("outbox", "list").stdout == "the outbox is empty\n"


def test_a_limit_of_zero_is_a_usage_error(larder: Larder) -> None:
    assert "'--limit'" in larder.refusal("outbox", "list", "--limit", "0", status=2)
