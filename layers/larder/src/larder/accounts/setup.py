"""The first user of a deployment, who needs neither an email nor the operator's command.

The output SetupUrl of the stack has a code: the name that CloudFormation gave the function SignUp, which ends with
random characters. Only people who can read the stack see it. It works once, and not where there have been users for
more than six hours.
"""

import os
import re
from hmac import compare_digest

from larder.accounts import repository
from larder.errors import SetupRefused

MAX_SETUP_CODE = 64
"""The most characters in the name of a function."""

_CHOSEN_BY_CLOUDFORMATION = re.compile(r".+-[A-Za-z0-9]{12,}")
"""In a local cloud and in `sam local`, functions have other names, so no code works there."""


def check_code(code: str) -> None:
    """Raises SetupRefused for another code, and where there have been users."""
    own = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
    is_right = compare_digest(code.encode("utf-8", "surrogatepass"), own.encode())
    is_random = _CHOSEN_BY_CLOUDFORMATION.fullmatch(own)
    if not (is_right and is_random and repository.was_empty()):
        raise SetupRefused
