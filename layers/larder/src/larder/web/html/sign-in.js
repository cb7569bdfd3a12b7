// Signing in, up and out, for pages that show sign-in.html. `entered` is called once somebody is signed in.

function askWho(reason, entered, { notice = null, moves = true } = {}) {
  fill("sign-in-reason", reason);
  element("sign-in-notice").hidden = notice === null;
  fill("sign-in-notice", notice ?? "");
  element("to-sign-up").hidden = options.signsUp !== "true";
  whenEntered = entered;
  show(options.signsIn === "true" ? "sign-in" : "no-sign-in", { moves });
}

async function signOut() {
  const { problem } = await ask("POST", "/api/auth/sign-out", {});
  return problem;
}

let whenEntered = () => {};

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
  return whenEntered();
});

onSubmit("sign-up-form", async ({ name, email, password }) => {
  const body = { name, email, password, rememberMe: false, callbackURL: here() };
  const { said, problem } = await ask("POST", "/api/auth/sign-up/email", body);
  if (problem) return problem;
  element("sign-up-password").value = "";
  return said.token === null ? mailSent(email) : whenEntered();
});

function mailSent(email) {
  fill("mail-sent-to", email);
  element("sign-in-email").value = email;
  show("mail-sent");
}

onClick("sign-up-instead", () => show("sign-up"));
onClick("sign-in-instead", () => show("sign-in"));
onClick("mail-followed", () => show("sign-in"));
