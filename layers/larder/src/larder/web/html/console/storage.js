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

const StoredDays = ({ days }) => html`<${DaysCard} title="Stored per day (UTC)" days=${days} chart=${StoredChart} table=${StoredTable} />`;
