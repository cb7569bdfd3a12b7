// Names in place of ids, and the links that lead from a run to its tasks, their artifacts and their writers.

/** The names of keys, members and rules by their ids. */
async function loadNames(scope) {
  return { data: new Map((await loadNamed(scope)).map(({ id, text }) => [id, text])), problem: null };
}

/** Members, keys and rules as `{ kind, id, text }`. What the user does not see is left out. */
async function loadNamed({ team }) {
  const [keys, members, rules] = await Promise.all([
    team ? loadAll(`/v1/teams/${team.id}/keys`, "keys", "offset") : loadOwnKeys(),
    team ? loadMembers(team) : { data: [] },
    team ? call("GET", `/v1/teams/${team.id}/rules`) : { data: null },
  ]);
  return [
    ...(members.data ?? []).map(({ uid, name }) => ({ kind: "Member", id: uid, text: name })),
    ...(keys.data ?? []).map(({ id, name, start }) => ({ kind: "Key", id, text: name ?? start })),
    ...(rules.data?.rules ?? []).map(({ id, name }) => ({ kind: "Rule", id, text: name })),
  ];
}

/** The address of the artifacts that a filter finds, in all caches of a team. */
const artifactsPath = (scope, filter) => `${scope.path}/artifacts?${new URLSearchParams({ ...(scope.team && { scope: "all" }), ...filter })}`;

/** A job by its repository and what it builds: "acme/web pull_request refs/pull/7/merge" is acme/web PR 7. */
const jobText = (name) =>
  name.replace(/(?:pull_request\S* )?refs\/pull\/(\d+)\/\S+/, "PR\u00a0$1").replace(/refs\/heads\/(?=\S)/, "");

const MOST_HASHES = 100;
const TURBO_HASH = /^[0-9a-f]{16}$/;

/** The package and task of each hash that a reported run names. Empty while it loads. */
function useTasks(scope, hashes) {
  const asked = [...new Set(hashes)].filter((hash) => TURBO_HASH.test(hash)).slice(0, MOST_HASHES).join(",");
  const loaded = useLoad(`tasks of ${scope.path} ${asked}`, () =>
    asked ? call("GET", `/v1/tasks/history?${scope.query}&hashes=${asked}`) : Promise.resolve({ data: { hashes: [] }, problem: null }),
  );
  return new Map((loaded.data?.hashes ?? []).map((row) => [row.hash, row]));
}

const taskName = ({ package: name, task }) => (name ? `${name}#${task}` : task);

const taskPath = (scope, { package: name, task }) => `${scope.path}/task?${new URLSearchParams({ package: name, task })}`;

/** A task, which leads to its page. */
const TaskName = ({ of, scope }) => html`<a href=${taskPath(scope, of)}><${Name} of=${taskName(of)} /></a>`;

/** A task by its id, which leads to its page: web#build. */
function TaskOfId({ id, scope }) {
  const at = id.lastIndexOf("#");
  return html`<${TaskName} of=${{ package: at < 0 ? "" : id.slice(0, at), task: id.slice(at + 1) }} scope=${scope} />`;
}

/** A hash in a table. Those of turbo stay on one line. With a `scope`, it leads to the artifact. */
function Hash({ of, scope }) {
  const text = html`<code class=${of.length > 20 ? "" : "whole"}>${of}</code>`;
  return scope?.manages ? html`<a href=${artifactsPath(scope, { prefix: of })}>${text}</a>` : text;
}

/** The key, the rule or the user that wrote an artifact, and what a CI job built: ci on main. */
function writerText({ writer: { id, userId, job } }, names) {
  const name = names.get(id) ?? names.get(userId) ?? (job ? "CI job" : `${id.slice(0, 8)}…`);
  return job?.ref ? `${name} on ${jobText(job.ref)}` : name;
}

const keyPath = (scope, id) => `${scope.path}/${id.startsWith("rule_") ? "rule" : "key"}?id=${id}`;

/** A key or a rule, which leads to its page, if the list of names has it. */
const KeyName = ({ id, names, scope }) => (names.has(id) ? html`<a href=${keyPath(scope, id)}><${Name} of=${names.get(id)} /></a>` : html`<span class="soft">${id.slice(0, 8)}…</span>`);

/** Leads to everything that the writer has stored. */
function Writer({ row, scope, names }) {
  if (row.writer === null) return html`<span class="soft">Unknown</span>`;
  return html`<a href=${artifactsPath(scope, { writer: row.writer.id })}><${Name} of=${writerText(row, names)} /></a>
    ${row.ci && html` <${Tag}><${Name} of=${ciText(row.ci)} /><//>`}`;
}

const USED_WORDS = { password: "with the password", link: "with a link in an email", code: "with turbo login", deletion: "by deleting the account" };

function AuditActor({ entry, names }) {
  const { actor } = entry;
  if (actor === null) return "The operator";
  const name = actor.name ?? names.get(actor.userId);
  const used = USED_WORDS[actor.id];
  const who = name
    ? html`<${Name} of=${name} />`
    : html`<span class="soft">${actor.userId ? `${visible(actor.userId.slice(0, 8))}…` : "Unknown"}</span>`;
  const key = names.get(actor.id);
  return html`${who}${used && html` <span class="soft">${used}</span>`}${key && html` <span class="soft">with the key <${Name} of=${key} /></span>`}`;
}

/** Who turned caching off, and when, for owners and admins. */
function CachingSetBy({ scope }) {
  const { data } = useLoad(`/v1/audit?${scope.query}&limit=1&action=caching_set`);
  const entry = data?.entries[0];
  if (!entry) return null;
  const by = entry.actor ? html`<${AuditActor} entry=${entry} names=${new Map()} />` : "the operator";
  return html`Set <${Time} at=${entry.at} /> by ${by}. `;
}
