"""Data classes as items of a table, and in replies."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, TypedDict

import pytest

from larder.clock import IsoTime, Milliseconds
from larder.records import Form, Name, shaped


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class Lid:
    width: Annotated[int, Name("lid_width", "lidSize")]


@dataclass(frozen=True, kw_only=True)
class Jar:
    holder_id: Annotated[str, Name("user_id")]
    lid: Lid | None
    colour: Colour | None
    made_at: datetime
    labels: Annotated[tuple[str, ...], Name(absent=())] = ()
    colours: tuple[Colour, ...] = ()
    holds: Mapping[str, tuple[str, ...]]
    uses: Annotated[int, Name(absent=0)] = 0
    secret: str = ""


JARS = Form(Jar, apart=("secret",))
MADE_AT = datetime(2026, 11, 28, 9, 30, tzinfo=UTC)
FULL = Jar(
    holder_id="u1",
    lid=Lid(width=3),
    colour=Colour.RED,
    made_at=MADE_AT,
    labels=("jam",),
    colours=(Colour.RED,),
    holds={"jam": ("plum", "fig")},
    uses=2,
    secret="s",
)
EMPTY = Jar(holder_id="u1", lid=None, colour=None, made_at=MADE_AT, holds={})
STORED = {
    "user_id": "u1",
    "lid_width": 3,
    "colour": "red",
    "made_at": 1_795_858_200_000,
    "labels": ["jam"],
    "colours": ["red"],
    "holds": {"jam": ["plum", "fig"]},
    "uses": 2,
}


def test_the_item_has_plain_values_by_the_names_of_attributes() -> None:
    assert JARS.item(FULL) == STORED
    assert {*JARS.names.values()} == {*STORED}


def test_an_item_becomes_the_same_record() -> None:
    assert JARS.record(STORED, secret="s") == FULL


def test_nothing_is_stored_for_none_and_for_what_is_absent() -> None:
    item = JARS.item(EMPTY)
    assert item.keys() == STORED.keys()
    stored = {name: value for name, value in item.items() if value is not None}
    assert stored.keys() == {"user_id", "made_at", "colours", "holds"}
    assert JARS.record(stored, secret="") == EMPTY


@pytest.mark.parametrize("attribute", ["user_id", "made_at", "colours", "holds"])
def test_an_item_without_a_required_attribute_is_refused(attribute: str) -> None:
    with pytest.raises(KeyError, match=attribute):
        JARS.record({name: STORED[name] for name in STORED if name != attribute}, secret="s")


class JarJson(TypedDict):
    userId: str
    lidSize: int | None
    label: str
    madeAt: IsoTime
    colour: str | None
    holds: dict[str, list[str]]


class ShortJson(TypedDict):
    madeAt: Milliseconds | None


def test_a_reply_has_the_fields_of_its_shape_in_its_order() -> None:
    reply = shaped(JarJson, FULL, label="plums")
    assert list(reply.items()) == [
        ("userId", "u1"),
        ("lidSize", 3),
        ("label", "plums"),
        ("madeAt", "2026-11-28T09:30:00.000Z"),
        ("colour", "red"),
        ("holds", {"jam": ["plum", "fig"]}),
    ]


def test_a_reply_has_null_for_a_missing_record_inside() -> None:
    reply = shaped(JarJson, EMPTY, label="none")
    assert (reply["lidSize"], reply["colour"]) == (None, None)


def test_a_reply_takes_only_the_fields_of_its_shape() -> None:
    with pytest.raises(TypeError, match="ShortJson has no made"):
        shaped(ShortJson, FULL, made=1)


def test_times_have_the_format_of_the_reply() -> None:
    assert shaped(ShortJson, FULL) == {"madeAt": 1_795_858_200_000}
