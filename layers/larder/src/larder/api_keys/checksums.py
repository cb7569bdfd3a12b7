"""The checksum at the end of each key, by which made-up keys are refused without a look-up.

The last six characters are the CRC-32 of the rest, in base 62, as in GitHub's tokens. The first of them is always a
digit from 0 to 4, because 62 to the power of 5 is more than a fifth of 2 to the power of 32. What is random in a key
are letters only. So a key of version 0.1.0, which has no checksum, never looks like one with a wrong checksum.
"""

import re
import string
from enum import Enum
from zlib import crc32

from larder.extensions import hook
from larder.settings import settings

CHECKSUM_LENGTH = 6

_DIGITS = string.digits + string.ascii_letters
_END_OF_KEY = re.compile(r"[A-Za-z]+[0-4][A-Za-z0-9]{5}")


class Checksum(Enum):
    RIGHT = "right"
    WRONG = "wrong"
    MISSING = "missing"
    """The key is from version 0.1.0 or from the deployment's own function, or made up."""


def with_checksum(text: str) -> str:
    return text + _checksum(text)


def check(raw: str) -> Checksum:
    """What the checksum of a presented key says about it."""
    if raw[-CHECKSUM_LENGTH:] == _checksum(raw[:-CHECKSUM_LENGTH]):
        return Checksum.RIGHT
    options = settings()
    # Keys from the deployment's own function can have any form.
    is_ours = hook("generate_key") is None and _END_OF_KEY.fullmatch(
        raw[-options.default_key_length :]
    )
    return Checksum.WRONG if is_ours else Checksum.MISSING


def _checksum(text: str) -> str:
    rest, digits = crc32(text.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        rest, digit = divmod(rest, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits
