// The user's account: name, email address, ways to sign in and sessions. Only its own page has this script.

function Account({ user, session, operator, reload }) {
  const [isDeleting, setDeleting] = useState(false);
  const [error] = useState(providerError);
  const ways = useLoad("ways", loadWays);
  const hasPassword = ways.data?.hasPassword ?? true;
  // Another load of the page must not show an old error.
  useEffect(() => history.replaceState(null, "", location.pathname), []);
  return html`<${Head} title="Your account"><${Button} onClick=${signOut}>Sign out<//><//>
    ${operator && html`<p class="soft">You are an operator of this deployment: the larder command sets quotas and blocks, and manages all users and teams.</p>`}
    ${error && html`<${Problem} text=${error} />`}
    <${Profile} user=${user} reload=${reload} />
    ${isTrue(own.changesEmail) && html`<${EmailAddress} user=${user} reload=${reload} />`}
    <${Loaded} of=${ways} show=${(data) => html`<${Ways} ways=${data} reload=${ways.reload} />`} />
    ${hasPassword && html`<${Password} user=${user} reload=${reload} />`}
    <${Sessions} user=${user} session=${session} reload=${reload} />
    ${isTrue(own.deletesUser) && html`<${Card} title="Delete your account">
      <p>Your keys and sessions end at once. What you stored for teams stays with them.</p>
      <${Button} kind="danger" onClick=${() => setDeleting(true)}>Delete your account<//>
    <//>`}
    ${isDeleting && html`<${DeleteAccount} user=${user} hasPassword=${hasPassword} close=${() => setDeleting(false)} />`}`;
}

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

/** The password and the linked providers, with those that can be linked. */
function Ways({ ways, reload }) {
  const { accounts, offered } = ways;
  const [open, setOpen] = useState(null);
  const others = offered.filter(({ id }) => !accounts.some(({ providerId }) => providerId === id));
  if (!others.length && accounts.every(({ providerId }) => providerId === "credential")) return null;
  return html`<${Card} title="Ways to sign in">
    <${Table} label="Ways to sign in" rows=${accounts} id=${({ id }) => id} columns=${[
      { title: "With", cell: ({ name }) => html`<${Name} of=${name} />` },
      { title: "Since", cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
      {
        title: "",
        cell: (account) => account.providerId !== "credential" && accounts.length > 1
          && html`<${Button} kind="second small" aria-label=${`Unlink ${visible(account.name)}`} onClick=${() => setOpen(account)}>Unlink<//>`,
      },
    ]} />
    ${others.map(({ id, name }) => html`<p key=${id}><${Button} onClick=${() => leaveFor("/api/auth/link-social", { provider: id })}>Link ${visible(name)}<//></p>`)}
    ${open && html`<${Unlink} account=${open} close=${(hasChanged) => {
      setOpen(null);
      if (hasChanged) reload();
    }} />`}
  <//>`;
}

function Unlink({ account, close }) {
  const act = async () => {
    const { problem } = await call("POST", "/api/auth/unlink-account", { accountId: account.id });
    if (problem) return problem;
    announce(`${visible(account.name)} is unlinked.`);
    close(true);
  };
  return html`<${Confirm} title="Unlink this way to sign in?" action="Unlink the account" busy="Unlinking …" act=${act} close=${() => close()}>
    <p>You can no longer sign in with <strong><${Name} of=${account.name} /></strong>. Sessions that began with it end.</p>
  <//>`;
}

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

function DeleteAccount({ user, hasPassword, close }) {
  const act = async ({ password }) => {
    const { code, problem } = await call("POST", "/api/auth/delete-user", { password });
    if (problem) return { problem, field: code === "INVALID_PASSWORD" ? "password" : undefined };
    tabs.postMessage("ended");
    location.assign("/");
  };
  return html`<${Confirm} title="Delete your account?" word=${user.email} wordLabel="Type your email address to confirm" action="Delete your account" busy="Deleting …" act=${act} close=${close}
    more=${hasPassword && html`<${PasswordField} label="Password" name="password" />`}>
    <p>Your keys and sessions end at once, and your own cache is deleted. You cannot undo this.</p>
  <//>`;
}

