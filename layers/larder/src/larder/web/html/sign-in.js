// Signing in, up and out, for pages that show sign-in.html. Each has a function `look`, which looks who is signed in and
// shows what is due: at first, and whenever that has changed.

function askWho(reason, { moves }) {
  const isDeadLink = query.has("error");
  fill("sign-in-reason", reason);
  fill("sign-in-notice", isDeadLink ? "The link in the mail has expired or was not whole. Sign in to get another one." : "");
  element("sign-in-notice").hidden = !isDeadLink;
  element("to-sign-up").hidden = options.signsUp !== "true";
  show(options.signsIn === "true" ? "sign-in" : "no-sign-in", { moves });
}

function fail(problem, { moves = true } = {}) {
  fill("failed-problem", problem);
  show("failed", { moves });
}

async function signOut() {
  const { problem } = await ask("POST", "/api/auth/sign-out", {});
  return problem ? fail(problem) : look();
}

/** The page that the link in a mail leads to: this one, with all that it was asked for, unless that is too long. */
function here() {
  const asked = new URLSearchParams(query);
  asked.delete("error");
  const path = `${location.pathname}?${asked}`;
  return path.length <= 2048 ? path : "";
}

onSubmit("sign-in-form", async ({ email, password, remember }) => {
  const body = { email, password, rememberMe: remember === "on", callbackURL: here() };
  const { code, problem } = await ask("POST", "/api/auth/sign-in/email", body);
  if (code === "EMAIL_NOT_VERIFIED") return mailSent(email);
  if (problem) return problem;
  element("sign-in-password").value = "";
  return look();
});

onSubmit("sign-up-form", async ({ name, email, password }) => {
  const body = { name, email, password, rememberMe: false, callbackURL: here() };
  const { said, problem } = await ask("POST", "/api/auth/sign-up/email", body);
  if (problem) return problem;
  element("sign-up-password").value = "";
  return said.token === null ? mailSent(email) : look();
});

function mailSent(email) {
  fill("mail-sent-to", email);
  element("sign-in-email").value = email;
  show("mail-sent");
}

onClick("sign-up-instead", () => show("sign-up"));
onClick("sign-in-instead", () => show("sign-in"));
onClick("mail-followed", () => show("sign-in"));
onClick("not-you", signOut);
onClick("again", () => look());
