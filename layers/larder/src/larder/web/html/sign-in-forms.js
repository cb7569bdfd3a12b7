// Sign-in, sign-up and sign-out, for pages that include sign-in-forms.html. Each page defines `refresh`: it finds out who is
// signed in and shows the right section. It runs when the page opens and after each sign-in or sign-out.

/** What `/_local/sign-in` of the local cloud leads to, the second time. */
const LINK_USED = "This link was used. It works once. Sign in with your password, or start make serve again for a new link.";

/** More buttons would hide the form below them. Other providers are found by an address. */
const MOST_BUTTONS = 6;

const offered = request("GET", "/api/auth/sign-in/providers");

// Links in emails lead back with `account`, because a user who gets one has an account.
let hasAccount = query.has("account");
let firstForm = "sign-in";
/** The code of a new stack's link, for its first user. */
let setupCode = null;
let landing = here;

/** Show the form for signing in. `isNew` begins with the one for signing up, unless the user has an account. `to` is
 * where a provider leads back to, by default this page. `company` is the provider of an invited address, if it has one:
 * `{ id, name, required }`. */
async function showSignIn(reason, { moves, isNew = false, to = here, company = null }) {
  landing = to;
  const { providers: listed, passwords, asksAddress: mustAsk } = await ways();
  const providers = company ? [company, ...listed.filter(({ id }) => id !== company.id)] : listed;
  const asksAddress = mustAsk || providers.length > MOST_BUTTONS;
  const signsUp = (options.signsUp === "true" || (setupCode && options.signsIn === "true")) && passwords !== "none" && !company?.required;
  for (const place of document.querySelectorAll("[data-reason]")) place.textContent = reason;
  showError();
  for (const place of document.querySelectorAll("[data-providers]")) showButtons(place, providers, asksAddress || passwords !== "none");
  element("address-form").hidden = !asksAddress;
  element("sign-in-form").hidden = element("to-reset").hidden = asksAddress || passwords === "none";
  element("to-sign-up").hidden = !signsUp;
  element("below-sign-in").hidden = element("to-reset").hidden && !signsUp;
  firstForm = isNew && !hasAccount && signsUp ? "sign-up" : "sign-in";
  show(passwords === "none" && !asksAddress && !providers.length ? "no-sign-in" : firstForm, { moves });
}

/** The providers with a button, whether all, some or none of the addresses can have a password, and whether an address
 * can lead to a provider that is required or has no button. */
async function ways() {
  const { data, problem } = await offered;
  // Without a list of providers, users with a password can still sign in.
  return problem ? { providers: [], passwords: options.signsIn === "true" ? "all" : "none", asksAddress: false } : data;
}

function showError() {
  const sentence = providerError();
  showProviderProblem(sentence);
  fill("sign-in-notice", query.get("error") === "link_used" ? LINK_USED : "The link has expired or is incomplete. Sign in to get a new one.");
  element("sign-in-notice").hidden = !query.has("error") || sentence !== undefined;
}

function showProviderProblem(problem) {
  for (const place of document.querySelectorAll("[data-provider-problem]")) {
    place.textContent = problem ?? "";
    place.hidden = !problem;
  }
}

function showButtons(place, providers, hasForm) {
  const buttons = providers.slice(0, MOST_BUTTONS).map(({ id, name }) =>
    providerButton(`Continue with ${name}`, () => continueWith("social", { provider: id })));
  const or = Object.assign(document.createElement("p"), { className: "or", textContent: "or" });
  place.hidden = !buttons.length;
  place.replaceChildren(...buttons, ...(hasForm ? [or] : []));
}

/** A button that leaves for a provider. `act` returns the problem if it cannot. */
function providerButton(text, act) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "second", textContent: text });
  button.addEventListener("click", async () => {
    if (button.ariaDisabled === "true") return;
    button.ariaDisabled = "true";
    showProviderProblem(await act());
    button.ariaDisabled = "false";
  });
  return button;
}

/** Leave for a provider, which leads back. Returns only if that fails: the problem, and null if none has the address. */
async function continueWith(kind, body) {
  const { status, data, problem } = await request("POST", `/api/auth/sign-in/${kind}`, { ...body, callbackURL: landing() || undefined, errorCallbackURL: here() || undefined });
  if (status === 404 && kind === "sso") return null;
  if (problem) return problem;
  location.assign(data.url);
  // The button stays busy until the browser has left.
  return new Promise(() => {});
}

/** How the signed-in user can confirm that it is them: `{ hasPassword, providers }`. */
async function ownWays() {
  const [{ data, problem }, { providers }] = await Promise.all([request("GET", "/api/auth/list-accounts"), ways()]);
  if (problem) return { hasPassword: true, providers: [] };
  const ids = data.map(({ providerId }) => providerId);
  const named = ids.filter((id) => id !== "credential").map((id) => providers.find((one) => one.id === id) ?? { id, name: id });
  return { hasPassword: ids.includes("credential"), providers: named };
}

/** Buttons to sign in at a provider once more. They lead back with a fresh session. */
const confirmButtons = (providers) =>
  providers.map(({ id, name }) =>
    providerButton(`Confirm with ${name}`, () => continueWith("social", { provider: id, additionalParams: { prompt: "login" } })));

onSubmit("address-form", async ({ email }) => {
  const problem = await continueWith("sso", { email });
  if (problem !== null) return problem;
  if ((await ways()).passwords === "none") return "No company has addresses like this one here. Check the address, or ask the operator of this deployment.";
  element("sign-in-email").value = email;
  element("address-form").hidden = true;
  element("sign-in-form").hidden = element("to-reset").hidden = element("below-sign-in").hidden = false;
  element("sign-in-password").focus();
});

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
  if (code === "SSO_REQUIRED") return continueWith("sso", { email });
  // Of a wrong address and a wrong password, the password is more likely.
  if (problem) return { problem, field: code === "INVALID_EMAIL_OR_PASSWORD" ? "password" : undefined };
  return refresh();
});

onSubmit("sign-up-form", async ({ name, email, password }) => {
  const body = { name, email, password, rememberMe: false, callbackURL: here(), ...(setupCode && { setupCode }) };
  const { status, data, code, problem } = await request("POST", "/api/auth/sign-up/email", body);
  if (code === "SSO_REQUIRED") return continueWith("sso", { email });
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
