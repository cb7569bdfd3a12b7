"""The names of CI vendors, as clients send them and as they are counted."""

import re

OTHER_CI = "other"
"""The name for further vendors, and for names that are not valid. It is lower-case, so no vendor can have it."""

_CI_VENDOR = re.compile(r"[A-Z0-9_]{1,32}")
_NO_LETTERS = re.compile(r"[^A-Z0-9]+")


def ci_vendor(name: str | None) -> str | None:
    """The normalised name of a CI vendor, such as `GITHUB_ACTIONS`, which is how turbo spells it.

    Returns OTHER_CI for a name that is too long or has neither letter nor digit.
    """
    if name is None:
        return None
    vendor = _NO_LETTERS.sub("_", name.upper()).strip("_")
    return vendor if _CI_VENDOR.fullmatch(vendor) else OTHER_CI
