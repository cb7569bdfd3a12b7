// What to say about `?error=` after a sign-in with a provider. Any page can link here with any code, so a page shows
// these sentences, and never a text of its address.

const AGAIN = "Try to sign in again.";
const REPORT = "Report it to the operator of this deployment if it happens again.";

const PROVIDER_ERRORS = {
  access_denied: "You canceled the sign-in at your company, or your company did not allow it.",
  account_already_linked_to_different_user: "Another user of this deployment has linked this company account. Sign in as that user, or unlink it there first.",
  account_not_linked: "There is an account with your email address already. Sign in to it with your password, then link your company account on the page of your account.",
  email_does_not_match: "Your company account has another email address than this account.",
  email_not_found: "Your company did not send an email address that Larder can use. Ask its administrators.",
  email_not_verified: "Your email address has to be verified first. We have sent you a link to it.",
  invalid_callback_request: `The reply of your company was not complete. ${AGAIN}`,
  invalid_code: `Your company did not confirm the sign-in. ${AGAIN} ${REPORT}`,
  invalid_id_token: `The reply of your company could not be verified. ${AGAIN} ${REPORT}`,
  issuer_mismatch: `The reply did not come from your company. ${AGAIN} ${REPORT}`,
  issuer_missing: `The reply does not say that it comes from your company. ${AGAIN} ${REPORT}`,
  login_required: `Your company asks you to sign in there first. ${AGAIN}`,
  no_code: `The reply of your company was not complete. ${AGAIN}`,
  oauth_provider_not_found: "This way to sign in no longer exists. Choose another one.",
  provider_error: `The sign-in of your company reported an error. ${AGAIN} ${REPORT}`,
  provider_unavailable: "The sign-in of your company did not reply in time. Try again in a moment.",
  reauthentication_missing: `Your company did not ask for a new login, so Larder cannot confirm that it is you. ${REPORT}`,
  signup_disabled: "You have no account here yet. Ask an owner or admin of your team for an invitation.",
  sso_required: "Your company asks you to sign in with its own account. Choose that, or enter your email address.",
  state_mismatch: `The sign-in took longer than ten minutes, or was started elsewhere. ${AGAIN}`,
  state_not_found: `The sign-in took longer than ten minutes, or was started in another browser. ${AGAIN}`,
  unable_to_link_account: "The company account could not be linked. Your account can have one of each company.",
  user_suspended: "The operator has suspended your access to this deployment.",
};

/** The sentence for the code in the page's address. Undefined without one that a provider's sign-in sends. */
const providerError = () => {
  const code = query.get("error");
  return Object.hasOwn(PROVIDER_ERRORS, code) ? PROVIDER_ERRORS[code] : undefined;
};
