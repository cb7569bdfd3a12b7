// Two runs side by side: what each took, and the tasks that make the difference.

const DIFFERENCES_LENGTH = 20;

/** The tasks that one of the runs built, or only one has, as `{ package, task, one, other, ms }`: `ms` more in `one`. */
function differencesOf(run, other) {
  const cost = (row) => (row && (row.outcome === "built" || row.outcome === "failed") ? row.ms : 0);
  const others = new Map(other.ran.map((row) => [taskName(row), row]));
  const pairs = run.ran.map((one) => [one, others.get(taskName(one))]);
  const own = new Set(run.ran.map(taskName));
  pairs.push(...other.ran.filter((row) => !own.has(taskName(row))).map((row) => [undefined, row]));
  return pairs
    .map(([one, two]) => ({ package: (one ?? two).package, task: (one ?? two).task, one, other: two, ms: cost(one) - cost(two) }))
    .filter(({ one, other: two, ms }) => ms !== 0 || one?.outcome !== two?.outcome)
    .sort((one, two) => Math.abs(two.ms) - Math.abs(one.ms));
}

/** More or less time, with its sign. */
const moreText = (ms) => (Math.abs(ms) < 50 ? "0 s" : `${ms > 0 ? "+" : "−"}${durationText(Math.abs(ms))}`);

const resultText = (row) => (row ? `${OUTCOMES[row.outcome]}${row.ms ? `, ${durationText(row.ms)}` : ""}` : "–");

function SideBySide({ run, other, scope }) {
  const [shown, setShown] = useState(DIFFERENCES_LENGTH);
  const path = other?.startedAt ? `/v1/runs/${encodeURIComponent(other.id)}?${scope.query}&startedAt=${other.startedAt}` : "";
  const loaded = useLoad(path || "no other run", path ? undefined : () => Promise.resolve({ data: null, problem: null }));
  if (!loaded.data) return null;
  const base = loaded.data;
  const built = ({ ran }) => ran.reduce((sum, { outcome, ms }) => sum + (outcome === "built" || outcome === "failed" ? ms : 0), 0);
  const differences = differencesOf(run, base);
  const rows = [
    ["Took", ...[run, base].map(({ durationMs }) => durationText(durationMs)), moreText(run.durationMs - base.durationMs)],
    ["Build time", ...[run, base].map((one) => durationText(built(one))), moreText(built(run) - built(base))],
    ["Tasks", ...[run, base].map(({ tasks }) => formats.number.format(tasks)), ""],
    ["From a cache", ...[run, base].map((one) => rateText(hitShare({ ...one, runs: one.tasks }))), ""],
    ["Commit", ...[run, base].map(({ sha }) => sha && html`<code>${visible(sha.slice(0, 8))}</code>`), ""],
  ];
  const that = html`<a href=${runPath(scope, base)}><${RunTitle} of=${base} /></a>`;
  return html`<${Card} title="Side by side">
    <p>Compared with ${that}, <${Time} at=${base.startedAt} />${base.branch && html`, <${Name} of=${base.branch} />`}.</p>
    <${Table} label="Both runs" rows=${rows} id=${([name]) => name} columns=${[
      { title: "Run", cell: ([name]) => name },
      { title: "This run", number: true, cell: ([, one]) => one },
      { title: "That run", number: true, cell: ([, , two]) => two },
      { title: "Difference", number: true, cell: ([, , , more]) => more },
    ]} />
    <h3>${differences.length === 0 ? "Every task had the same result" : countText(differences.length, "task differs", "tasks differ")}</h3>
    ${differences.length > 0 && html`<${Table} label="Tasks that differ" rows=${differences.slice(0, shown)} id=${taskName} columns=${[
      { title: "Task", cell: (row) => html`<${TaskName} of=${row} scope=${scope} />` },
      { title: "This run", cell: ({ one }) => resultText(one) },
      { title: "That run", cell: ({ other }) => resultText(other) },
      { title: "Difference", number: true, cell: ({ ms }) => moreText(ms) },
    ]} />`}
    ${differences.length > shown && html`<div class="end"><${Button} onClick=${() => setShown(shown + DIFFERENCES_LENGTH)}>More tasks<//></div>`}
  <//>`;
}
