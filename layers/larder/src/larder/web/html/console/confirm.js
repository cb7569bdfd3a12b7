// Confirm that it is the user: with the password, or at a provider.

// Other tabs of the console must not go on with a session that has ended.
const tabs = new BroadcastChannel("larder-session");
tabs.addEventListener("message", () => location.reload());

// Password managers need to know which account's password it is.
const Username = ({ user }) => html`<input class="hidden-text" type="text" autocomplete="username" value=${user.email} readonly tabindex="-1" aria-hidden="true" />`;

/** The names of providers by id. Hidden ones are not in the reply, so their id stands for the name. */
const providerNames = (reply) => (id) => reply?.providers?.find((one) => one.id === id)?.name ?? id;

/** How the user signs in: `{ accounts, hasPassword, offered }`, each account with its name, and the listed providers. */
async function loadWays() {
  const [accounts, offered] = await Promise.all([call("GET", "/api/auth/list-accounts"), call("GET", "/api/auth/sign-in/providers")]);
  if (accounts.problem) return accounts;
  const providers = offered.data?.providers ?? [];
  const nameOf = providerNames(offered.data);
  const named = accounts.data.map((account) => ({ ...account, name: account.providerId === "credential" ? "Password" : nameOf(account.providerId) }));
  const hasPassword = named.some(({ providerId }) => providerId === "credential");
  return { data: { accounts: named, hasPassword, offered: providers }, problem: null };
}

/** Leave for a provider, which leads back to this view. The page of the account explains errors. */
async function leaveFor(path, body) {
  const { data, problem } = await call("POST", path, { ...body, callbackURL: location.pathname, errorCallbackURL: "/console/account" });
  if (problem) return announce(problem);
  location.assign(data.url);
}

/** The end of a managed user's keys, from a week before. */
function KeysEnd({ user, until }) {
  if (until === null || new Date(until) - Date.now() > 7 * DAY) return null;
  return html`<p class="notice">Your keys work until ${formats.date.format(new Date(until))}.${" "}
    <button type="button" class="link" onClick=${() => leaveFor("/api/auth/sign-in/sso", { email: user.email })}>Sign in with your company<//> to keep them.
  </p>`;
}

/** Some things need a session that began within a day: sign in once more, and end the session before. */
function ConfirmIdentity({ user, session, cancel, done }) {
  const ways = useLoad("ways", loadWays);
  const act = async ({ password }) => {
    const { problem } = await call("POST", "/api/auth/sign-in/email", { email: user.email, password, rememberMe: true });
    if (problem) return { problem, field: "password" };
    await call("POST", "/api/auth/revoke-session", { token: session.token });
    await done();
  };
  return html`<${Loaded} of=${ways} lines="2" show=${({ accounts, hasPassword }) => html`
    <p>You signed in more than a day ago. ${hasPassword ? "Enter your password to go on." : "Confirm that it is you to go on."}</p>
    ${accounts.filter(({ providerId }) => providerId !== "credential").map(({ providerId, name }) => html`<p key=${providerId}>
      <${Button} onClick=${() => leaveFor("/api/auth/sign-in/social", { provider: providerId, additionalParams: { prompt: "login" } })}>Confirm with ${visible(name)}<//>
    </p>`)}
    ${hasPassword && html`<${Form} kind="second" action="Continue" busy="Signing in …" act=${act} cancel=${cancel}>
      <${Username} user=${user} />
      <${PasswordField} label="Password" name="password" />
    <//>`}`} />`;
}
