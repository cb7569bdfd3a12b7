const token = query.get("token");
// Remove the token from the address bar and the history. Links in emails still lead back with it: `here`.
if (token !== null) history.replaceState(null, "", location.pathname);
let session = "";
let email = "";

const ROLES = { OWNER: "an owner", ADMIN: "an admin", MEMBER: "a member", DEVELOPER: "a developer", VIEWER: "a viewer" };
let invitation = null;

/** `isNew` is after a sign-up: to join, users have to show first that they receive mail. */
async function refresh({ moves = true, isNew = false } = {}) {
  if (!token) return show("no-invitation", { moves });
  if (invitation === null) {
    const { status, data, problem } = await request("POST", "/v1/teams/invitation", { token });
    if (status === 404) return show("no-invitation", { moves });
    if (problem) return fail(problem, { moves });
    invitation = data;
    fill("invitation-team", data.slug);
    fill("invitation-role", ROLES[data.role]);
    fill("invitation-by", data.invitedBy ?? "The operator");
  }
  const { data, problem } = await request("GET", "/api/auth/get-session");
  if (problem) {
    fail(problem, { moves });
  } else if (data === null) {
    const by = invitation.invitedBy ?? "The operator";
    const reason = `${by} invites you to the team ${invitation.slug} as ${ROLES[invitation.role]}. Use the address that received the invitation.`;
    await showSignIn(reason, { moves, isNew: true, company: invitation.provider });
  } else {
    session = data.session.token;
    email = data.user.email;
    fill("invitation-email", email);
    fill("prove-email", email);
    if (!isNew || data.user.emailVerified) show("invitation", { moves });
    else if (options.mailsSignUp === "true") mailSent(email);
    else show("prove");
  }
}

onSubmit("invitation-form", async () => {
  // The endpoint requires the session token in a header, because a page of another site cannot send that.
  const headers = { authorization: `Bearer ${session}` };
  const { status, data, code, problem } = await request("POST", "/v1/teams/join", { token }, headers);
  if (status === 404) return show("no-invitation");
  if (status === 401) return refresh();
  if (code === "email_not_proven") return show("prove");
  if (problem) return problem;
  fill("joined-team", data.name);
  fill("joined-slug", data.slug);
  fill("joined-role", data.role);
  element("joined-console").href = `/console/t/${data.slug}`;
  show("joined");
});

onSubmit("prove-form", async () => {
  const { code, problem } = await request("POST", "/api/auth/send-verification-email", { email, callbackURL: here() });
  // The user has opened a link in the meantime, perhaps in another tab.
  if (code === "EMAIL_ALREADY_VERIFIED") return refresh();
  if (problem) return problem;
  mailSent(email);
});

onClick("not-you", signOut);
refresh({ moves: false });
