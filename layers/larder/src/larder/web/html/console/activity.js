// Who did what to the team, its members, keys and artifacts, newest first.

const ACTIVITY_LENGTH = 50;
const MOST_EXPORTED = 10_000;

const KINDS_OF_ACTIONS = [
  ["Members", ["member_invited", "invitation_withdrawn", "member_added", "member_removed", "role_changed"]],
  ["Keys", ["key_created", "key_changed", "key_rotated", "key_adopted", "key_deleted", "keys_deleted"]],
  ["CI rules", ["rule_added", "rule_changed", "rule_removed", "rule_pinned"]],
  ["Settings", ["team_created", "team_changed", "caching_set", "protection_set", "block_set", "block_lifted", "quota_set"]],
  ["Artifacts", ["artifact_replaced", "artifact_deleted", "removal_asked", "removal_done"]],
];
const OWN_KINDS_OF_ACTIONS = [
  ["Sign-ins", ["signed_up", "user_created", "signed_in", "session_ended", "sessions_ended"]],
  ["Password and address", ["password_changed", "password_reset", "email_changed", "email_verified", "email_proven"]],
  ...KINDS_OF_ACTIONS.filter(([kind]) => ["Keys", "Settings", "Artifacts"].includes(kind)),
];

const CACHING_WORDS = { enabled: "Turned caching on", paused: "Paused caching", disabled: "Turned caching off" };
const PROPERTY_WORDS = { name: "name", slug: "slug", former_slugs: "former slugs", run_inputs: "explanation of misses", build_hour_cents: "price of builds" };

const roleText = (role) => ROLES[role] ?? role;

/** What each action did, as text. `subject` is the name of what it changed. */
const ACTION_WORDS = {
  signed_up: () => "Signed up",
  user_created: () => "Created the account",
  user_deleted: () => "Deleted the account",
  signed_in: () => "Signed in",
  session_ended: () => "Ended a session",
  sessions_ended: () => "Ended sessions",
  password_changed: () => "Changed the password",
  password_reset: () => "Reset the password",
  email_changed: () => "Changed the email address",
  email_verified: () => "Verified the email address",
  email_proven: () => "Proved the email address",
  key_created: (_, subject) => html`Created the key ${subject}`,
  key_changed: (_, subject) => html`Changed the key ${subject}`,
  key_rotated: (_, subject) => html`Rotated the key ${subject}`,
  key_adopted: (_, subject) => html`Made the key ${subject} the team's`,
  key_deleted: (_, subject) => html`Deleted the key ${subject}`,
  keys_deleted: () => "Deleted all keys",
  team_created: () => "Created the team",
  team_deleted: () => "Deleted the team",
  team_changed: (entry) => `Changed the ${entry.subject.split(",").map((one) => PROPERTY_WORDS[one] ?? one).join(", ")}`,
  caching_set: (entry) => CACHING_WORDS[entry.subject] ?? `Set caching to ${entry.subject}`,
  block_set: () => "Blocked the cache",
  block_lifted: () => "Lifted the block",
  quota_set: (entry) => (entry.subject === "default" ? "Set the default quota" : `Set the quota to ${bytesText(Number(entry.subject))}`),
  protection_set: (entry) => (entry.subject.includes("protected=true") ? "Protected the team" : "Turned the protection off"),
  member_invited: (entry, subject) => html`Invited ${subject} as ${roleText(entry.role)}`,
  invitation_withdrawn: (entry, subject) => html`Withdrew the invitation of ${subject} as ${roleText(entry.role)}`,
  member_added: (entry, subject) => html`${subject} joined as ${roleText(entry.role)}`,
  member_removed: (entry, subject) => html`${subject} left, was ${roleText(entry.role)}`,
  role_changed: (entry, subject) => html`Made ${subject} ${roleText(entry.role)}`,
  artifact_replaced: (_, subject) => html`Replaced the artifact ${subject} of another writer`,
  artifact_deleted: (entry, subject) => html`Deleted the artifact ${subject}: ${bytesText(entry.sizeBytes)}`,
  removal_asked: (_, subject) => html`Started to delete ${subject}`,
  removal_done: (entry, subject) => html`Deleted ${subject}: ${partText(entry)}`,
  rule_added: (_, subject) => html`Added the rule ${subject}`,
  rule_changed: (_, subject) => html`Changed the rule ${subject}`,
  rule_removed: (_, subject) => html`Removed the rule ${subject}`,
  rule_pinned: (_, subject) => html`The first job fixed the repository of the rule ${subject}`,
};

/** A name, or the beginning of an id that has none. Hashes are shown as they are. */
function Subject({ entry, names, living, scope, tasks }) {
  if (entry.action.startsWith("removal_")) return html`<${RemovalTarget} of=${targetOfSubject(entry.subject)} names=${names} />`;
  if (entry.action.startsWith("artifact_")) return html`<${Hash} of=${visible(entry.subject)} scope=${scope} />${tasks.has(entry.subject) && html` of <${TaskName} of=${tasks.get(entry.subject)} scope=${scope} />`}`;
  if (/^(key|rule)_/.test(entry.action) && living.has(entry.subject)) return html`<${KeyName} id=${entry.subject} names=${names} scope=${scope} />`;
  const name = entry.subjectName ?? names.get(entry.subject);
  return name ? html`<${Name} of=${name} />` : html`<span class="soft">${visible(entry.subject.slice(0, 8))}…</span>`;
}

function ActionText({ entry, ...rest }) {
  const words = ACTION_WORDS[entry.action];
  return words ? words(entry, html`<${Subject} entry=${entry} ...${rest} />`) : visible(entry.action);
}

/** The day of an entry in the user's zone, as a heading. */
function dayHeading({ at }) {
  const [day, today] = [at, Date.now()].map((ms) => new Date(ms).toDateString());
  return day === today ? "Today" : formats.date.format(at);
}

/** The view that has what an action changed. */
const VIEW_OF_ACTIONS = { caching_set: "settings", team_changed: "settings", protection_set: "protection", member_added: "members", member_invited: "members", role_changed: "members" };

/** What was done, which leads to what was changed. */
function Done({ entry, scope, ...rest }) {
  const view = scope.team && VIEW_OF_ACTIONS[entry.action];
  const text = html`<${ActionText} entry=${entry} scope=${scope} ...${rest} />`;
  return view ? html`<a href=${`${scope.path}/${view}`}>${text}</a>` : html`<span>${text}</span>`;
}

/** Load the newest entries, and let the browser store them as a file. */
async function exportActivity(scope, query, names) {
  const entries = [];
  for (let before = ""; before !== null && entries.length < MOST_EXPORTED; ) {
    const { data, problem } = await call("GET", `/v1/audit?${scope.query}&limit=100${query}${before && `&before=${before}`}`);
    if (problem) return announce(problem);
    entries.push(...data.entries);
    before = data.pagination.next;
  }
  saveCsv(`${scope.team?.slug ?? "account"}-activity.csv`, ["time", "action", "subject", "subject_name", "role", "actor", "actor_id"], entries.map(({ at, action, subject, subjectName, role, actor }) => [
    new Date(at).toISOString(), action, subject, subjectName ?? names.get(subject), role, actor === null ? "operator" : (actor.name ?? names.get(actor.userId)), actor?.userId,
  ]));
}

function Activity({ scope }) {
  // Where the pages up to this one begin. The first page has no entry before it.
  const [starts, setStarts] = useState([""]);
  const [kind, setKind] = useState("");
  const kinds = scope.team ? KINDS_OF_ACTIONS : OWN_KINDS_OF_ACTIONS;
  const actions = kinds.find(([name]) => name === kind)?.[1];
  const before = starts.at(-1);
  const chosen = actions ? `&action=${actions.join(",")}` : "";
  const loaded = useLoad(`/v1/audit?${scope.query}&limit=${ACTIVITY_LENGTH}${before && `&before=${before}`}${chosen}`);
  const living = useLoad(`names of the activity ${scope.path}`, () => loadNames(scope)).data ?? new Map();
  // What was deleted is named by its entries.
  const named = (loaded.data?.entries ?? []).filter(({ subjectName }) => subjectName);
  const names = new Map([...named.map(({ subject, subjectName }) => [subject, subjectName]), ...living]);
  const hashes = (loaded.data?.entries ?? []).filter(({ action }) => action.startsWith("artifact_")).map(({ subject }) => subject);
  const tasks = useTasks(scope, hashes);
  const choose = ({ target }) => {
    setStarts([""]);
    setKind(target.value);
  };
  return html`<${Head} title="Activity">
      <${Field} label="Show" value=${kind} onChange=${choose}>
        <option value="">Everything</option>
        ${kinds.map(([name]) => html`<option value=${name}>${name}</option>`)}
      <//>
      <${Button} onClick=${() => exportActivity(scope, chosen, names)}>Export as CSV<//>
    <//>
    <${Card}>
      <${Loaded} of=${loaded} lines=${8} show=${({ entries, pagination: { next } }) => html`
        ${entries.length > 0
          ? html`<${Table} label="Activity" rows=${entries} id=${({ id }) => id} group=${dayHeading} columns=${[
              { title: "When", cell: ({ at }) => html`<time datetime=${new Date(at).toISOString()}>${formats.time.format(at)}</time>` },
              { title: "What", cell: (entry) => html`<${Done} entry=${entry} names=${names} living=${living} scope=${scope} tasks=${tasks} />` },
              { title: "Who", cell: (entry) => html`<span><${AuditActor} entry=${entry} names=${names} /></span>` },
            ]} />`
          : next === null
            ? html`<${Empty} title="Nothing here"><p>Changes to ${scope.team ? "the team" : "your account"}, its keys and deletions appear here.</p><//>`
            : html`<p>Nothing like this among the last 1,000 entries.</p>`}
        <div class="end">
          ${starts.length > 1 && html`<${Button} onClick=${() => setStarts(starts.slice(0, -1))}>Back<//>`}
          ${next !== null && html`<${Button} onClick=${() => setStarts([...starts, next])}>More<//>`}
        </div>`} />
    <//>`;
}
