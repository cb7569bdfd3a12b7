// What is stored: on each day, and what takes the space.

const STORED = [["storedBytes", "Stored", "remote"]];
const STORED_BY_SCOPE = [
  ["sharedBytes", "Read by everyone", "remote"],
  ["scopedBytes", "In own scopes", "local"],
];

const hasScopes = (days) => days.some(({ scopedBytes }) => scopedBytes > 0);

const storedText = ({ storedBytes, artifacts }) =>
  storedBytes === null ? "not known" : `${bytesText(storedBytes)}, ${countText(artifacts, "artifact", "artifacts")}`;

function StoredChart({ days }) {
  const isSplit = hasScopes(days);
  const rows = days.map((day) => ({ ...day, sharedBytes: day.storedBytes === null ? null : day.storedBytes - day.scopedBytes }));
  const series = isSplit ? STORED_BY_SCOPE : STORED;
  return html`${isSplit && html`<${Legend} series=${series} />`}
    <${DaysChart} days=${rows} series=${series} label="Stored per day" axisText=${bytesText} readout=${storedText} left=${64} />`;
}

const StoredTable = ({ days }) => html`<${Table} label="Stored per day" rows=${[...days].reverse()} id=${({ day }) => day} columns=${[
  { title: "Day", cell: ({ day }) => formats.usageDay.format(new Date(day)) },
  { title: "Stored", number: true, cell: ({ storedBytes }) => (storedBytes === null ? "–" : bytesText(storedBytes)) },
  hasScopes(days) && { title: "In own scopes", number: true, cell: ({ scopedBytes }) => (scopedBytes === null ? "–" : bytesText(scopedBytes)) },
  { title: "Artifacts", number: true, cell: ({ artifacts }) => (artifacts === null ? "–" : formats.number.format(artifacts)) },
].filter(Boolean)} />`;

const StoredDays = ({ days }) => html`<${DaysCard} title="Stored per day (UTC)" days=${days} charts=${[["Stored", StoredChart]]} table=${StoredTable} />`;

const AGE_WORDS = { 1: "Under a day", 7: "1 to 7 days", 30: "7 to 30 days", null: "Over 30 days" };

const namedPart = ({ name }) => (name === null ? "Not known" : name === "…" ? "Others" : name);

const WAYS_TO_DIVIDE = [
  ["repositories", "By repository", "Repository", namedPart],
  ["packages", "By package", "Package", (part) => (part.name === "" ? "The root" : namedPart(part))],
  ["tasks", "By task", "Task", namedPart],
  ["branches", "By branch", "Branch", namedPart],
  ["ages", "By age", "Age", ({ days }) => AGE_WORDS[days]],
  ["writers", "By writer", "Writer", ({ writer }, names) => (writer === null ? "Not known" : (names.get(writer) ?? `${writer.slice(0, 8)}…`))],
  ["ci", "By CI", "CI", ({ ci }) => (ci === null ? "Not known" : ciText(ci))],
];

/** Where the console is that of a local cloud. */
const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];

/** What takes the space, as the last daily check found it. */
function StorageParts({ scope }) {
  const loaded = useLoad(`/v1/storage?${scope.query}`);
  const names = useLoad(`names of the storage ${scope.path}`, () => loadNames(scope)).data ?? new Map();
  const [chosen, setWay] = useState(null);
  // Without jobs that have id tokens, the repositories say nothing.
  const way = chosen ?? (loaded.data?.storage?.repositories.some(({ name }) => name) ? "repositories" : "ages");
  const [key, , title, nameOf] = WAYS_TO_DIVIDE.find(([name]) => name === way) ?? [];
  const choice = html`<${Field} label="Storage" value=${way} onChange=${({ target }) => setWay(target.value)}>
    ${WAYS_TO_DIVIDE.map(([name, text]) => html`<option value=${name}>${text}</option>`)}
    <option value="largest">The largest</option>
  <//>`;
  return html`<${Card} title="What takes the space" actions=${choice}>
    <${Loaded} of=${loaded} show=${({ storage }) =>
      storage === null
        ? html`<p class="soft">The daily check has not run yet.${LOOPBACK.includes(location.hostname) && html` In the folder of Larder, <code>make larder ARGS=sweep</code> runs it now.`}</p>`
        : html`${way === "largest"
              ? html`<${LargestTable} rows=${storage.largest} scope=${scope} names=${names} />`
              : html`<${PartsTable} rows=${storage[key]} all=${storage} title=${title} nameOf=${(row) => nameOf(row, names)} />`}
            <p class="soft">Checked <${Time} at=${storage.checkedAt} />.${storage.scopedBytes > 0 && ` ${bytesText(storage.scopedBytes)} of it is in own scopes.`}${
              storage.neverRead && ` ${partText({ artifacts: storage.neverRead.artifacts, sizeBytes: storage.neverRead.storedBytes })} were never read.`}</p>
            ${["packages", "tasks", "branches"].includes(way) && html`<p class="soft">As the reported <a href=${`${scope.path}/runs`}>runs</a> of the last ${own.runDays} days name them.</p>`}`} />
  <//>`;
}

const PartsTable = ({ rows, all, title, nameOf }) => html`<${Table} label="What takes the space" rows=${rows} id=${nameOf} columns=${[
  { title, cell: (row) => html`<${Name} of=${nameOf(row)} />` },
  { title: "Artifacts", number: true, cell: ({ artifacts }) => formats.number.format(artifacts) },
  { title: "Stored", number: true, cell: ({ storedBytes }) => bytesText(storedBytes) },
  { title: "Share", number: true, cell: ({ storedBytes }) => (all.storedBytes ? formats.percent.format(storedBytes / all.storedBytes) : "–") },
]} />`;

const LargestTable = ({ rows, scope: at, names }) => html`<${Table} label="The largest artifacts" rows=${rows} id=${({ hash, scope }) => `${hash} ${scope}`} columns=${[
  { title: "Hash", cell: ({ hash }) => html`<${Hash} of=${hash} scope=${at} />` },
  { title: "Size", number: true, cell: ({ size }) => bytesText(size) },
  rows.some(({ scope }) => scope !== "shared") && { title: "Scope", cell: ({ scope }) => html`<code>${visible(scope)}</code>` },
  { title: "Written by", cell: (row) => html`<${Writer} row=${row} scope=${at} names=${names} />` },
  { title: "Stored", cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
].filter(Boolean)} />`;
