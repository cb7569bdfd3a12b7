// The stored artifacts: find some, see who wrote them, and delete one, all of a writer, or all of a time.

const PAGE_LENGTH = 20;

/** The own scopes of a protected team. Others have none. */
const loadScopes = ({ team }) => loadAll(`/v1/teams/${team.id}/scopes`, "scopes", "cursor");

const NO_FILTER = { scope: "", tool: "", prefix: "", writer: "", ci: "", hours: "", order: "uploaded" };
const MOST_RUNS_OF_A_COMMIT = 5;
const COMMIT = /^[0-9a-f]{7,40}$/;
const NOTHING = "nothing-has-this-name";
const PERIODS_STORED = [
  ["", "Any time"],
  ["1", "Last hour"],
  ["24", "Last day"],
  ["168", "Last 7 days"],
];

/** What a text stands for: a writer, a task, a commit of a reported run, or the beginning of a hash. */
async function askedBy(text, scope) {
  const isHash = /^[\w-]+$/.test(text);
  const named = text && !/^[0-9a-f]{16,}$/.test(text) ? await loadNamed(scope) : [];
  const writer = named.find((one) => one.text.toLowerCase() === text.toLowerCase());
  if (writer) return { writer: writer.id };
  if (COMMIT.test(text)) {
    const { data } = await call("GET", `/v1/runs?${scope.query}&from=${dayBefore(MOST_DAYS_OF_RUNS - 1)}&limit=100`);
    const runs = (data?.runs ?? []).filter(({ sha }) => sha?.startsWith(text)).slice(0, MOST_RUNS_OF_A_COMMIT);
    const shown = await Promise.all(runs.map(({ id, startedAt }) => call("GET", `/v1/runs/${id}?${scope.query}&startedAt=${startedAt}`)));
    if (runs.length > 0) return { hashes: shown.flatMap(({ data }) => data?.ran ?? []).map(({ hash }) => hash) };
  }
  // Hashes of turbo are hexadecimal, and those of other tools begin with the name of the tool.
  if (text && (!isHash || !(/^[0-9a-f]+$/.test(text) || TOOLS.some((tool) => text.startsWith(`${tool}-`))))) {
    const at = text.lastIndexOf("#");
    const { data } = await call("GET", `/v1/tasks/history?${scope.query}&${new URLSearchParams({ package: text.slice(0, Math.max(0, at)), task: text.slice(at + 1) })}`);
    if (!isHash || data?.hashes.length > 0) return { hashes: (data?.hashes ?? []).map(({ hash }) => hash) };
  }
  return { prefix: text };
}

/** The query of the filter. */
function filterQuery({ scope, tool, prefix = "", writer, ci, hours, order, hashes, askedAt }, team) {
  const of = { scope: team ? (["", "hidden"].includes(scope) ? "shared" : scope) : "" };
  const asked = [...new Set(hashes ?? [])].filter(Boolean).slice(0, MOST_HASHES);
  const named = hashes ? { ...of, hashes: asked.join(",") || NOTHING } : {
    ...of,
    hidden: scope === "hidden" ? "true" : "",
    prefix: tool && !prefix.startsWith(`${tool}-`) ? `${tool}-${prefix}` : prefix,
    writer,
    ci,
    order,
    from: hours && askedAt - Number(hours) * HOUR,
  };
  return Object.entries(named)
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `&${name}=${encodeURIComponent(value)}`)
    .join("");
}

function Artifacts({ scope, user }) {
  // The cursors of the pages up to this one. The first page has none.
  const [cursors, setCursors] = useState([""]);
  // A link to this view can name a filter.
  const first = useRef({ ...NO_FILTER, ...Object.fromEntries(new URLSearchParams(location.search)) }).current;
  const [fields, setFields] = useState(first);
  // Not at each drawing: the address of the list would change.
  const [askedAt, setAskedAt] = useState(Date.now);
  const asked = useLoad(`asked ${fields.prefix}`, async () => ({ data: await askedBy(fields.prefix, scope), problem: null })).data;
  const isBySize = fields.order === "size";
  const filter = asked && filterQuery({ ...fields, askedAt, prefix: "", ...asked }, scope.team);
  const cursor = cursors.at(-1);
  const path = filter === null || isBySize ? "" : `/v1/artifacts?${scope.query}${filter}${filter.includes("&hashes=") ? "" : `&limit=${PAGE_LENGTH}`}${cursor && `&cursor=${cursor}`}`;
  const loaded = useLoad(path || "no artifacts yet", path ? undefined : () => Promise.resolve({ data: null, problem: null }));
  const names = useLoad(`names ${scope.path}`, () => loadNames(scope)).data ?? new Map();
  // The CI jobs that were on a page until now, to choose from.
  const jobs = useRef(new Map(first.writer && [[first.writer, `${first.writer.slice(0, 8)}…`]])).current;
  for (const row of loaded.data?.artifacts ?? [])
    if (row.writer?.job) jobs.set(row.writer.id, `${writerText(row, names)}, ${relativeText(row.createdAt)}`);
  const scopes = useLoad(`own scopes of ${scope.path}`, () => (scope.team ? loadScopes(scope) : Promise.resolve({ data: [] }))).data ?? [];
  const tasks = useTasks(scope, (loaded.data?.artifacts ?? []).map(({ hash }) => hash));
  const [open, setOpen] = useState(null);
  const [removals, setRemovals] = useState(0);
  const close = (hasChanged) => {
    setOpen(null);
    if (!hasChanged) return;
    loaded.reload();
    setRemovals(removals + 1);
  };
  const search = (sent) => {
    const next = { ...NO_FILTER, ...sent, prefix: sent.prefix.trim() };
    setCursors([""]);
    setFields(next);
    setAskedAt(Date.now());
    // The address keeps the filter, without another page in the history.
    const kept = Object.entries(next).filter(([name, value]) => value !== NO_FILTER[name]);
    history.replaceState(null, "", `${location.pathname}${kept.length ? `?${new URLSearchParams(kept)}` : ""}`);
  };
  const isFiltered = Object.entries(NO_FILTER).some(([name, value]) => name !== "order" && fields[name] !== value);
  return html`<${Head} title="Artifacts"><${Menu} label="all artifacts" items=${[
      ["Delete by time", () => setOpen({ what: DeleteStoredThen }), "loses"],
      ["Delete all", () => setOpen({ what: DeleteEverything }), "loses"],
    ]} /><//>
    <${Removals} key=${removals} scope=${scope} names=${names} removed=${loaded.reload} />
    <${Card}><${ArtifactsFilter} team=${scope.team} first=${first} names=${new Map([...jobs, ...names])} scopes=${scopes} search=${search} /><//>
    ${isBySize && html`<${BySize} scope=${scope} names=${names} />`}
    ${!isBySize && html`<${Card}>
      <${Loaded} of=${loaded} lines=${8} show=${({ artifacts, pagination: { next, read } }) => html`
        ${artifacts.length > 0
          ? html`<${ArtifactsTable} rows=${artifacts} scope=${scope} names=${names} scopes=${scopes} tasks=${tasks} open=${setOpen} />`
          : next !== null
            ? html`<p>None of these ${formats.number.format(read)} artifacts. There are more to search.</p>`
            : isFiltered || cursors.length > 1
              ? html`<${Empty} title="No such artifacts"><p>They were never stored, have expired or were deleted.</p><//>`
              : html`<${Empty} title="No artifacts yet"><p>What builds store appears here. Artifacts are kept for ${own.retentionDays} days.</p><//>`}
        <div class="end">
          ${cursors.length > 1 && html`<${Button} onClick=${() => setCursors(cursors.slice(0, -1))}>Back<//>`}
          ${next !== null && html`<${Button} onClick=${() => setCursors([...cursors, next])}>More<//>`}
        </div>`} />
    <//>`}
    ${open && html`<${open.what} scope=${scope} user=${user} row=${open.row} names=${names} tasks=${tasks} close=${close} />`}`;
}

/** The largest artifacts, which only the daily check knows. */
function BySize({ scope, names }) {
  const loaded = useLoad(`/v1/storage?${scope.query}`);
  return html`<${Card}><${Loaded} of=${loaded} lines=${8} show=${({ storage }) =>
    storage === null
      ? html`<p class="soft">The daily check has not run yet.</p>`
      : html`<${LargestTable} rows=${storage.largest} scope=${scope} names=${names} /><p class="soft">The largest of all artifacts, as checked <${Time} at=${storage.checkedAt} />.</p>`} /><//>`;
}

function ArtifactsFilter({ team, first, names, scopes, search }) {
  return html`<${Form} class="in-a-row" role="search" kind="second" action="Search" busy="Searching …" act=${search} onChange=${({ target }) => target.matches("select") && target.form.requestSubmit()}>
    <${Field} label="Find" placeholder="Hash, task, …" name="prefix" defaultValue=${first.prefix} type="search" autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="128" />
    <${Field} label="Tool" name="tool">
      <option value="">Any</option>
      ${TOOLS.map((tool) => html`<option value=${tool} selected=${tool === first.tool}>${tool}</option>`)}
    <//>
    <${Field} label="Written by" name="writer">
      <option value="">Anyone</option>
      ${[...names].map(([id, name]) => html`<option key=${id} value=${id} selected=${id === first.writer}>${visible(name)}</option>`)}
    <//>
    <${Field} label="CI" name="ci">
      <option value="">Any</option>
      ${Object.entries(CI_NAMES).filter(([ci]) => ci !== "other").map(([ci, name]) => html`<option value=${ci}>${name}</option>`)}
    <//>
    <${Field} label="Stored" name="hours">
      ${PERIODS_STORED.map(([hours, text]) => html`<option value=${hours}>${text}</option>`)}
    <//>
    ${team && html`<${Field} label="Cache" name="scope">
      <option value="">Shared</option>
      <option value="hidden" selected=${first.scope === "hidden"}>With hidden</option>
      <option value="all" selected=${first.scope === "all"}>All</option>
      ${scopes.map((one) => html`<option value=${one.id}>${scopeText(one, names)}</option>`)}
    <//>`}
    <${Field} label="Order" name="order">
      <option value="uploaded">Newest</option>
      <option value="hash" selected=${first.order === "hash"}>By hash</option>
      <option value="size" selected=${first.order === "size"}>Largest</option>
    <//>
  <//>`;
}

function ArtifactsTable({ rows, scope, names, scopes, tasks, open }) {
  const evicts = isTrue(own.evicts);
  const isOwn = ({ scope }) => scope !== undefined && scope !== "shared";
  const cacheOf = (row) => {
    const of = scopes.find(({ id }) => id === row.scope);
    return isOwn(row) ? (of ? scopeText(of, names) : visible(row.scope)) : "Shared";
  };
  return html`<${Table} label="Artifacts" rows=${rows} id=${({ hash, scope }) => `${hash} ${scope}`} columns=${[
    { title: "Hash", cell: (row) => html`<${Hash} of=${row.hash} />${row.hidden && html` <${Tag} kind="warn">hidden<//>`}` },
    rows.some(({ hash }) => toolOf(hash) !== "turbo") && { title: "Tool", cell: ({ hash }) => toolOf(hash) },
    tasks.size > 0 && { title: "Task", cell: ({ hash }) => tasks.has(hash) && html`<${TaskName} of=${tasks.get(hash)} scope=${scope} />` },
    rows.some(isOwn) && { title: "Cache", cell: (row) => html`<bdi>${cacheOf(row)}</bdi>` },
    { title: "Size", number: true, cell: ({ size }) => bytesText(size) },
    { title: "Task took", number: true, cell: ({ taskDurationMs }) => (taskDurationMs === null ? "–" : durationText(taskDurationMs)) },
    { title: "Written by", cell: (row) => html`<${Writer} row=${row} scope=${scope} names=${names} />` },
    { title: "Stored", cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
    evicts && { title: "Last used", isMinor: true, cell: ({ lastUsedAt }) => html`<${Time} at=${lastUsedAt} none="–" />` },
    { title: "Expires", isMinor: true, cell: ({ expiresAt }) => html`<${Time} at=${expiresAt} />` },
    {
      title: "",
      cell: (row) => html`<${Menu} label=${row.hash} items=${[
        ["Details", () => open({ what: ArtifactDetails, row })],
        ["Delete", () => open({ what: DeleteArtifact, row }), "loses"],
      ]} />`,
    },
  ].filter(Boolean)} />`;
}

/** The key that wrote an artifact, or the rule of the job that did. */
const keyOf = ({ id, userId }) => (userId?.startsWith("rule_") ? userId : id);

function ArtifactDetails({ scope, row, names, tasks, close }) {
  const [isPurge, setPurge] = useState(false);
  if (isPurge) return html`<${DeleteWritten} scope=${scope} row=${row} names=${names} close=${close} />`;
  const of = tasks.get(row.hash);
  const inRun = (run) => run && html`<a href=${runPath(scope, run)}><${Time} at=${run.startedAt} /></a>${run.branch && html` on <${Name} of=${run.branch} />`}`;
  const commit = row.sha ?? of?.builtIn?.sha;
  const facts = [
    ["Hash", html`<code>${row.hash}</code>`],
    ["Size", bytesText(row.size)],
    ["Task took", row.taskDurationMs !== null ? durationText(row.taskDurationMs) : of?.built > 0 && durationText(of.builtMs / of.built)],
    row.sha256 !== undefined && ["Checksum (SHA-256)", row.sha256 && html`<code>${row.sha256}</code>`],
    row.sha256 !== undefined && ["Poisoned?", row.contested ? html`<${Tag} kind="bad">contested<//> Another upload had other bytes, <${Time} at=${row.contested.at} />.` : row.sha256 && "No later upload of this hash had other bytes."],
    ["Written by", html`<${Writer} row=${row} scope=${scope} names=${names} />`],
    row.writer?.job && ["Rule", names.has(keyOf(row.writer)) && html`<${KeyName} id=${keyOf(row.writer)} names=${names} scope=${scope} />`],
    ["Task", tasks.has(row.hash) && html`<${TaskName} of=${tasks.get(row.hash)} scope=${scope} />`],
    row.writer?.job && ["CI job", /^https:/.test(row.writer.job.url) && html`<a href=${row.writer.job.url} rel="noreferrer">${visible(row.writer.job.url)}</a>`],
    ["Built in the run", inRun(of?.builtIn)],
    ["Restored last in the run", of?.hits > 0 && html`${inRun(of.hitIn)}, ${countText(of.hits, "hit", "hits")} in reported runs`],
    ["Commit", commit && html`<code>${visible(commit)}</code>`],
    ["Uncommitted changes", row.dirtyHash && html`<code>${visible(row.dirtyHash)}</code>`],
    ["Signature", row.tag && html`<code>${visible(row.tag)}</code>`],
    ["Stored", formats.moment.format(row.createdAt)],
    ["Expires", formats.moment.format(row.expiresAt)],
    row.hidden && ["Hidden from builds", "Stored before the team was protected, or not signed"],
  ].filter(Boolean);
  return html`<${Dialog} title="Artifact" close=${() => close()}>
    <dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value || html`<span class="soft">Not known</span>`}</dd></div>`)}</dl>
    <div class="end">
      ${row.writer && html`<${Button} onClick=${() => setPurge(true)}>Delete all from this writer<//>`}
      <${Button} kind="primary" onClick=${() => close()}>Close<//>
    </div>
  <//>`;
}

function DeleteArtifact({ scope, row, close }) {
  const act = async () => {
    const { problem } = await call("DELETE", `/v1/artifacts/${row.hash}?${scope.query}${row.scope === undefined ? "" : `&scope=${row.scope}`}`);
    if (problem) return problem;
    announce("The artifact is deleted.");
    close(true);
  };
  return html`<${Confirm} title="Delete the artifact?" action="Delete the artifact" busy="Deleting …" act=${act} close=${() => close()}>
    <p><code>${row.hash}</code>, ${bytesText(row.size)}. The next build of this task runs again.</p>
  <//>`;
}

function DeleteWritten({ scope, row, names, close }) {
  const act = async () => {
    const { problem } = await call("DELETE", `/v1/artifacts?${scope.query}&writer=${row.writer.id}`);
    if (problem) return problem;
    announce("The artifacts are being deleted. This can take some minutes.");
    close(true);
  };
  return html`<${Confirm} title="Delete all from this writer?" word=${scope.word} action="Delete the artifacts" busy="Deleting …" act=${act} close=${() => close()}>
    <p>This deletes every artifact that <strong><${Name} of=${writerText(row, names)} /></strong> has stored until now. It takes some minutes, and continues if you leave this page.</p>
    <p>Turn off or delete the key first, so that it stores nothing more.</p>
  <//>`;
}

