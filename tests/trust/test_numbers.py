"""Each attack of docs/protection.md#attacks and of the exchange has tests with its number in their names."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
ATTACKS = range(1, 33)
NUMBERED = re.compile(r"^def test_(\d+(?:_\d+)*)_[a-z]", re.MULTILINE)


def test_every_attack_has_a_test() -> None:
    tested: set[int] = set()
    for folder in ("trust", "proofs"):
        for file in (TESTS / folder).glob("test_*.py"):
            for numbers in NUMBERED.findall(file.read_text()):
                tested.update(map(int, numbers.split("_")))
    assert [number for number in ATTACKS if number not in tested] == []
