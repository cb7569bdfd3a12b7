// Runs over time: how long they took and what came from a cache on each day, and since when something costs more.

const DURATIONS = [
  ["medianMs", "Median", "remote"],
  ["p95Ms", "95th percentile", "built"],
];

const dayPath = (scope, day, branch) => `${scope.path}/runs?${new URLSearchParams({ day, ...(branch && { branch }) })}`;

/** The figures of some days together. */
function sumOfDays(days) {
  const sums = { runs: 0, tasks: 0, localHits: 0, remoteHits: 0, builtMs: 0, timeSavedMs: 0 };
  for (const day of days) for (const name of Object.keys(sums)) sums[name] += day[name];
  return sums;
}

const hitsOf = (day) => hitShare({ ...day, runs: day.tasks });

/** Days with their share of hits, `rate`, in percent. */
const withRates = (days) => days.map((day) => ({ ...day, rate: hitsOf(day) === null ? null : hitsOf(day) * 100 }));

const dayReadout = (day) => (day.runs === 0 ? "no runs" : `${countText(day.runs, "run", "runs")}, median ${durationText(day.medianMs)}, 95th percentile ${durationText(day.p95Ms)}, ${rateText(hitsOf(day))} from a cache`);

function DurationChart({ days, ...rest }) {
  // Whole minutes or seconds make a readable axis.
  const longest = Math.max(SECOND, ...days.map(({ p95Ms }) => p95Ms ?? 0));
  const unit = longest >= 2 * HOUR ? HOUR : longest >= 2 * MINUTE ? MINUTE : SECOND;
  return html`<${Legend} series=${DURATIONS} />
    <${DaysChart} days=${days} series=${DURATIONS} most=${roundUp(longest / unit) * unit} label="Duration of runs per day" axisText=${(ms) => `${ms / unit} ${{ [HOUR]: "h", [MINUTE]: "min", [SECOND]: "s" }[unit]}`} readout=${dayReadout} left=${56} ...${rest} />`;
}

const RunRateChart = ({ days, ...rest }) => html`<${DaysChart} most=${100} days=${withRates(days)} series=${RATE} label="Share of tasks from a cache per day" axisText=${(percent) => formats.percent.format(percent / 100)} readout=${dayReadout} ...${rest} />`;

function RunDaysTable({ days, scope, branch }) {
  return html`<${Table} label="Runs per day" rows=${[...days].reverse()} id=${({ day }) => day} columns=${[
    { title: "Day", cell: ({ day, runs }) => (runs ? html`<a href=${dayPath(scope, day, branch)}>${dayText({ day })}</a>` : dayText({ day })) },
    { title: "Runs", number: true, cell: ({ runs }) => formats.number.format(runs) },
    { title: "Median", number: true, cell: ({ medianMs }) => (medianMs === null ? "–" : durationText(medianMs)) },
    { title: "95th percentile", number: true, cell: ({ p95Ms }) => (p95Ms === null ? "–" : durationText(p95Ms)) },
    { title: "Slowest run", number: true, cell: ({ slowest }) => slowest && html`<a href=${runPath(scope, slowest)}>${durationText(slowest.durationMs)}</a>` },
    { title: "From a cache", number: true, cell: (day) => rateText(hitsOf(day)) },
    { title: "Build time", number: true, cell: ({ builtMs }) => durationText(builtMs) },
    { title: "Time saved", number: true, cell: ({ timeSavedMs }) => durationText(timeSavedMs) },
  ]} />`;
}

const TREND_CHARTS = [
  ["Duration", DurationChart],
  ["From a cache", RunRateChart],
];

/** What each day had, with a mark where a cause began. A click on a day leads to its runs. */
function Trend({ trend, days, scope, branch }) {
  const dayOf = ({ first }) => new Date(first.startedAt).toISOString().slice(0, 10);
  const marks = new Map(trend.begun.map((one) => [dayOf(one), one.subject || one.kind]));
  const open = ({ day, runs }) => runs > 0 && go(dayPath(scope, day, branch));
  return html`<${DaysCard} title="Runs per day (UTC)" days=${days} charts=${TREND_CHARTS} table=${RunDaysTable} scope=${scope} branch=${branch} marks=${marks} open=${open}>
    ${trend.begun.length > 0 && html`<ul class="plain">${trend.begun.map((one) => html`<li key=${`${one.kind} ${one.subject} ${one.task}`}>
      Since <a href=${runPath(scope, one.first)}>${one.first.sha ? `commit ${visible(one.first.sha.slice(0, 8))}` : "a run"}</a>, ${formats.usageDay.format(one.first.startedAt)}: ${CAUSE_TITLES[one.kind] ?? one.kind} <strong>${causeSubject({ ...one, more: 0 }, (text) => html`<${Name} of=${text ?? ""} />`)}</strong>, ${durationText(one.buildMs)} in ${countText(one.runs, "run", "runs")}
    </li>`)}</ul>`}
    ${!trend.complete && html`<p class="soft">The period has more runs than were counted: the oldest days are too low.</p>`}
  <//>`;
}

/** The branches with the most build time, with their pull requests. */
const Branches = ({ rows, scope }) => html`<${Card} title="Branches and pull requests"><${Table} label="Branches" rows=${rows} id=${({ branch }) => branch ?? ""} columns=${[
  { title: "Branch", cell: ({ branch, pull }) => html`${branch === null ? "None" : html`<a href=${branchPath(scope, branch)}><${Name} of=${branch} /></a>`}${pull && html` <${Tag}>PR ${pull}<//>`}` },
  { title: "Runs", number: true, cell: ({ runs }) => formats.number.format(runs) },
  { title: "From a cache", number: true, cell: (row) => rateText(hitsOf(row)) },
  { title: "Build time", number: true, cell: ({ builtMs }) => durationText(builtMs) },
  moneyText(scope, 0) && { title: "Cost", number: true, cell: ({ builtMs }) => moneyText(scope, builtMs) },
  { title: "Time saved", number: true, cell: ({ timeSavedMs }) => durationText(timeSavedMs) },
  { title: "Last run", isMinor: true, cell: ({ last }) => html`<a href=${runPath(scope, last)}><${Time} at=${last.startedAt} /></a>` },
].filter(Boolean)} /><//>`;

/** Load every run of a period, and let the browser store them as a file. */
async function exportRuns(scope, query) {
  const rows = [];
  for (let before = ""; before !== null && rows.length < MOST_EXPORTED; ) {
    const { data, problem } = await call("GET", `/v1/runs?${scope.query}&limit=100${query}${before && `&before=${encodeURIComponent(before)}`}`);
    if (problem) return announce(problem);
    rows.push(...data.runs);
    before = data.pagination.next;
  }
  const names = ["id", "title", "branch", "pull", "sha", "author", "ci", "client", "exitCode", "durationMs", "tasks", "localHits", "remoteHits", "built", "failed", "timeSavedMs"];
  saveCsv(`${scope.team?.slug ?? "own"}-runs.csv`, ["started", ...names], rows.map((row) => [new Date(row.startedAt).toISOString(), ...names.map((name) => row[name])]));
}
