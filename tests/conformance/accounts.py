"""The statements of email and password."""

import re
from typing import Any

from tests.conformance.statement import Ask, case

EMAIL, PASSWORD = "bob@example.com", "correct horse battery staple"


def post(path: str, **body: Any) -> Ask:
    return Ask(by="browser", method="POST", path=path, json=body)


def get(path: str) -> Ask:
    return Ask(by="browser", method="GET", path=path)


def sign_up(**more: Any) -> Ask:
    return post("/sign-up/email", **{"name": "Bob", "email": EMAIL, "password": PASSWORD, **more})


def sign_in(**more: Any) -> Ask:
    return post("/sign-in/email", **{"email": EMAIL, "password": PASSWORD, **more})


WHO = get("/get-session")
OUT = post("/sign-out")
RESET = post("/request-password-reset", email=EMAIL, redirectTo="/new-password")
VERIFIED = {"require_email_verification": "true"}
LINK = {"send_verification_on_sign_up": "true"}

ACCOUNTS = (
    case("3.1-register", "users register", sign_up(), json={"user": {"email": EMAIL, "name": "Bob"}}),
    case("3.1-register-default", "in every deployment", sign_up(), options={"sign_up_policy": "invited"},
        row='"lets users register"'),
    case("3.1-disabled", "unless email and password are off", sign_in(), status=400,
        options={"enable_email_and_password": "false"}),
    case("3.2-image", "a user has a picture", sign_up(image="https://example.com/b.png"), WHO,
        json={"user": {"image": "https://example.com/b.png"}}),
    case("3.2-credential", "the account is of the provider `credential`", sign_up(), get("/list-accounts"),
        json=[{"providerId": "credential"}]),
    case("3.3-sign-in", "valid credentials sign in", sign_up(), OUT, sign_in(), WHO, json={"user": {"email": EMAIL}}),
    case("3.3-sign-in-wrong", "others do not", sign_up(), OUT, sign_in(password="wrong horse"), status=401),
    case("3.3-remember", "a session lasts", sign_up(), WHO, json={"session": {"expiresAt": str}}),
    case("3.3-unverified", "an unverified address gets 403", sign_up(), sign_in(), status=403, json={"message": str},
        options=VERIFIED),
    case("3.3-unverified-mail", "and another mail", sign_up(), sign_in(), status=403, mails=1, options=VERIFIED),
    case("3.3-verify", "a link of verification redirects to callbackURL", sign_up(callbackURL="/welcome"),
        get("{mail}"), status=302, headers={"location": re.compile("/welcome$")}, options={**VERIFIED, **LINK}),
    case("3.3-verify-invalid", "with an error if its token is invalid",
        get("/verify-email?token=nope&callbackURL=/welcome"), status=302,
        headers={"location": re.compile(r"/welcome\?error=invalid_token$")}),
    case("3.3-reset", "a request for a reset calls sendResetPassword", sign_up(), RESET, mails=1),
    case("3.3-reset-unknown", "if the user exists", RESET, json={"status": True}),
    case("3.3-reset-always", "each time", sign_up(), *[RESET] * 6, mails=1,
        options={"http_rate_limit_enabled": "false"}, row=None),
    case("3.3-reset-link", "the link redirects with the token", sign_up(), RESET, get("{mail}"), status=302,
        headers={"location": re.compile(r"/new-password\?token=\w+$")}),
    case("3.3-reset-invalid", "or with an error", get("/reset-password/nope?callbackURL=/new-password"), status=302,
        headers={"location": re.compile(r"/new-password\?error=INVALID_TOKEN$")}),
    case("3.3-reset-password", "a valid token replaces the password", sign_up(), RESET,
        post("/reset-password", newPassword="another horse", token="{mail_token}"), sign_in(password="another horse"),
        json={"user": {"email": EMAIL}}),
    case("3.3-reset-sessions", "and nothing else", sign_up(), RESET,
        post("/reset-password", newPassword="another horse", token="{mail_token}"), WHO,
        json={"user": {"email": EMAIL}}, row='"password replaced"'),
    case("3.3-sign-out", "sign-out ends the session", sign_up(), OUT, WHO, json=None),
    case("3.3-change", "a change of the password takes the current one", sign_up(),
        post("/change-password", currentPassword=PASSWORD, newPassword="another horse"),
        json={"user": {"email": EMAIL}}),
    case("3.3-change-wrong", "and no other", sign_up(),
        post("/change-password", currentPassword="wrong horse", newPassword="another horse"), status=400),
    case("3.3-change-others", "and ends other sessions", sign_up(),
        post("/change-password", currentPassword=PASSWORD, newPassword="another horse", revokeOtherSessions=True),
        get("/list-sessions"), json=[{"id": str}]),
    *(
        case(
            f"3.4-sign-up-{name}",
            f"`{name}` is required",
            post(
                "/sign-up/email",
                **{k: v for k, v in {"name": "B", "email": EMAIL, "password": PASSWORD}.items() if k != name},
            ),
            status=400,
        )
        for name in ("name", "email", "password")
    ),
    case("3.2-name", "a name is a string", sign_up(name=""), row="the name is a"),
    case("3.2-image-form", "an image is a URL", sign_up(image="ftp://a.example/b"), row="the image is"),
    case("3.2-email", "an email is an address", sign_up(email="b@localhost"), row="the email is"),
    case("3.4-sign-up-7", "a password has at least 8", sign_up(password="1234567"), status=400),
    case("3.4-sign-up-128", "and at most 128 characters", sign_up(password="x" * 128)),
    case("3.4-sign-up-129", "not more", sign_up(password="x" * 129), status=400),
    case("3.4-sign-up-more", "additional fields may be accepted", sign_up(company="Acme")),
    case("3.4-callback-any", "callbackURL is a URL", sign_up(callbackURL="https://other.example/"),
        row="`callbackURL` and"),
    case("3.4-sign-up-callback", "callbackURL is where to redirect to", sign_up(callbackURL="/welcome"), status=302,
        row='`callbackURL`: "URL to redirect'),
    case("3.4-sign-in-callback", "sign-in takes callbackURL", sign_up(), sign_in(callbackURL="/welcome"),
        json={"redirect": True, "url": re.compile("/welcome$")}),
    case("3.4-sign-in-short", "8 to 128 characters", sign_up(), sign_in(password="short"), status=400,
        row='the password has "8 to 128'),
    case("3.4-sign-out", "sign-out takes no fields", sign_up(), OUT, json={"success": True}),
    case("3.4-send-verification", "a verification can be sent again", sign_up(),
        post("/send-verification-email", email=EMAIL), json={"status": True}, mails=1),
    case("3.4-reset-required", "a reset needs the new password", post("/reset-password", token="nope"), status=400),
    case("3.4-reset-token", "and its token", post("/reset-password", newPassword="another horse"), status=400),
    case("3.4-change-required", "a change needs both passwords", sign_up(),
        post("/change-password", newPassword="another horse"), status=400),
    case("3.6-verification-only", "a link is sent by hand or at a sign-in", sign_up(), mails=0, options=LINK,
        row='"triggered manually'),
    case("3.7-message", "an error has a message", sign_in(password="wrong horse"), status=401,
        json={"message": str, "code": str}),
)  # fmt: skip
