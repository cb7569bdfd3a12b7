// What to fix: tasks that lose their hits, from the figures of reported runs, by the build time that they cost.

const MOST_FINDINGS = 5;
const LEAST_RUNS = 5;
const LEAST_SHARE = 0.01;
const MOST_COSTLY = 5;
const MADE_BY_COMMITS = ["source-file", "script", "workspace-dependency", "task-settings", "global-settings", "engines"];

/** Whether only computers have the cause, and have it at a commit that CI built without it: they are compared with CI. */
const isOfComputers = ({ runs, atSameCommit, outsideCi }) => outsideCi === runs && atSameCommit > 0;

/** What the figures find: `{ ms, text, advice }`. */
const FINDINGS = [
  ({ unused }) => (unused.runs === 0 ? [] : [{ ms: unused.builtMs, text: `${countText(unused.runs, "run", "runs")} did not use the cache`, advice: UNUSED_ADVICE }]),
  // A hash that was built before, by the reason why it was not restored.
  ({ again }, scope) => again.map(({ reason, builds, buildMs, tasks, taskCount }) => ({
    ms: buildMs,
    text: html`${tasks.map((id, at) => html`${at > 0 && ", "}<${TaskOfId} id=${id} scope=${scope} />`)}${taskCount > tasks.length && ` and ${formats.number.format(taskCount - tasks.length)} more`}: built ${countText(builds, "time", "times")} although the hash was known${reason && `: ${REASONS[reason][0]}`}`,
    advice: reason ? REASONS[reason][1] : "These runs were not compared, so the reason is not known. The page of the task shows which hashes are not stored any more.",
  })),
  // A change in a commit is what a build is for, unless CI has it without a commit.
  ({ causes }) => causes.filter(({ advice, atSameCommit, outsideCi }) => !MADE_BY_COMMITS.includes(advice) || atSameCommit > outsideCi).map((cause) => ({
    ms: cause.buildMs,
    text: html`${isOfComputers(cause) && "computers and CI differ: "}<${CauseText} of=${cause} />: ${countText(cause.tasks, "task", "tasks")} in ${countText(cause.runs, "run", "runs")}${cause.atSameCommit > 0 && ", also at the same commit"}${cause.outsideCi > 0 && !isOfComputers(cause) && `, ${formats.number.format(cause.outsideCi)} on computers`}`,
    advice: ADVICE[cause.advice],
  })),
  // Without inputs, only the hashes show that something other than the commit changes.
  ({ tasks, causes }, scope) => causes.length > 0 ? [] : tasks.filter(({ drift }) => drift > 0).map((row) => ({
    ms: row.driftMs,
    text: html`<${TaskName} of=${row} scope=${scope} />: built ${countText(row.drift, "time", "times")} with another hash at the same commit`,
    advice: "Something other than the commit changes its hash, such as a variable or a file that a build writes.",
  })),
  ({ tasks, causes }, scope) => causes.length > 0 ? [] : tasks.filter((row) => row.runs >= LEAST_RUNS && row.built === row.runs && row.hashes > 1 && row.repeated + row.drift === 0).map((row) => ({
    ms: row.builtMs,
    text: html`<${TaskName} of=${row} scope=${scope} />: never came from a cache in ${formats.number.format(row.runs)} runs`,
    advice: "Its hash is another one in almost every run.",
  })),
];

/** The findings with the most build time first. Those below a hundredth of all build time are left out. */
const findingsOf = (figures, scope) =>
  FINDINGS.flatMap((find) => find(figures, scope))
    .filter(({ ms }) => ms > 0 && ms >= LEAST_SHARE * (figures.totals.builtMs + figures.unused.builtMs))
    .sort((one, other) => other.ms - one.ms)
    .slice(0, MOST_FINDINGS);

/** The switch of a team that was made before it was on by default. */
function ExplainMisses({ scope }) {
  const [isOn, setOn] = useState(scope.team?.runInputs !== "off");
  const turnOn = async () => {
    const { problem } = await call("PATCH", `/v2/teams/${scope.team.id}`, { runInputs: "names" });
    announce(problem ?? "Misses are explained from the next run on.");
    setOn(!problem);
  };
  if (isOn || !scope.manages) return null;
  return html`<p>Larder can say which file, variable or package makes tasks miss. It then keeps names and digests of files, which members see. <${Button} kind="second small" onClick=${turnOn}>Explain misses<//></p>`;
}

const Findings = ({ figures, scope }) => {
  const found = findingsOf(figures, scope);
  return html`<${Card} id="fix" title="What to fix">
    <${ExplainMisses} scope=${scope} />
    ${found.length === 0
      ? html`<p class="soft">Nothing stands out in ${countText(figures.runs, "reported run", "reported runs")}.</p>`
      : html`<ol class="plain findings">${found.map(({ ms, text, advice }, index) => html`<li key=${index}>
          <strong>${durationText(ms)}</strong>
          <span>${text}. ${advice && html`<span class="soft"><${Advice} text=${advice} /></span>`}</span>
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

/** What the reported runs of a period say, or how to report them. On the first day of a team, its hours say more. */
function RunsOverview({ scope, loaded, isHourly }) {
  if (loaded.data?.figures.runs === 0 && loaded.data.figures.unused.runs === 0)
    return html`<${Card} title="What to fix"><p class="soft">Builds in <code>larder run</code> report their runs, and CI can <a href=${`${scope.path}/runs`}>report them</a>, too. Then you see here which tasks lose the most time, and why.</p><//>`;
  return html`<${Loaded} of=${loaded} show=${({ figures, runs }) => html`<div class="pair">
    ${isHourly && html`<${DaysCard} title="Tasks per hour, of reported runs" days=${hoursOf(runs)} charts=${TASK_CHARTS.slice(1)} table=${TasksTable} />`}
    <${Findings} figures=${figures} scope=${scope} /><${CostlyTasks} figures=${figures} scope=${scope} />
  </div>`} />`;
}
