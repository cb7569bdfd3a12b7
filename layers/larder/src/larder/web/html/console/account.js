// The user's account: name, email address, password and sessions.

function Account({ user, session, operator, reload }) {
  const [isDeleting, setDeleting] = useState(false);
  return html`<${Head} title="Your account"><${Button} onClick=${signOut}>Sign out<//><//>
    ${operator && html`<p class="soft">You are an operator of this deployment: the larder command sets quotas and blocks, and manages all users and teams.</p>`}
    <${Profile} user=${user} reload=${reload} />
    ${isTrue(own.changesEmail) && html`<${EmailAddress} user=${user} reload=${reload} />`}
    <${Password} user=${user} reload=${reload} />
    <${Sessions} user=${user} session=${session} reload=${reload} />
    ${isTrue(own.deletesUser) && html`<${Card} title="Delete your account">
      <p>Your keys and sessions end at once. What you stored for teams stays with them.</p>
      <${Button} kind="danger" onClick=${() => setDeleting(true)}>Delete your account<//>
    <//>`}
    ${isDeleting && html`<${DeleteAccount} user=${user} close=${() => setDeleting(false)} />`}`;
}

// Other tabs of the console must not go on with a session that has ended.
const tabs = new BroadcastChannel("larder-session");
tabs.addEventListener("message", () => location.reload());

async function signOut() {
  const { problem } = await call("POST", "/api/auth/sign-out", {});
  if (problem) return announce(problem);
  tabs.postMessage("ended");
  location.assign("/");
}

function Profile({ user, reload }) {
  const act = async ({ name }) => {
    const { problem } = await call("POST", "/api/auth/update-user", { name });
    if (problem) return problem;
    announce("Saved.");
    reload();
  };
  return html`<${Card} title="Profile">
    <${Form} action="Save" busy="Saving …" act=${act}>
      <${Field} label="Name" name="name" required maxlength="100" autocomplete="name" defaultValue=${user.name} />
    <//>
  <//>`;
}

function EmailAddress({ user, reload }) {
  const verify = async () => {
    const { problem } = await call("POST", "/api/auth/send-verification-email", { email: user.email, callbackURL: "/console/account" });
    announce(problem ?? "We have sent you a link.");
    reload();
  };
  const act = async ({ newEmail }) => {
    const { problem } = await call("POST", "/api/auth/change-email", { newEmail, callbackURL: "/console/account" });
    if (problem) return problem;
    announce("Check your email: we have sent a link. The address changes when you open it.");
  };
  return html`<${Card} title="Email address">
    <p><${Name} of=${user.email} /> ${user.emailVerified ? html`<${Tag} kind="good">verified<//>` : html`<${Tag} kind="warn">not verified<//>`}</p>
    ${!user.emailVerified && html`<p><${Button} onClick=${verify}>Send a link to verify it<//></p>`}
    <${Form} kind="second" action="Change the address" busy="Sending a link …" act=${act}>
      <${Field} label="New email address" name="newEmail" type="text" inputmode="email" required autocomplete="email" autocapitalize="none" spellcheck="false" data-example="Enter an email address, such as ada@example.com." />
    <//>
  <//>`;
}

// Password managers need to know which account's password it is.
const Username = ({ user }) => html`<input class="hidden-text" type="text" autocomplete="username" value=${user.email} readonly tabindex="-1" aria-hidden="true" />`;

function Password({ user, reload }) {
  const [round, setRound] = useState(0);
  const act = async ({ currentPassword, newPassword, others, keys }) => {
    const body = { currentPassword, newPassword, revokeOtherSessions: others === "on", revokeApiKeys: keys === "on" };
    const { code, problem } = await call("POST", "/api/auth/change-password", body);
    if (problem) return { problem, field: code === "INVALID_PASSWORD" ? "currentPassword" : "newPassword" };
    announce("The password is changed.");
    setRound(round + 1);
    // Ending the other sessions starts a new one here.
    reload();
  };
  return html`<${Card} title="Password">
    <${Form} key=${round} kind="second" action="Change the password" busy="Changing the password …" act=${act}>
      <${Username} user=${user} />
      <${PasswordField} label="Current password" name="currentPassword" />
      <${PasswordField} label="New password" name="newPassword" isNew />
      <${Check} label="Sign out all other sessions" name="others" defaultChecked />
      <${Check} label="Delete all your API keys" name="keys" />
    <//>
  <//>`;
}

const BROWSERS = [["Edg/", "Edge"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Safari/", "Safari"]];
const SYSTEMS = [["Windows", "Windows"], ["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["Mac OS", "macOS"], ["Linux", "Linux"]];

/** A browser by its user agent, such as Firefox on macOS. */
function agentText(agent) {
  if (!agent) return "Unknown";
  const find = (list) => list.find(([sign]) => agent.includes(sign))?.[1];
  const [browser, system] = [find(BROWSERS), find(SYSTEMS)];
  return browser ? `${browser}${system ? ` on ${system}` : ""}` : visible(agent.slice(0, 60));
}

function Sessions({ user, session, reload }) {
  const sessions = useLoad("/api/auth/list-sessions");
  const revoke = async (one) => {
    const { problem } = await call("POST", "/api/auth/revoke-session", { token: one.token });
    announce(problem ?? "The session is ended.");
    sessions.reload();
  };
  const revokeOthers = async () => {
    const { problem } = await call("POST", "/api/auth/revoke-other-sessions", {});
    announce(problem ?? "All other sessions are ended.");
    sessions.reload();
  };
  if (!session.fresh || sessions.code === "SESSION_NOT_FRESH")
    return html`<${Card} title="Sessions"><${ConfirmIdentity} user=${user} session=${session} done=${async () => {
      await reload();
      sessions.reload();
    }} /><//>`;
  const end = html`<${Button} kind="second small" onClick=${revokeOthers}>Sign out everywhere else<//>`;
  return html`<${Card} title="Sessions" actions=${end}>
    <${Loaded} of=${sessions} show=${(rows) => html`<${Table} label="Sessions" rows=${rows} id=${({ id }) => id} columns=${[
      { title: "Browser", cell: (one) => html`${agentText(one.userAgent)} ${one.id === session.id && html`<${Tag}>this one<//>`}` },
      { title: "Network address", cell: ({ ipAddress }) => ipAddress ?? "–" },
      { title: "Signed in", cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
      { title: "", cell: (one) => one.id !== session.id && html`<${Button} kind="second small" aria-label=${`Sign out ${agentText(one.userAgent)}`} onClick=${() => revoke(one)}>Sign out<//>` },
    ]} />`} />
  <//>`;
}

/** Some things need a session that began within a day: sign in once more, and end the session before. */
function ConfirmIdentity({ user, session, cancel, done }) {
  const act = async ({ password }) => {
    const { problem } = await call("POST", "/api/auth/sign-in/email", { email: user.email, password, rememberMe: true });
    if (problem) return { problem, field: "password" };
    await call("POST", "/api/auth/revoke-session", { token: session.token });
    await done();
  };
  return html`<p>You signed in more than a day ago. Enter your password to go on.</p>
    <${Form} kind="second" action="Continue" busy="Signing in …" act=${act} cancel=${cancel}>
      <${Username} user=${user} />
      <${PasswordField} label="Password" name="password" />
    <//>`;
}

function DeleteAccount({ user, close }) {
  const act = async ({ password }) => {
    const { code, problem } = await call("POST", "/api/auth/delete-user", { password });
    if (problem) return { problem, field: code === "INVALID_PASSWORD" ? "password" : undefined };
    tabs.postMessage("ended");
    location.assign("/");
  };
  return html`<${Confirm} title="Delete your account?" word=${user.email} wordLabel="Type your email address to confirm" action="Delete your account" busy="Deleting …" act=${act} close=${close}
    more=${html`<${PasswordField} label="Password" name="password" />`}>
    <p>Your keys and sessions end at once, and your own cache is deleted. You cannot undo this.</p>
  <//>`;
}

