"""The environment variables with which functions and the operator's command reach only this local cloud."""

from __future__ import annotations

import os
from collections.abc import Mapping

from local.template import REGION

_FROM_THE_SYSTEM = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "USER")
OPERATOR_EMAIL = "operator@larder.local"
"""The user that the first start creates. They are an operator unless the caller names others."""
RUNTIME = "python3.13"
"""The functions' runtime in the cloud."""
LOCAL_DEFAULTS = {"LARDER_SIGN_UP_POLICY": "open"}
"""Options with another default than in the template. By default, only this machine can reach a local cloud."""
_SET_BY_LAMBDA = {
    "AWS_EXECUTION_ENV": f"AWS_Lambda_{RUNTIME}",
    "AWS_LAMBDA_FUNCTION_NAME": "larder",
    "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
    "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
    "AWS_LAMBDA_LOG_GROUP_NAME": "/larder/local",
    "AWS_LAMBDA_LOG_STREAM_NAME": "functions.log",
    "TZ": ":UTC",
}
"""Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html, as far as it is the same for all."""


def cloud_environment(
    template: Mapping[str, str],
    *,
    credentials: tuple[str, str],
    signing_secret: str,
    dynamodb_url: str,
    lambda_url: str,
    s3_url: str,
    edge: Mapping[str, str],
) -> dict[str, str]:
    """The template's variables, and those for this local cloud's services and secrets. `edge` has those of the edge."""
    access_key_id, secret_access_key = credentials
    return {
        **template,
        # There is no SES on one machine, so mail always goes to the outbox.
        "LARDER_EMAIL_SENDER": "",
        "LARDER_OPERATOR_EMAILS": template.get("LARDER_OPERATOR_EMAILS") or OPERATOR_EMAIL,
        "LARDER_SIGNING_SECRET": signing_secret,
        **edge,
        "AWS_ENDPOINT_URL_DYNAMODB": dynamodb_url,
        "AWS_ENDPOINT_URL_LAMBDA": lambda_url,
        "AWS_ENDPOINT_URL_S3": s3_url,
        "AWS_ACCESS_KEY_ID": access_key_id,
        "AWS_SECRET_ACCESS_KEY": secret_access_key,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        # Ignore the user's own AWS configuration, and any proxy.
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "*",
        "no_proxy": "*",
    }


def process_environment(cloud: Mapping[str, str]) -> dict[str, str]:
    """For a child process: `cloud` and the variables that the system needs, but no others of the caller."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _FROM_THE_SYSTEM or name.startswith("PYTHON")
    }
    return {**kept, **cloud}


def function_environment(cloud: Mapping[str, str]) -> dict[str, str]:
    """For a worker: also the variables that Lambda sets. The function's name comes with each event."""
    return {**process_environment(cloud), **_SET_BY_LAMBDA}


def runtime_environment(cloud: Mapping[str, str]) -> dict[str, str]:
    """For an environment of AWS's runtime: only the variables that Lambda sets, none of the system or the caller."""
    return {
        **cloud,
        **_SET_BY_LAMBDA,
        "LANG": "en_US.UTF-8",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }
