// API keys: those of a team, or the user's own. Owners and admins see the keys of all members.

const SOON_DAYS = 14;
const UNUSED_DAYS = 90;
const USE_PERIOD = 30;
const MANY_KEYS = 8;

/** The keys of the user or, with a team, those that it owns. */
async function loadOwnKeys(team) {
  const found = [];
  for (;;) {
    const { data, problem } = await call("GET", `/api/auth/api-key/list?limit=100&offset=${found.length}${team ? `&organizationId=${team.id}` : ""}`);
    if (problem) return { data: null, problem };
    found.push(...data);
    if (data.length < 100) return { data: found, problem: null };
  }
}

const loadMembers = (team) => loadAll(`/v3/teams/${team.id}/members`, "members", "until");

const loadTeamKeys = (team) => loadAll(`/v1/teams/${team.id}/keys`, "keys", "offset");

/** The keys of the scope as rows, those of the team first. `record` is that of a key that the user can change: their
 * own, or the team's for owners and admins. */
async function loadKeys({ team, manages }) {
  const seesAll = manages && team;
  const [mine, owned, bound, members] = await Promise.all([
    loadOwnKeys(),
    seesAll && loadOwnKeys(team),
    seesAll && loadTeamKeys(team),
    seesAll && loadMembers(team),
  ]);
  const failed = [mine, owned, bound, members].find((reply) => reply?.problem);
  if (failed) return failed;
  const names = new Map(members?.data.map(({ uid, name }) => [uid, name]));
  const records = [...mine.data, ...(owned?.data ?? [])].filter(({ teamId }) => teamId === (team?.id ?? null));
  const listed = new Map(bound?.data.map((key) => [key.id, key]));
  const rows = records.map((record) => keyRow(record, record, names, listed.get(record.id)));
  for (const { id } of records) listed.delete(id);
  for (const row of rows) row.isReplaced = rows.some((other) => isSuccessor(other, row));
  rows.push(...[...listed.values()].map((key) => keyRow(key, null, names, key)));
  return { data: rows.sort((one, other) => other.isTeams - one.isTeams || one.createdAt - other.createdAt), problem: null };
}

/** Whether a rotation has made a key from the row: it has the same name, and the row ends since then. */
const isSuccessor = (other, { name, createdAt, expiresAt, record }) =>
  expiresAt !== null && other.name === name && other.createdAt > createdAt && Math.abs(new Date(record.updatedAt) - other.createdAt) < MINUTE;

const keyRow = (key, record, names, listed) => ({
  id: key.id,
  isTeams: key.configId === "team" || key.owner === "team",
  knownTo: listed?.knownTo ?? [],
  prefix: key.prefix,
  name: key.name,
  start: key.start,
  enabled: key.enabled,
  permissions: key.permissions,
  createdAt: new Date(key.createdAt),
  expiresAt: key.expiresAt === null ? null : new Date(key.expiresAt),
  lastUsedAt: key.lastRequest ?? key.lastUsedAt ?? null,
  owner: names.get(key.userId ?? key.uid) ?? null,
  bounds: listed?.dailyRequests ? listed : null,
  record,
});

/** What requests for the key send, so that they find it. */
const configOf = ({ isTeams }) => (isTeams ? { configId: "team" } : {});

/** Whether the team can own a key like it: not one that changes who has access. */
const canBeTeams = (row, { team, manages }) =>
  team && manages && !row.isTeams && !row.isReplaced && !row.permissions.teams && !row.permissions.trust && (!row.record || canRotate(row.record));

/** Who owns the key and, of a team's, who knows it. */
function KeyOwner({ row }) {
  if (!row.isTeams) return html`<${Name} of=${row.owner ?? "–"} />`;
  const known = row.knownTo.filter(({ leftAt }) => leftAt === null).map(({ name }) => name ?? "a deleted user");
  const gone = row.knownTo.filter(({ leftAt }) => leftAt !== null);
  return html`The team
    ${known.length > 0 && html` <span class="soft">Known to <${Name} of=${formats.list.format(known)} /></span>`}
    ${gone.map(({ name, leftAt }) => html` <${Tag} kind="warn">${visible(name ?? "A deleted user")} left on ${formats.date.format(leftAt)} and knows this key. Rotate it<//>`)}`;
}

/** What a public read key has given today, and what it gives at most. */
function boundsText({ day, dayRequests, dayBytes, dailyRequests, dailyBytes }) {
  const isToday = day === dayBefore(0);
  const requests = formats.number.format(isToday ? dayRequests : 0);
  return `${requests} of ${countText(dailyRequests, "artifact", "artifacts")}, ${bytesText(isToday ? dayBytes : 0)} of ${bytesText(dailyBytes)}`;
}

function permissionsText(permissions) {
  if (permissions.artifacts?.includes("fetch")) return "Public read key";
  const words = Object.entries(permissions).map(([resource, actions]) => [resource, formats.list.format(actions)]);
  if (words.length === 0) return "Nothing";
  return words.map(([resource, actions]) => (resource === "artifacts" ? actions : `${resource}: ${actions}`)).join(", ");
}

function Keys({ scope }) {
  const keys = useLoad(`keys ${scope.path}`, () => loadKeys(scope));
  const usage = useLoad(`/v1/usage/by?${scope.query}&what=key&from=${dayBefore(USE_PERIOD - 1)}`);
  const [open, setOpen] = useState(null);
  const [filter, setFilter] = useState("");
  const close = (hasChanged) => {
    setOpen(null);
    if (hasChanged) keys.reload();
  };
  const isShown = (row) => [keyName(row), row.start, row.owner].some((text) => text?.toLowerCase().includes(filter.trim().toLowerCase()));
  const create = html`<${Button} kind="primary" onClick=${() => setOpen({ what: CreateKey })}>Create a key<//>`;
  return html`<${Head} title="Keys">
      ${keys.data?.length > MANY_KEYS && html`<${Field} label="Find" type="search" value=${filter} autocomplete="off" onInput=${({ target }) => setFilter(target.value)} />`}${create}<//>
    ${!scope.team && html`<p class="soft">These keys act for you, in your own cache and in your teams. Create keys for CI in the team.</p>`}
    <${Card}>
      <${Loaded} of=${keys} show=${(rows) =>
        rows.length === 0
          ? html`<${Empty} title="No keys yet"><p>CI signs in with a key. People sign in with <code>turbo login</code>, which creates one for them.</p><//>`
          : html`<${KeysTable} rows=${rows.filter(isShown)} usage=${usage.data?.keys} scope=${scope} open=${setOpen} turn=${(key) => turnKey(key, keys.reload)} />`} />
    <//>
    ${open && html`<${open.what} scope=${scope} row=${open.row} close=${close} />`}`;
}

async function turnKey(key, done) {
  const { problem } = await call("POST", "/api/auth/api-key/update", { ...configOf(key), keyId: key.id, enabled: !key.enabled });
  announce(problem ?? (key.enabled ? "The key is off." : "The key is on."));
  done();
}

const keyName = ({ name, start, id }) => name ?? start ?? id;

/** What the user can do with a key, for a menu. `open` shows a dialog, and `turn` turns the key on or off. */
const keyActions = (row, scope, open, turn) => [
  row.record && !row.isReplaced && canRotate(row.record) && ["Rotate", () => open({ what: RotateKey, row })],
  canBeTeams(row, scope) && ["Make it the team's", () => open({ what: MakeTeams, row })],
  row.record && [row.enabled ? "Turn off" : "Turn on", () => turn(row)],
  ["Delete", () => open({ what: DeleteKey, row }), "loses"],
];

/** The tasks of a key, and how many they are next to those of the key with the most. */
function KeyUse({ tasks, most }) {
  return html`${formats.number.format(tasks)}<span class="meter" aria-hidden="true"><i style=${{ width: `${most ? (100 * tasks) / most : 0}%` }}></i></span>`;
}

/** `usage` has what builds did with each key. Only owners and admins see it. */
function KeysTable({ rows, usage, scope, open, turn }) {
  const tasks = new Map((usage ?? []).map((row) => [row.id, tasksOf(row)]));
  const most = Math.max(0, ...rows.map(({ id }) => tasks.get(id) ?? 0));
  const columns = [
    { title: "Name", cell: (row) => html`<strong><a href=${keyPath(scope, row.id)}><${Name} of=${keyName(row)} /></a></strong> <${KeyState} row=${row} />` },
    { title: "Begins with", cell: (row) => html`<code>${row.start ?? "–"}</code>` },
    { title: "Permissions", cell: (row) => html`<${Name} of=${permissionsText(row.permissions)} />` },
    scope.team && scope.manages && { title: "Owner", cell: (row) => html`<${KeyOwner} row=${row} />` },
    usage && { title: `Tasks in ${USE_PERIOD} days`, number: true, cell: ({ id }) => html`<${KeyUse} tasks=${tasks.get(id) ?? 0} most=${most} />` },
    { title: "Last used", cell: (row) => html`<${Time} at=${row.lastUsedAt} />` },
    { title: "Expires", cell: (row) => html`<${Time} at=${row.expiresAt} />` },
    {
      title: "",
      cell: (row) => html`<${Menu} label=${keyName(row)} items=${keyActions(row, scope, open, turn)} />`,
    },
  ].filter(Boolean);
  return html`<${Table} label="Keys" columns=${columns} rows=${rows} id=${({ id }) => id} />`;
}

function KeyState({ row }) {
  if (!row.enabled) return html`<${Tag} kind="bad">off<//>`;
  const { remaining } = row.record ?? {};
  if (remaining === 0) return html`<${Tag} kind="bad">used up<//>`;
  if (row.bounds?.pausedOn === dayBefore(0)) return html`<${Tag} kind="warn">paused until the next day (UTC)<//>`;
  if (row.isReplaced) return html`<${Tag} kind="warn">replaced, ends ${relativeText(row.expiresAt)}<//>`;
  if (row.expiresAt && row.expiresAt < Date.now() + SOON_DAYS * DAY) return html`<${Tag} kind="warn">expires soon<//>`;
  if (new Date(row.lastUsedAt ?? row.createdAt) < Date.now() - UNUSED_DAYS * DAY) return html`<${Tag} kind="warn">unused for ${UNUSED_DAYS} days<//>`;
  return Number.isInteger(remaining) ? html`<${Tag}>${countText(remaining, "use", "uses")} left<//>` : null;
}

// Only operators can give a key an allowance or a rate limit, so only `larder keys rotate` keeps them.
const canRotate = ({ remaining, rateLimitEnabled }) => remaining === null && !rateLimitEnabled;

/** The lifetimes that the deployment allows, as `[seconds, text]`. An empty value means none is sent. */
function lifetimes() {
  if (!isTrue(own.keysChooseExpiry)) return null;
  const choices = [30, 90, 365].filter((days) => days * 86_400 <= Number(own.longestKeyLife));
  const without = Number(own.keyLife) === 0 ? "Never" : "The default of this deployment";
  return [...choices.map((days) => [days * 86_400, `In ${days} days`]), ["", without]];
}

/** The fields for a key of the team: one that the team owns, or one of the user. */
const inTeam = ({ team }, isTeams) => (isTeams ? { configId: "team", organizationId: team.id } : { teamId: team.id });

/** A dialog that creates a key and shows it once. `close` gets the key, or nothing if none was created. */
function CreateKey({ scope, close }) {
  const [made, setMade] = useState(null);
  const [isPublic, setPublic] = useState(false);
  if (made) return html`<${NewKey} scope=${scope} secret=${made.key} protects=${made.teamProtected} close=${() => close(made.key)} />`;
  const expiry = lifetimes();
  const act = async ({ owner, name, permission, expiresIn, requests, gigabytes }) => {
    const { data, problem } = await call("POST", "/api/auth/api-key/create", {
      name,
      permissions: { artifacts: permission.split(" ") },
      ...(scope.team && inTeam(scope, owner === "team" || isPublic)),
      ...(isPublic && { dailyRequests: Number(requests), dailyBytes: Math.round(1e9 * gigabytes) }),
      ...(expiresIn && { expiresIn: Number(expiresIn) }),
    });
    if (problem) return problem;
    setMade(data);
  };
  return html`<${Dialog} title="Create a key" close=${() => close()}>
    <${Form} action="Create the key" busy="Creating the key …" cancel=${() => close()} act=${act}>
      <${Field} label="Name" name="name" required maxlength=${own.longestKeyName} autocomplete="off" hint="For example the CI system or the repository that uses it." />
      ${scope.team && scope.manages && !isPublic && html`<${Choices} legend="It belongs to" name="owner" chosen="team" choices=${[
        ["team", "The team", "For CI. It works until someone deletes it, even if you leave."],
        ["user", "You", "It stops when you leave the team."],
      ]} />`}
      <div onChange=${({ target }) => setPublic(target.value === "fetch")}><${Choices} legend="It can" name="permission" chosen=${scope.writes ? "read write" : "read"} choices=${[
        scope.writes && ["read write", "Read and write artifacts", "For builds of people and CI."],
        scope.team && scope.manages && ["read write trust", "Read and write, trusted", "Writes what everyone reads in a protected team. Only for jobs that run reviewed code. The first one protects the team."],
        ["read", "Only read artifacts", "For pull requests from outside your team."],
        scope.manages && ["manage", "Manage artifacts", "List and delete them, and pause caching. Not for builds."],
        scope.team && scope.owns && ["fetch", "Public read key", "For forks and contributors of a public repository. Everyone may have it, up to a bound for each day."],
      ].filter(Boolean)} /></div>
      ${isPublic && html`<p class="notice">Everyone who has it can read the outputs and logs of your builds. <a href="/docs/trust#forks-and-contributors-of-a-public-repository">Read first what that means</a>.</p>
        <${Field} label="Artifacts a day" name="requests" type="number" min="1" required value="50000" />
        <${Field} label="Gigabytes a day" name="gigabytes" type="number" min="0.001" step="any" required value="5" hint="A gigabyte costs about $0.10." />`}
      ${expiry && html`<${Field} label="Expires" name="expiresIn">
        ${expiry.map(([value, text]) => html`<option value=${value} selected=${value === 90 * 86_400}>${text}</option>`)}
      <//>`}
    <//>
  <//>`;
}

/** The key is shown only here, so the dialog closes only when the user says that they have stored it. */
function NewKey({ scope, secret, protects, close }) {
  const [isStored, setStored] = useState(false);
  const [isAsked, setAsked] = useState(false);
  return html`<${Dialog} title="Your new key" stays close=${close}>
    <p>Copy it now. It is not shown again.</p>
    <${Lines} text=${secret} label="Copy the key" />
    ${protects && html`<p class="notice">The team is now protected: only trusted keys and jobs write what everyone reads. Its builds start from an empty cache once.</p>`}
    ${scope.team && html`<details><summary>What to set in CI</summary><${CiLines} scope=${scope} secret=${secret} /></details>`}
    <${Check} label="I have stored the key" checked=${isStored} onChange=${({ target }) => setStored(target.checked)} />
    ${isAsked && !isStored && html`<p class="problem" role="alert">Store the key first, and confirm it above.</p>`}
    <div class="end"><${Button} kind="primary" onClick=${() => (isStored ? close() : setAsked(true))}>Close<//></div>
  <//>`;
}

const MakeTeams = (rest) => html`<${RotateKey} toTeam ...${rest} />`;

/** Create a key like the old one, which ends later. One request does both. With `toTeam`, the team owns the new one. */
function RotateKey({ scope, row, toTeam, close }) {
  const [made, setMade] = useState(null);
  if (made) return html`<${NewKey} scope=${scope} secret=${made.key} close=${() => close(true)} />`;
  const { name, prefix, permissions } = row;
  const metadata = row.record?.metadata ?? null;
  const lifetime = row.expiresAt === null ? null : Math.round((row.expiresAt - row.createdAt) / SECOND);
  const act = async ({ overlap }) => {
    const { data, problem } = await call("POST", "/api/auth/api-key/create", {
      ...(name !== null && { name }),
      ...(prefix !== null && { prefix }),
      ...(metadata !== null && { metadata }),
      ...(row.bounds && { dailyRequests: row.bounds.dailyRequests, dailyBytes: row.bounds.dailyBytes }),
      permissions,
      ...(scope.team && inTeam(scope, toTeam || row.isTeams)),
      ...(isTrue(own.keysChooseExpiry) && lifetime !== null && { expiresIn: lifetime }),
      replaces: row.id,
      overlap: Number(overlap),
    });
    if (problem) return problem;
    setMade(data);
  };
  const action = toTeam ? "Make it the team's" : "Rotate the key";
  return html`<${Dialog} title=${action} close=${() => close()}>
    <p>You get a new key with the same name and permissions as <strong><${Name} of=${keyName(row)} /></strong>.</p>
    ${toTeam && html`<p>The team owns it, so it works until someone deletes it. Change CI to the new key before the old one ends.</p>`}
    <${Form} action=${action} busy="Rotating the key …" cancel=${() => close()} act=${act}>
      <${Field} label="The old key works for" name="overlap">
        <option value="3600">1 hour</option>
        <option value="86400" selected>1 day</option>
        <option value="604800">7 days</option>
      <//>
    <//>
  <//>`;
}

function DeleteKey({ scope, row, close }) {
  const act = async () => {
    const { problem } = row.record
      ? await call("POST", "/api/auth/api-key/delete", { ...configOf(row), keyId: row.id })
      : await call("DELETE", `/v1/teams/${scope.team.id}/keys/${row.id}`);
    if (problem) return problem;
    announce("The key is deleted.");
    close(true);
  };
  return html`<${Confirm} title="Delete the key?" action="Delete the key" busy="Deleting the key …" act=${act} close=${() => close()}>
    <p>Builds that use <strong><${Name} of=${keyName(row)} /></strong> run without the cache from now on. Last used: <${Time} at=${row.lastUsedAt} />.</p>
    <p>What it has stored stays.</p>
  <//>`;
}

