// Sign-in, sign-up and sign-out, for pages that include sign-in-forms.html. Each page defines `refresh`: it finds out who is
// signed in and shows the right section. It runs when the page opens and after each sign-in or sign-out.

/** What `/_local/sign-in` of the local cloud leads to, the second time. */
const LINK_USED = "This link was used. It works once. Sign in with your password, or start make serve again for a new link.";

// Links in emails lead back with `account`, because a user who gets one has an account.
let hasAccount = query.has("account");
let firstForm = "sign-in";

/** Show the form for signing in. `isNew` begins with the one for signing up, unless the user has an account. */
function showSignIn(reason, { moves, isNew = false }) {
  const isDeadLink = query.has("error");
  for (const place of document.querySelectorAll("[data-reason]")) place.textContent = reason;
  fill("sign-in-notice", query.get("error") === "link_used" ? LINK_USED : "The link has expired or is incomplete. Sign in to get a new one.");
  element("sign-in-notice").hidden = !isDeadLink;
  element("to-sign-up").hidden = options.signsUp !== "true";
  firstForm = isNew && !hasAccount && options.signsUp === "true" ? "sign-up" : "sign-in";
  show(options.signsIn === "true" ? firstForm : "no-sign-in", { moves });
}

function fail(problem, { moves = true } = {}) {
  fill("failed-problem", problem);
  show("failed", { moves });
}

async function signOut() {
  hasAccount = true;
  const { problem } = await request("POST", "/api/auth/sign-out", {});
  return problem ? fail(problem) : refresh();
}

/** The path for the link in the email: this page with its parameters. Empty if it exceeds the server's limit. */
function here() {
  const parameters = new URLSearchParams(query);
  parameters.delete("error");
  parameters.set("account", "");
  const path = `${location.pathname}?${parameters}`;
  return path.length <= 2048 ? path : "";
}

onSubmit("sign-in-form", async ({ email, password, remember }) => {
  const body = { email, password, rememberMe: remember === "on", callbackURL: here() };
  const { code, problem } = await request("POST", "/api/auth/sign-in/email", body);
  if (code === "EMAIL_NOT_VERIFIED") return mailSent(email);
  // Of a wrong address and a wrong password, the password is more likely.
  if (problem) return { problem, field: code === "INVALID_EMAIL_OR_PASSWORD" ? "password" : undefined };
  return refresh();
});

onSubmit("sign-up-form", async ({ name, email, password }) => {
  const body = { name, email, password, rememberMe: false, callbackURL: here() };
  const { status, data, problem } = await request("POST", "/api/auth/sign-up/email", body);
  element("sign-up-taken").hidden = status !== 422;
  if (problem) return { problem, field: status === 422 ? "email" : undefined };
  return data.token === null ? mailSent(email) : refresh({ isNew: true });
});

function mailSent(email) {
  hasAccount = true;
  fill("mail-sent-to", email);
  element("sign-in-email").value = email;
  show("mail-sent");
}

// Each form is a step in the browser's history, and keeps the address that was typed into the other.
function change(from, to) {
  element(`${to}-email`).value = element(`${from}-email`).value;
  history.pushState(to, "");
  show(to);
}

onClick("sign-up-instead", () => change("sign-in", "sign-up"));
onClick("sign-in-instead", () => change("sign-up", "sign-in"));
addEventListener("popstate", ({ state }) => {
  if (!element("sign-in").hidden || !element("sign-up").hidden) show(state ?? firstForm);
});
onClick("mail-followed", () => refresh());
onClick("again", () => refresh());
