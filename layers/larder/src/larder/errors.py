"""The errors of services and repositories, in the terms of the domain: what is wrong, and what to do next.

How a client sees one is the web package's: `web/replies/errors.py` has the status, the code and the headers of each.
"""


class LarderError(Exception):
    """The base class of all errors that have a message for the user."""

    message: str

    def __init__(self, message: str | None = None) -> None:
        if message is not None:
            self.message = message
        super().__init__(self.message)


class InvalidValue(LarderError):
    """A value breaks a rule. `field` is its name in the domain, such as `user_id`."""

    def __init__(self, field: str, rule: str) -> None:
        self.field = field
        self.rule = rule
        super().__init__(f"{field}: {rule}")


class Unauthenticated(LarderError):
    """The credential is missing or not valid. The message does not reveal which, or why."""

    message = "A valid bearer token is required: it is missing, unknown, expired or revoked."


class NotSignedIn(LarderError):
    """There is no session, or it is unknown, expired or ended. The message does not reveal which."""

    message = "You need to be signed in."


class SessionNotFresh(LarderError):
    message = "Your sign-in is too old for this request. Sign in again."


class OperatorOnly(LarderError):
    message = "Only an operator of this deployment may do this."


class InvalidEmail(InvalidValue):
    def __init__(self, field: str = "email") -> None:
        super().__init__(field, "must be an email address")


class PasswordTooShort(InvalidValue):
    def __init__(self, field: str, least: int, most: int) -> None:
        super().__init__(field, f"must have {least} to {most} characters, not fewer")


class PasswordTooLong(InvalidValue):
    def __init__(self, field: str, least: int, most: int) -> None:
        super().__init__(field, f"must have {least} to {most} characters, not more")


class PasswordTooCommon(InvalidValue):
    """This deployment refuses the passwords that attackers try first."""

    def __init__(self, field: str) -> None:
        super().__init__(field, "is one of the most common passwords. Choose another one")


class InvalidPassword(LarderError):
    """A signed-in user sent a wrong current password."""

    message = "The password is wrong."


class InvalidEmailOrPassword(LarderError):
    """The message does not reveal which of the two is wrong, so that nobody learns who has an account."""

    message = "The email address or the password is wrong."


class ProviderRequired(LarderError):
    """The domain of the address is a provider's, which is required. It depends on the domain alone, so nobody learns
    who has an account.
    """

    message = "People with this address sign in with their company."

    def __init__(self, provider_id: str) -> None:
        self.provider_id = provider_id
        super().__init__()


class AddressIsLinked(LarderError):
    message = (
        "The address belongs to a company that the account is linked to. Choose another address of the company, or "
        "unlink the account first."
    )


class UserSuspended(LarderError):
    """Sent only if the password is correct, so that nobody else learns that the account exists."""

    message = "Your access has ended. Ask the operator."


class EmailNotVerified(LarderError):
    """Sent only if the password is correct, so that nobody else learns that the account exists."""

    message = "The email address is not verified yet. We have sent a new link to it."


class EmailNotProven(LarderError):
    """The address may be verified, but not by the person who uses the account."""

    message = (
        "First confirm your address: while you are signed in, open the link that we send to it."
    )


class AddressTooLong(LarderError):
    """The email and its link do not fit into one job for the function that sends it."""

    message = "The address or the page to continue at is too long."


class ProviderNotFound(LarderError):
    message = "Provider not found"


class NoProviderFound(LarderError):
    """No provider has the address, the domain, the id or the team that a sign-in names."""

    message = "No provider found for the issuer"


class AccountNotFound(LarderError):
    message = "The user has no such account."


class LastAccount(LarderError):
    message = "This is your last way to sign in. First add another one."


class EmailPasswordDisabled(LarderError):
    message = "Signing in with email and password is turned off in this deployment."


class SignUpDisabled(LarderError):
    message = "Sign-up is turned off in this deployment. Ask the operator to add you."


class InvitationRequired(SignUpDisabled):
    """The message is the same whether or not the address has an account."""

    message = "This address has no invitation. Ask an owner of a team to invite you, or sign in if you have an account."


class SetupRefused(SignUpDisabled):
    """The code of a setup is wrong, or there is a user already."""

    message = "The link works once, in a new deployment. Sign in, or ask the operator to add you."


class EmailDomainNotAllowed(SignUpDisabled):
    """The message does not list the allowed domains: strangers could use them to guess addresses."""

    message = "Addresses of this domain cannot sign up. Ask the operator to add you."


class UserAlreadyExists(LarderError):
    message = "This email address already belongs to a user. Sign in, or use another address."


class InvalidVerificationToken(LarderError):
    """A verification link is forged, or a later change made it invalid."""

    message = "The link is not valid. Ask for a new one."


class VerificationTokenExpired(InvalidVerificationToken):
    message = "The link has expired. Ask for a new one."


class VerifiedUserNotFound(InvalidVerificationToken):
    message = "The link is genuine, but its user was deleted or now has another address."


class EmailMismatch(LarderError):
    message = "This is not the signed-in user's email address."


class EmailAlreadyVerified(LarderError):
    message = "The email address is already verified."


class EmailUnchanged(LarderError):
    message = "The new address is the user's current address."


class ChangeEmailDisabled(LarderError):
    message = "Changing the email address is turned off in this deployment."


class ResetPasswordDisabled(LarderError):
    message = "Signing in with email and password is turned off in this deployment, and so is the password reset."


class InvalidDeletionToken(LarderError):
    """A request to delete a user has a token. Larder sends no links that delete users."""

    message = "The token is not valid. Send the password instead."


class SessionExpired(LarderError):
    """A request to delete a user has no password, and its session is not fresh."""

    message = "Your sign-in is too old for this request. Sign in again, or send your password."


class SoleTeamOwner(LarderError):
    def __init__(self, slugs: list[str]) -> None:
        self.slugs = slugs
        teams = ", ".join(slugs)
        super().__init__(
            f"You are the only owner of {teams}. First make another member an owner, or delete the team."
        )


class LastOwner(LarderError):
    message = "This is the team's only owner. First make another member an owner."


class MembershipManaged(LarderError):
    message = (
        "The groups of an identity provider give this membership, and would give it again. "
        "Change the person's groups there."
    )


class SlugTaken(LarderError):
    def __init__(self, slug: str) -> None:
        self.slug = slug
        super().__init__(f"Another team has the slug {slug}. Choose another one.")


class TeamLimitReached(LarderError):
    message = "You have reached the limit of teams that you can create. Delete one, or ask the operator to create one."


class KeyLimitReached(LarderError):
    def __init__(self, most: int) -> None:
        super().__init__(
            f"The user has {most} API keys, the most that one user may have. Delete a key that is no longer used, or "
            "ask the operator to raise MaxKeysPerUser."
        )


class InvitationLimitReached(LarderError):
    message = "The team has reached its invitation limit. Withdraw one, or wait for one to be accepted or to expire."


class DeleteUserDisabled(LarderError):
    message = "Deleting your account is turned off in this deployment."


class InvalidLinkToken(LarderError):
    message = "The link is not valid, was already used or has expired. Ask for a new one."


class InvalidLoginCode(LarderError):
    """A code of `turbo login --sso-team` is unknown, used or expired. The message does not reveal which."""

    message = "The login is not valid, was already used or has expired. Run turbo login again."


class NameRequired(InvalidValue):
    """This deployment requires a name for each key."""


class InvalidNameLength(InvalidValue):
    """The name of a key is too short or too long."""


class InvalidPrefixLength(InvalidValue):
    """The prefix of a key is too short or too long."""


class ExpiresInTooSmall(InvalidValue):
    """The lifetime of a key is shorter than the deployment allows."""


class ExpiresInTooLarge(InvalidValue):
    """The lifetime of a key is longer than the deployment allows."""


class KeyExpirationDisabled(InvalidValue):
    """This deployment gives every key the same lifetime."""


class MetadataDisabled(InvalidValue):
    """This deployment stores no metadata with keys."""


class InvalidMetadata(InvalidValue):
    """Metadata is too long or too deep, or has property names that are dangerous for JavaScript readers."""


class RemainingRequired(InvalidValue):
    """A refill adds to the remaining uses, so a key with a refill has a number of them."""

    def __init__(self) -> None:
        super().__init__("remaining", "is required with a refill")


class NoValuesToUpdate(LarderError):
    message = "The body has no field to change. Send at least one."


class PermissionNotHeld(LarderError):
    """Users cannot give a key more than they have themselves. The message names what exceeds that."""


class NotInOrganization(LarderError):
    """For the keys that a team owns, where Better Auth has another code. Also for a team that does not exist."""

    message = "You are not a member of the team that owns this API key."


class CannotManageTeamKeys(LarderError):
    message = "Only owners and admins of the team manage the API keys that it owns."


class KeyNotFound(LarderError):
    """Also sent for another user's key, so that nobody learns which ids exist."""

    message = "There is no such API key."


class UsageExceeded(LarderError):
    message = "This API key has no uses left until its next refill."


class SoftBlocked(LarderError):
    """The message includes the operator's reason, if there is one."""

    message = "This account is blocked. Ask the operator of this cache for the reason."

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(None if reason is None else f"This account is blocked: {reason}")


class PaymentMissing(LarderError):
    message = "A payment for this account is missing. Ask the operator of this cache."

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(
            None if reason is None else f"A payment for this account is missing: {reason}"
        )


class NotATeamMember(LarderError):
    """Also sent for a team that does not exist, so that nobody learns which teams exist."""

    message = (
        "The token's owner is not a member of this team, or the token is bound to another team."
    )


class InvalidTeam(InvalidValue):
    """The request names a team in a form that no team has. turbo only shows why if the reply is like that of
    NotATeamMember.
    """


class TeamsDiffer(LarderError):
    message = (
        "The request names one team by its id, and another by its slug. With turbo, run `turbo unlink`, or unset "
        "TURBO_TEAM or TURBO_TEAMID."
    )


class ReadOnly(LarderError):
    message = "This token can read artifacts, but not write them."


class PublicReadOnly(ReadOnly):
    """The same for a public read key."""


class UploadsForbidden(PublicReadOnly):
    """The same for a client that then uploads nothing more, and goes on reading."""


class MissingPermission(LarderError):
    """The message names the permission."""


class MissingRole(LarderError):
    """The message names the roles that may do it."""

    message = "Only an owner or admin of the team can do this."


OWNERS_ONLY = "Only an owner of the team can do this."
"""The message of `MissingRole` where admins are refused, too."""


class SessionRequired(LarderError):
    """The request has an API key, but only a signed-in user can make it."""

    message = "This request needs the session token of a signed-in user, not an API key."


class TeamCreationDisabled(LarderError):
    message = "Only operators can create teams in this deployment."


class InvitationForAnother(LarderError):
    message = "This invitation was sent to another email address. Sign in with that address."


class CachingDisabled(LarderError):
    message = "Remote caching is disabled for this account. An owner can enable it."


class CachingPaused(LarderError):
    message = "Remote caching is paused for this account. An owner can enable it."


class CachingOverLimit(LarderError):
    message = (
        "This account's storage quota is full. Delete artifacts, or ask the operator for a larger quota. "
        "You can still read stored artifacts."
    )


class SignatureRequired(LarderError):
    message = "This team stores only signed artifacts. Turn on signatures in turbo.json."


class ScopesFull(LarderError):
    """An upload to an own scope finds no space that own scopes may take."""

    message = (
        "The part of the storage quota for own scopes is full. Wait until artifacts in them expire, or ask the "
        "operator for a larger quota. You can still read stored artifacts."
    )


class StorageFull(LarderError):
    """`MaxStoredBytes` is reached. turbo prints the message, because the code is not `remote_caching_*`."""

    message = (
        "This deployment has reached its storage limit, MaxStoredBytes. Ask its operator to raise the limit. "
        "You can still read stored artifacts."
    )


class UnprovenCannotStore(LarderError):
    message = (
        "Confirm your email address before you store artifacts without a team: while you are signed in, open the link "
        "that we sent. You can still read."
    )


class LargerThanQuota(LarderError):
    """No eviction can free enough. turbo keeps uploading smaller artifacts, unlike after `CachingOverLimit`."""

    def __init__(self, hash: str, size_bytes: int, quota_bytes: int) -> None:
        super().__init__(
            f"The artifact {hash} has {size_bytes:,} bytes, and the quota is {quota_bytes:,}. Ask the operator for a "
            "larger quota, or make the outputs of the task smaller."
        )


class TeamNotFound(LarderError):
    """Also sent for a team that the caller does not belong to, so that nobody learns which teams exist."""

    message = "There is no such team, or you are not a member of it."


class MemberNotFound(LarderError):
    message = "The team has no member and no open invitation with this id."


class InvitationNotFound(LarderError):
    message = "The invitation is not valid, was already used or has expired. Ask for a new one."


class ArtifactNotFound(LarderError):
    message = "There is no artifact with this hash."


class RateLimited(LarderError):
    """The key's own rate limit. Its window ends after `retry_after_s`."""

    message = "This token has reached its rate limit. Try again later."

    def __init__(self, try_again_in_ms: int) -> None:
        super().__init__()
        self.retry_after_s = -(-try_again_in_ms // 1000)


class RunTooLarge(LarderError):
    message = "The report has more than 4 MB compressed, 32 MB unpacked, or 200,000 files. Send it without inputs."


class TooManyRequests(LarderError):
    """One client address or one user reached the limit of one kind of request."""

    message = "Too many requests. Please try again later."

    def __init__(self, retry_after_s: int) -> None:
        super().__init__()
        self.retry_after_s = retry_after_s


class TooManyWrongPasswords(TooManyRequests):
    """One account had too many wrong passwords. Until the delay ends, the right one is refused as well."""

    message = "Too many wrong passwords for this account. Try again later, or reset the password."


class TryAgain(LarderError):
    """DynamoDB or S3 did not answer in time.

    The request was not carried out, or its confirmation was lost. It is safe to send it again (docs/faults.md).
    """

    message = "A part of the service did not answer in time. Try again in a moment."


class EvictionInProgress(TryAgain):
    """The quota is full, and eviction is slower than the uploads."""

    message = "The storage quota is full. Larder is deleting old artifacts to make room. Try again in a moment."


class Contention(TryAgain):
    """Nothing was written, because other transactions came first on every attempt."""


class ExchangeRefused(LarderError):
    """An id token is not valid, or no rule accepts it. The message says why, in terms of the caller's own token."""


class IdTokenSpent(ExchangeRefused):
    message = "subject_token was used before. Get a new one from your CI for each exchange."


class UnsupportedGrantType(LarderError):
    message = "grant_type must be urn:ietf:params:oauth:grant-type:token-exchange."


class InvalidTarget(LarderError):
    message = "audience and resource can only name this service."


class IssuerUnavailable(LarderError):
    """Neither the issuer nor the table has keys that are young enough."""

    message = "The keys of the issuer could not be fetched. Try again in a minute."


class RuleNotFound(LarderError):
    message = "The team has no rule with this id."


class RunNotFound(LarderError):
    message = (
        "There is no reported run with this id that started at this time. It may have expired."
    )


class RuleExists(LarderError):
    """Another rule of the team accepts the same jobs, and gives them the same."""

    def __init__(self, name: str, rule_id: str) -> None:
        super().__init__(
            f"The rule {name} ({rule_id}) does the same for the same jobs. Change or delete that rule instead."
        )


class RuleLimitReached(LarderError):
    def __init__(self, most: int) -> None:
        super().__init__(f"A team can have {most} rules. Remove one first.")
