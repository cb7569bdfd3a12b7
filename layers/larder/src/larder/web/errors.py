"""The errors of the web package: a request that HTTP, a header or one of the APIs does not allow."""

from collections.abc import Iterable

from larder.errors import LarderError, NotSignedIn

MAX_NAMED = 10
"""How many broken rules one message names. It counts the others."""


class InvalidRequest(LarderError):
    """Values in the path, query, headers or body break rules. The message names each value and its rule."""

    def __init__(self, field: str, rule: str, *others: tuple[str, str]) -> None:
        self.field = field
        self.rule = rule
        self.others = others
        super().__init__(_joined(f"{name}: {broken}" for name, broken in [(field, rule), *others]))


class InvalidBody(LarderError):
    """The same for `/api/auth`, in the format that its clients expect: `[body.name] the rule`.

    docs/clients/better-auth.md#order-of-checks
    """

    def __init__(self, field: str, rule: str, *others: tuple[str, str]) -> None:
        self.field = field
        problems = (f"[body.{name}] {broken}" for name, broken in [(field, rule), *others])
        super().__init__(_joined(problems))


class InvalidQuery(LarderError):
    """The same for a query parameter of `/api/auth`."""

    def __init__(self, field: str, rule: str) -> None:
        self.field = field
        super().__init__(f"[query.{field}] {rule}")


class OrganizationIdRequired(LarderError):
    message = "configId team needs organizationId, the id or slug of the team that owns the key."


class UnsupportedMediaType(LarderError):
    message = "The body must be sent as application/json."


class UnauthorizedSession(NotSignedIn):
    """The same for creating or changing a key, where Better Auth uses another code."""


class KeyForAnother(UnauthorizedSession):
    """A caller who is not an operator names another user as the owner of a key.

    Better Auth once accepted this: CVE-2025-61928.
    """

    message = (
        "userId: only an operator can create or change keys for another user. Leave out userId."
    )


class IdTokenNotSupported(LarderError):
    """Tokens come only from the token endpoint of a provider, never from a client."""

    message = "id_token not supported"


class EmailCannotBeUpdated(LarderError):
    message = "email cannot be changed here. Use /change-email."


class NoFieldsToUpdate(LarderError):
    message = "No fields to update"


class PathNotFound(LarderError):
    message = "There is no such path. GET /openapi.json lists all paths."


class MethodNotAllowed(LarderError):
    def __init__(self, methods: Iterable[str]) -> None:
        self.allowed = ", ".join(methods)
        super().__init__(f"This path does not support the request's method. Use {self.allowed}.")


class NotThroughProxy(LarderError):
    message = "Use the address of this service's proxy. The API does not accept direct requests."


class NetworkNotAllowed(LarderError):
    def __init__(self, address: str) -> None:
        super().__init__(
            f"Your address, {address}, is in none of the networks that this service allows. Use your company's network "
            "or VPN. An operator can add a network to AllowedNetworks."
        )


class NotLoopback(LarderError):
    """turbo can receive its token only at an address on the user's own computer."""

    message = (
        "The address that receives the token must be http://127.0.0.1:<port>, http://localhost:<port> or "
        "http://[::1]:<port>, with nothing after it."
    )


class ServerOnlyProperty(LarderError):
    def __init__(self, field: str) -> None:
        super().__init__(f"{field} can only be set by an operator of this deployment.")


class InvalidApiKey(LarderError):
    message = "Invalid API key."


class MissingOrNullOrigin(LarderError):
    message = (
        "The request has no origin. Send an Origin header, or send neither cookies nor a Sec-Fetch-Mode header,"
        " which Node adds."
    )


class InvalidOrigin(LarderError):
    message = (
        "The page that sends the request is not from a trusted origin. "
        "The operator can add its origin to TrustedOrigins."
    )


class CrossSiteNavigation(LarderError):
    """A page of another site posts a form that signs its visitor in or out."""

    message = "A page of another site cannot sign its visitors in or out."


class InvalidCallbackUrl(LarderError):
    message = "callbackURL must be an encoded path, or lead to this service or an origin in TrustedOrigins."


class InvalidRedirectUrl(InvalidCallbackUrl):
    message = "redirectTo must be an encoded path, or lead to this service or an origin in TrustedOrigins."


class InvalidErrorCallbackUrl(InvalidCallbackUrl):
    message = "errorCallbackURL must be an encoded path, or lead to this service or an origin in TrustedOrigins."


class InvalidNewUserCallbackUrl(InvalidCallbackUrl):
    message = "newUserCallbackURL must be an encoded path, or lead to this service or an origin in TrustedOrigins."


class InternalError(LarderError):
    """The reply to any unexpected exception. The log has the details under the request id."""

    message = "Something went wrong on our side. The log has the details under the request id."


def _joined(problems: Iterable[str]) -> str:
    listed = list(problems)
    more = len(listed) - MAX_NAMED
    return "; ".join([*listed[:MAX_NAMED], *([f"and {more} more"] if more > 0 else [])])
