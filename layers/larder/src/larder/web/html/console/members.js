// The members of a team and its open invitations.

function Members({ scope, user }) {
  const { team } = scope;
  const members = useLoad(`members ${team.id}`, () => loadMembersPage(team));
  const [open, setOpen] = useState(null);
  const close = (hasChanged) => {
    setOpen(null);
    if (hasChanged) members.reload();
  };
  return html`<${Head} title="Members" />
    <${Loaded} of=${members} show=${({ people, invitations, groupRoles }) => html`
      ${scope.manages && html`<${Invite} scope=${scope} done=${members.reload} />`}
      <${Card}>
        <${MembersTable} people=${people} scope=${scope} user=${user} open=${setOpen} reload=${members.reload} />
        ${scope.manages && html`<${Facts} rows=${[
          ...Object.entries(ROLE_WORDS).map(([role, words]) => [ROLES[role], words]),
          [ROLES.DEVELOPER, people.some(({ role }) => role === "DEVELOPER") && "The same as Member."],
        ]} />`}
      <//>
      ${invitations.length > 0 && html`<${Card} title="Open invitations">
        <${InvitationsTable} rows=${invitations} scope=${scope} reload=${members.reload} />
      <//>`}
      ${groupRoles.length > 0 && html`<${Card} title="Roles by group">
        <p>People get these roles when they sign in with your company. The operator of ${own.product} sets them with larder sso map.</p>
        <${Table} label="Roles by group" rows=${groupRoles} id=${({ company, group }) => `${company} ${group}`} columns=${[
          { title: "Group", cell: ({ company, group }) => html`<${Name} of=${groupName(company, group)} />` },
          { title: "Role", cell: ({ role }) => ROLES[role] },
        ]} />
      <//>`}`} />
    ${open && html`<${RemoveMember} scope=${scope} member=${open} isSelf=${open.uid === user.id} close=${close} />`}`;
}

/** Members, newest first. The first page has the open invitations, if the user can see them. */
async function loadMembersPage(team) {
  const first = await call("GET", `/v3/teams/${team.id}/members?limit=100`);
  if (first.problem) return first;
  const people = first.data.pagination.next === null ? { data: first.data.members } : await loadMembers(team);
  if (people.problem) return people;
  // Groups of a company give these memberships, so that the next sign-in would undo a change.
  const { emailInviteCodes: invitations, groupRoles } = first.data;
  if (groupRoles.length > 0 || people.data.some(({ managedBy }) => managedBy)) {
    const nameOf = providerNames((await call("GET", "/api/auth/sign-in/providers")).data);
    for (const one of people.data) one.company = one.managedBy && groupName(nameOf(one.managedBy), one.managedGroup);
    for (const one of groupRoles) one.company = nameOf(one.providerId);
  }
  return { data: { people: people.data, invitations, groupRoles }, problem: null };
}

const groupName = (company, group) => (group ? `${company}: ${group}` : `Everyone at ${company}`);

/** The roles that a member with the role of the scope can give, and the one that a member has. */
const rolesFor = (scope, current) => Object.keys(ROLES).filter((role) => role === current || (role in ROLE_WORDS && (scope.owns || role !== "OWNER")));

function MembersTable({ people, scope, user, open, reload }) {
  const owners = people.filter(({ role }) => role === "OWNER").length;
  const isFixed = (member) => (member.role === "OWNER" && (owners === 1 || !scope.owns)) || !scope.manages || member.company;
  const change = async (member, role) => {
    const { problem } = await call("PATCH", `/v1/teams/${scope.team.id}/members/${member.uid}`, { role });
    announce(problem ?? `${visible(member.name)} is now ${ROLES[role]}.`);
    reload();
  };
  const columns = [
    { title: "Name", cell: (member) => html`<strong><${Name} of=${member.name} /></strong> ${member.uid === user.id && html`<${Tag}>you<//>`} ${member.company && html`<${Tag}>${visible(member.company)}<//>`}` },
    { title: "Email address", cell: (member) => html`<${Name} of=${member.email} />` },
    {
      title: "Role",
      cell: (member) =>
        isFixed(member)
          ? ROLES[member.role]
          : html`<select aria-label=${`Role of ${visible(member.name)}`} value=${member.role} onChange=${({ target }) => change(member, target.value)}>
              ${rolesFor(scope, member.role).map((role) => html`<option value=${role}>${ROLES[role]}</option>`)}
            </select>`,
    },
    { title: "Joined", cell: (member) => html`<${Time} at=${member.createdAt} />` },
    {
      title: "",
      cell: (member) => {
        const isSelf = member.uid === user.id;
        if (member.company) return null;
        if (member.role === "OWNER" && owners === 1) return html`<span class="soft">Only owner</span>`;
        if (!isSelf && isFixed(member)) return null;
        const action = isSelf ? "Leave" : "Remove";
        return html`<${Button} kind="second small" aria-label=${`${action} ${isSelf ? "the team" : visible(member.name)}`} onClick=${() => open(member)}>${action}<//>`;
      },
    },
  ];
  return html`<${Table} label="Members" columns=${columns} rows=${people} id=${({ uid }) => uid} />`;
}

function Invite({ scope, done }) {
  const [round, setRound] = useState(0);
  const [chosen, setChosen] = useState("MEMBER");
  const act = async ({ email, role }) => {
    const { problem } = await call("POST", `/v2/teams/${scope.team.id}/members`, { email, role });
    if (problem) return problem;
    announce(`The invitation to ${visible(email)} is on its way.`);
    // Empty the form.
    setRound(round + 1);
    done();
  };
  return html`<${Card} title="Invite a member">
    <${Form} key=${round} class="in-a-row" action="Send the invitation" busy="Sending …" act=${act}>
      <${Field} label="Email address" name="email" type="text" inputmode="email" required autocomplete="off" autocapitalize="none" spellcheck="false" data-example="Enter an email address, such as ada@example.com." />
      <${Field} label="Role" name="role" value=${chosen} hint=${ROLE_WORDS[chosen]} onChange=${({ target }) => setChosen(target.value)}>
        ${rolesFor(scope).map((role) => html`<option value=${role}>${ROLES[role]}</option>`)}
      <//>
    <//>
  <//>`;
}

function InvitationsTable({ rows, scope, reload }) {
  const withdraw = async ({ id }) => {
    const { problem } = await call("DELETE", `/v1/teams/${scope.team.id}/members/${id}`);
    announce(problem ?? "The invitation is withdrawn.");
    reload();
  };
  return html`<${Table} label="Open invitations" rows=${rows} id=${({ id }) => id} columns=${[
    { title: "Email address", cell: ({ email }) => html`<${Name} of=${email} />` },
    { title: "Role", cell: ({ role }) => ROLES[role] },
    { title: "Expires", cell: ({ expiresAt }) => html`<${Time} at=${expiresAt} />` },
    { title: "", cell: (row) => html`<${Button} kind="second small" aria-label=${`Withdraw the invitation of ${visible(row.email)}`} onClick=${() => withdraw(row)}>Withdraw<//>` },
  ]} />`;
}

/** The keys of a member that are bound to the team, and stop with the membership, and the team's keys that they know. */
async function loadKeysOf({ team, manages }, member) {
  const { data, problem } = manages ? await loadTeamKeys(team) : { data: [], problem: null };
  const rows = (keys) => keys.map((key) => keyRow(key, null, new Map()));
  const isKnown = ({ knownTo }) => knownTo.some(({ uid }) => uid === member.uid);
  return { data: data && { bound: rows(data.filter(({ uid }) => uid === member.uid)), known: rows(data.filter(isKnown)) }, problem };
}

function RemoveMember({ scope, member, isSelf, close }) {
  const keys = useLoad(`keys of ${member.uid}`, () => loadKeysOf(scope, member));
  const [row, setRow] = useState(null);
  if (row)
    return html`<${MakeTeams} scope=${scope} row=${row} close=${() => {
      setRow(null);
      keys.reload();
    }} />`;
  const act = async () => {
    const { problem } = await call("DELETE", `/v1/teams/${scope.team.id}/members/${member.uid}`);
    if (problem) return problem;
    if (isSelf) return location.assign("/console");
    announce("The member is removed.");
    close(true);
  };
  const name = html`<strong><${Name} of=${isSelf ? scope.team.name : member.name} /></strong>`;
  return html`<${Confirm} title=${isSelf ? "Leave the team?" : "Remove the member?"} action=${isSelf ? "Leave the team" : "Remove the member"}
    busy=${isSelf ? "Leaving …" : "Removing …"} act=${act} close=${() => close()}>
    ${isSelf
      ? html`<p>You can no longer use the cache of ${name}. An owner or admin can invite you again.</p>`
      : html`<p>${name} can no longer use the cache of this team.</p>`}
    <p>${isSelf ? "Your" : "Their"} keys of this team stop working at once. What they have stored stays.</p>
    ${keys.data?.known.length > 0 && html`<p>${isSelf ? "You know" : "They know"} these keys of the team, which go on to work. An owner or admin can rotate them:</p>
      <ul class="plain">${keys.data.known.map((key) => html`<li key=${key.id}><${Name} of=${key.name ?? key.start ?? key.id} />, last used <${Time} at=${key.lastUsedAt} /></li>`)}</ul>`}
    ${keys.data?.bound.length > 0 && html`<p>Does CI use one of them? Make it the team's first.</p>
      <ul class="plain">${keys.data.bound.map((key) => html`<li key=${key.id}><${Name} of=${key.name ?? key.start ?? key.id} />, last used <${Time} at=${key.lastUsedAt} />
        ${canBeTeams(key, scope) && html` <${Button} kind="second small" onClick=${() => setRow(key)}>Make it the team's<//>`}</li>`)}</ul>`}
  <//>`;
}

