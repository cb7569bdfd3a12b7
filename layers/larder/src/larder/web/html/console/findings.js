// What to fix: tasks that lose their hits, from the figures of reported runs, by the build time that they cost.

const MOST_FINDINGS = 5;
const LEAST_RUNS = 5;
const LEAST_SHARE = 0.01;
const MOST_COSTLY = 5;

/** What is wrong with a task, `{ ms, row, text, advice }`. */
const FINDINGS = [
  (row) => row.repeated > 0 && {
    ms: row.repeatedMs,
    text: `built ${countText(row.repeated, "time", "times")} although its hash had been built before`,
    advice: "The cache should have had it: its page shows which hashes are not stored any more.",
  },
  (row) => row.drift > 0 && {
    ms: row.driftMs,
    text: `built ${countText(row.drift, "time", "times")} with another hash at the same commit`,
    advice: "Something other than the commit changes its hash, such as a variable or a file that a build writes.",
  },
  (row) => row.runs >= LEAST_RUNS && row.built === row.runs && row.repeated === 0 && {
    ms: row.builtMs,
    text: `never came from a cache in ${formats.number.format(row.runs)} runs`,
    advice: row.hashes > 1 ? "Its hash is another one in almost every run." : "It may have cache: false in turbo.json.",
  },
];

/** The findings with the most build time first. Those below a hundredth of all build time are left out. */
const findingsOf = ({ tasks, totals }) =>
  tasks
    .flatMap((row) => FINDINGS.map((find) => find(row)).filter(Boolean).map((found) => ({ ...found, row })))
    .filter(({ ms }) => ms > 0 && ms >= LEAST_SHARE * totals.builtMs)
    .sort((one, other) => other.ms - one.ms)
    .slice(0, MOST_FINDINGS);

const Findings = ({ figures, scope }) => {
  const found = findingsOf(figures);
  return html`<${Card} title="What to fix">
    ${found.length === 0
      ? html`<p class="soft">Nothing stands out in ${countText(figures.runs, "reported run", "reported runs")}.</p>`
      : html`<ol class="plain findings">${found.map(({ ms, row, text, advice }) => html`<li key=${`${taskName(row)} ${text}`}>
          <strong>${durationText(ms)}</strong>
          <span><${TaskName} of=${row} scope=${scope} /> ${text}. <span class="soft">${advice}</span></span>
        </li>`)}</ol>`}
  <//>`;
};

const CostlyTasks = ({ figures, scope }) => {
  const rows = figures.tasks.filter(({ builtMs }) => builtMs > 0).slice(0, MOST_COSTLY);
  return html`<${Card} title="Tasks that build the longest" actions=${html`<a href=${`${scope.path}/runs`}>All tasks</a>`}>
    <${Table} label="Tasks that build the longest" rows=${rows} id=${taskName} columns=${[
      { title: "Task", cell: (row) => html`<${TaskName} of=${row} scope=${scope} />` },
      { title: "Build time", number: true, cell: ({ builtMs }) => durationText(builtMs) },
      { title: "Built", number: true, cell: ({ built }) => formats.number.format(built) },
      { title: "From a cache", number: true, cell: (row) => rateText(hitShare(row)) },
    ]} />
  <//>`;
};

/** What the reported runs of a period say, or how to report them. */
function RunsOverview({ scope, days }) {
  const loaded = useLoad(`/v1/runs?${scope.query}&from=${dayBefore(days - 1)}&limit=1`);
  if (loaded.data?.figures.runs === 0)
    return html`<${Card} title="What to fix"><p class="soft">CI can <a href=${`${scope.path}/runs`}>report its runs</a>. Then you see here which tasks lose the most time.</p><//>`;
  return html`<${Loaded} of=${loaded} show=${({ figures }) => html`<div class="pair">
    <${Findings} figures=${figures} scope=${scope} /><${CostlyTasks} figures=${figures} scope=${scope} />
  </div>`} />`;
}
