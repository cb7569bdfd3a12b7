// The runs that CI reports with the file of `turbo run --summarize`: which tasks build the longest, and which the most.

const RUN_PERIODS = [1, 7, 30];
const RUNS_LENGTH = 20;
const TASKS_LENGTH = 20;
const FEW_RUNS = 3;

/** The orders of the tasks: `[value, text, compare, of]`. Only tasks of `of` are in it. */
const TASK_ORDERS = [
  ["slow", "Most build time first", (one, other) => other.builtMs - one.builtMs, ({ built }) => built > 0],
  ["uncached", "Least cached first", (one, other) => hitShare(one) - hitShare(other) || other.builtMs - one.builtMs, ({ runs }) => runs >= FEW_RUNS],
  ["often", "Most runs first", (one, other) => other.runs - one.runs, () => true],
];

function runLines(scope) {
  const team = scope.team ? `?slug=${scope.team.slug}` : "";
  return `turbo run build --summarize
printf 'Authorization: Bearer %s' "$TURBO_TOKEN" | curl -sS "${home}/v1/runs${team}" -H @- -H "Content-Type: application/json" --data-binary "@$(ls -t .turbo/runs/*.json | head -n 1)"`;
}

const branchPath = (scope, branch) => `${scope.path}/runs${branch ? `?${new URLSearchParams({ branch })}` : ""}`;

/** The runs of a period, of all branches or of the one that the address names, or those of the day that it names. */
function RunsView({ scope }) {
  const [period, setPeriod] = useState(7);
  const { branch = "", day = "" } = Object.fromEntries(new URLSearchParams(location.search));
  const days = day && day < dayBefore(period - 1) ? RUN_PERIODS.at(-1) : period;
  const asked = `&from=${day || dayBefore(days - 1)}${day && `&to=${day}`}${branch && `&branch=${encodeURIComponent(branch)}`}`;
  const path = `/v1/runs?${scope.query}${asked}&limit=${RUNS_LENGTH}`;
  const runs = useLoad(path);
  // With the period before, if its runs are all kept.
  const isCompared = 2 * days <= Number(own.runDays);
  const trend = useLoad(`/v1/runs?${scope.query}&by=day&from=${dayBefore((isCompared ? 2 : 1) * days - 1)}${branch && `&branch=${encodeURIComponent(branch)}`}`).data?.trend;
  const now = trend?.days.slice(-days);
  const choose = ({ target }) => {
    if (day) go(branchPath(scope, branch));
    setPeriod(Number(target.value));
  };
  return html`<${Head} title="Runs">
      <${Field} label="Branch" type="search" placeholder="All" value=${branch} autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="255" onChange=${({ target }) => go(branchPath(scope, target.value.trim()))} />
      <${Field} label="Period" value=${day || period} onChange=${choose}>
        ${day && html`<option value=${day}>${dayText({ day })} (UTC)</option>`}
        ${RUN_PERIODS.map((days) => html`<option value=${days}>${days === 1 ? "Today (UTC)" : `Last ${days} days`}</option>`)}
      <//>
      <${Button} onClick=${() => exportRuns(scope, asked)}>Export as CSV<//>
    <//>
    <${Loaded} of=${runs} lines=${8} show=${(data) =>
      data.figures.runs + data.figures.unused.runs === 0
        ? branch
          ? html`<${Card}><${Empty} title="No runs of this branch"><p>Nothing was reported of <strong><${Name} of=${branch} /></strong> in this period.</p><//><//>`
          : html`<${Card}><${Empty} title="No runs in this period"><p>Let CI report its runs after turbo. Only reported runs appear here.</p><//><${Lines} text=${runLines(scope)} /><//>`
        : html`<${RunFigures} figures=${data.figures} now=${trend && sumOfDays(day ? now.filter((one) => one.day === day) : now)} before=${trend && isCompared && !day ? { ...sumOfDays(trend.days.slice(0, days)), period: days } : null} scope=${scope} />
            ${trend && days > 1 && html`<${Trend} trend=${trend} days=${now} scope=${scope} branch=${branch} />`}
            <${Findings} figures=${data.figures} scope=${scope} />
            ${trend && !branch && trend.branches.length > 1 && html`<${Branches} rows=${trend.branches} scope=${scope} />`}
            <${Tasks} key=${path} figures=${data.figures} scope=${scope} />
            <${RunsList} key=${`runs ${path}`} path=${path} first=${data} scope=${scope} reload=${runs.reload} />`} />`;
}

/** The figures of the runs against those of the period before. `now` has all runs but those of an older version of
 * Larder, and `figures` has the newest ones. */
function RunFigures({ figures, now, before, scope }) {
  const hasAll = now?.runs >= figures.runs;
  const of = hasAll ? now : { ...figures.totals, runs: figures.runs };
  const compared = hasAll && before?.runs > 0 ? before : null;
  const growth = (name, isGood) => compared && html`<${Growth} now=${of[name]} before=${compared[name]} period=${compared.period} isGood=${isGood} />, `;
  const money = moneyText(scope, of.builtMs);
  return html`${!figures.complete && html`<p class="notice warning" role="status">The period has more runs. What to fix and the tasks are of the newest ${formats.number.format(figures.runs)}, since ${formats.moment.format(figures.since)}.</p>`}
    <dl class="figures">
      <${Figure} name="Runs" value=${formats.number.format(of.runs)}>reported to ${own.product}<//>
      <${Figure} name="Tasks from a cache" value=${rateText(hitsOf(of))}>${compared ? html`<${Change} rate=${hitsOf(of)} before=${hitsOf(compared)} period=${compared.period} />` : `of ${countText(of.tasks, "task", "tasks")}`}<//>
      <${Figure} name="Build time" value=${durationText(of.builtMs)}>${growth("builtMs", false)}${money && `${money}, `}of tasks that no cache had<//>
      <${Figure} name="Time saved" value=${durationText(of.timeSavedMs)}>${growth("timeSavedMs", true)}as turbo reports it<//>
    </dl>`;
}

function Tasks({ figures, scope }) {
  const [order, setOrder] = useState("slow");
  const [text, setText] = useState("");
  const [shown, setShown] = useState(TASKS_LENGTH);
  const [, , compare, of] = TASK_ORDERS.find(([value]) => value === order);
  const rows = figures.tasks.filter((row) => of(row) && taskName(row).includes(text)).sort(compare);
  const choice = html`<${Field} label="Find" type="search" placeholder="web#build" value=${text} autocomplete="off" autocapitalize="none" spellcheck="false" onInput=${({ target }) => (setText(target.value.trim()), setShown(TASKS_LENGTH))} />
  <${Field} label="Order" value=${order} onChange=${({ target }) => (setOrder(target.value), setShown(TASKS_LENGTH))}>
    ${TASK_ORDERS.map(([value, text]) => html`<option value=${value}>${text}</option>`)}
  <//>`;
  return html`<${Card} title="Tasks" actions=${choice}>
    ${rows.length === 0 && html`<p class="soft">${text ? "No such task." : order === "uncached" ? `No task ran ${FEW_RUNS} times.` : "Every task came from a cache."}</p>`}
    ${rows.length > 0 && html`<${Table} label="Tasks" rows=${rows.slice(0, shown)} id=${taskName} columns=${[
        { title: "Task", cell: (row) => html`<${TaskName} of=${row} scope=${scope} />` },
        { title: "Runs", number: true, cell: ({ runs }) => formats.number.format(runs) },
        { title: "From a cache", number: true, cell: (row) => rateText(hitShare(row)) },
        { title: "Built", number: true, cell: ({ built, failed }) => `${formats.number.format(built)}${failed ? ` (${formats.number.format(failed)} failed)` : ""}` },
        { title: "Built again", number: true, cell: ({ repeated, repeatedMs }) => (repeated ? `${formats.number.format(repeated)}, ${durationText(repeatedMs)}` : "–") },
        { title: "Average build", number: true, isMinor: true, cell: ({ built, builtMs }) => (built ? durationText(builtMs / built) : "–") },
        { title: "Longest build", number: true, isMinor: true, cell: ({ built, longestMs }) => (built ? durationText(longestMs) : "–") },
        { title: "Time saved", number: true, cell: ({ timeSavedMs }) => durationText(timeSavedMs) },
      ]} />
      ${figures.count > figures.tasks.length && html`<p class="soft">These are the ${formats.number.format(figures.tasks.length)} tasks with the most build time, of ${formats.number.format(figures.count)}.</p>`}
      ${rows.length > shown && html`<div class="end"><${Button} onClick=${() => setShown(shown + TASKS_LENGTH)}>More tasks<//></div>`}`}
  <//>`;
}

function RunsList({ path, first, scope, reload }) {
  // The places of the pages up to this one. The first page is loaded already.
  const [places, setPlaces] = useState([""]);
  const [deleting, setDeleting] = useState(null);
  const place = places.at(-1);
  const remove = scope.manages && { title: "", cell: (row) => html`<${Menu} label=${`the run ${row.id}`} items=${[["Delete", () => setDeleting(row), "loses"]]} />` };
  const page = useLoad(place ? `${path}&before=${encodeURIComponent(place)}` : `first ${path}`, place ? undefined : async () => ({ data: first, problem: null }));
  return html`<${Card} title="Runs"><${Loaded} of=${page} lines=${8} show=${({ runs, pagination }) => html`
    <${RunsTable} rows=${runs} scope=${scope} remove=${remove} />
    ${deleting && html`<${DeleteRun} scope=${scope} row=${deleting} close=${(done) => (setDeleting(null), done && reload())} />`}
    <div class="end">
      ${places.length > 1 && html`<${Button} onClick=${() => setPlaces(places.slice(0, -1))}>Newer<//>`}
      ${pagination.next !== null && html`<${Button} onClick=${() => setPlaces([...places, pagination.next])}>Older<//>`}
    </div>`} /><//>`;
}

const runPath = (scope, { id, startedAt }) => `${scope.path}/run?id=${id}&startedAt=${startedAt}`;

/** A run by the subject of its commit, the commit or the day. */
function RunTitle({ of: { title, sha, startedAt } }) {
  if (title) return html`<${Name} of=${title} />`;
  return sha ? html`<code>${visible(sha.slice(0, 8))}</code>` : formats.moment.format(startedAt);
}

/** When a run was, who wrote its commit, and which one that is. */
const RunMoment = ({ of: { title, sha, author, startedAt } }) => html`<${Time} at=${startedAt} />${(title || sha) && `, ${formats.moment.format(startedAt)}`}${author && html`, <${Name} of=${author} />`}${title && sha && html`, <code>${visible(sha.slice(0, 8))}</code>`}`;

/** The causes of a run's misses with their numbers of tasks: NEXT_PUBLIC_SHA (31), known hash (1). */
function MissedBecause({ of: { topCauses, sameHash } }) {
  const name = (text) => html`<${Name} of=${text ?? ""} />`;
  const parts = topCauses.map((cause) => html`<span>${causeSubject({ ...cause, more: 0 }, name)} (${formats.number.format(cause.tasks)})</span>`);
  if (sameHash > 0) parts.push(html`<span>a known hash (${formats.number.format(sameHash)})</span>`);
  return parts.map((part, index) => (index > 0 ? html`, ${part}` : part));
}

const RunsTable = ({ rows, scope, remove }) => html`<${Table} label="Runs" rows=${rows} id=${({ id, startedAt }) => `${id} ${startedAt}`} columns=${[
  { title: "Run", cell: (row) => html`<a href=${runPath(scope, row)}><${RunTitle} of=${row} /></a> ${(row.failed > 0 || row.exitCode > 0) && html`<${Tag} kind="bad">failed<//>`}
    <div class="soft"><${RunMoment} of=${row} /></div>` },
  { title: "Tasks", cell: ({ names }) => html`<${Name} of=${names.join(", ") || "–"} />` },
  { title: "Branch", cell: ({ branch, pull }) => html`${branch === null ? "–" : html`<a href=${branchPath(scope, branch)}><${Name} of=${branch} /></a>`}${pull && html` <${Tag}>PR ${pull}<//>`}` },
  rows.some(({ client }) => client !== "turbo") && { title: "Tool", cell: ({ client }) => client },
  { title: "CI", cell: ({ ci }) => (ci === null ? "–" : html`<${Name} of=${ciText(ci.toUpperCase())} />`) },
  { title: "Ran", number: true, cell: ({ tasks }) => formats.number.format(tasks) },
  { title: "From a cache", number: true, cell: (row) => (row.usedCache ? rateText(hitShare({ ...row, runs: row.tasks })) : html`<span class="soft">Did not use the cache</span>`) },
  rows.some(({ topCauses, sameHash }) => topCauses.length + sameHash > 0) && { title: "Missed because of", isWide: true, cell: (row) => html`<${MissedBecause} of=${row} />` },
  { title: "Took", number: true, cell: ({ durationMs }) => durationText(durationMs) },
  remove,
].filter(Boolean)} />`;

function DeleteRun({ scope, row, close }) {
  const act = async ({ all }) => {
    const what = all ? `reporter=${row.reporter.id}` : `id=${row.id}&startedAt=${row.startedAt}`;
    for (let more = true; more; ) {
      const { data, problem } = await call("DELETE", `/v1/runs?${scope.query}&${what}`);
      if (problem) return problem;
      more = data.hasMore;
    }
    announce(all ? "The runs are deleted." : "The run is deleted.");
    close(true);
  };
  return html`<${Confirm} title="Delete the run?" action="Delete" busy="Deleting …" act=${act} close=${() => close()}
    more=${html`<${Check} label="Delete all runs that this key or job has reported" name="all" />`}>
    <p>The run of <${Time} at=${row.startedAt} /> no longer counts. Its artifacts stay.</p>
  <//>`;
}
