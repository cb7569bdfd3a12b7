"""One-line error messages that say what to do next."""

from larder.accounts.models import EmailTaken
from larder.errors import LarderError, SlugTaken, TryAgain
from larder.settings import SettingsError

_SIGN_IN = "sign in to AWS (for example `aws sso login`) or choose a profile with --profile"

_BY_ERROR_OF_BOTOCORE = {
    "NoCredentialsError": f"no AWS credentials were found: {_SIGN_IN}",
    "PartialCredentialsError": f"the AWS credentials are incomplete: {_SIGN_IN}",
    "SSOTokenLoadError": f"the AWS sign-in has expired: {_SIGN_IN}",
    "TokenRetrievalError": f"the AWS sign-in has expired: {_SIGN_IN}",
    "UnauthorizedSSOTokenError": f"the AWS sign-in has expired: {_SIGN_IN}",
    "MissingDependencyException": (
        "this command needs the package awscrt: run `make edge-tools`, or install larder-cli with its extra `edge`"
    ),
    "ProfileNotFound": "the AWS profile does not exist: `aws configure list-profiles` lists them",
}
_CHECK_NETWORK = "check the network, the region and AWS_ENDPOINT_URL_* variables, then try again"

_DENIED = "ask for the permission; docs/operator-cli.md lists what each command needs"
_GONE = "a table, the bucket or the signing secret does not exist: check the account and the region"
_BY_CODE_OF_AWS = {
    "AccessDenied": _DENIED,
    "AccessDeniedException": _DENIED,
    "UnauthorizedOperation": _DENIED,
    "403": _DENIED,
    "ExpiredToken": _SIGN_IN,
    "ExpiredTokenException": _SIGN_IN,
    "InvalidAccessKeyId": _SIGN_IN,
    "InvalidClientTokenId": _SIGN_IN,
    "SignatureDoesNotMatch": _SIGN_IN,
    "UnrecognizedClientException": _SIGN_IN,
    "NoSuchBucket": _GONE,
    "ResourceNotFoundException": _GONE,
}


def explanation(error: Exception) -> str | None:
    """One line for the operator, or None for an unexpected error."""
    match error:
        case EmailTaken():
            return f"another user has the address {error}"
        case SlugTaken():
            return f"another team has the slug {error.slug}"
        case TryAgain():
            return _unreachable(error)
        case LarderError() | SettingsError():
            return str(error)
    return _of_aws(error)


def _unreachable(error: TryAgain) -> str:
    why = f" ({_one_line(error.__cause__)})" if error.__cause__ else ""
    return f"AWS did not answer in time{why}: {_CHECK_NETWORK}; you can run every command again"


def _of_aws(error: Exception) -> str | None:
    from larder import aws
    from larder.aws.boto import BotoClientError, BotoCoreError

    # The deployment commands call boto3 itself.
    if isinstance(error, (aws.ClientError, BotoClientError)):
        code = error.response.get("Error", {}).get("Code", "")
        message = error.response.get("Error", {}).get("Message") or str(error)
        next_step = _BY_CODE_OF_AWS.get(code)
        line = f"AWS refused: {_one_line(message)} ({code})"
        return line if next_step is None else f"{line}. Next: {next_step}"
    if isinstance(error, BotoCoreError):
        known = _BY_ERROR_OF_BOTOCORE.get(type(error).__name__)
        return known or f"AWS cannot be reached: {_one_line(error)}. Next: {_CHECK_NETWORK}"
    return None


def _one_line(what: object) -> str:
    return " ".join(str(what).split()).rstrip(".")
