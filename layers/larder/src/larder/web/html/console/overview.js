// What the cache did in a period, against the period before, and what is stored now.

const PERIODS = [7, 30, 90, 180];
const LIVE_SECONDS = 5;
const MOST_DAYS_BY_KEY = 30;
const MOST_DAYS_OF_RUNS = 30;

/** The usage of some days, up to today or to the day that is `before` days ago. */
function usagePath(scope, days, before = 0) {
  const until = before ? `&to=${dayBefore(before)}` : "";
  return `/v1/usage?${scope.query}&from=${dayBefore(before + days - 1)}${until}`;
}

/** Call `act` when today's usage has changed. Asks for one day, as long as the page is visible. */
function useLive(scope, usage, act) {
  const seen = useRef(null);
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    if (usage) seen.current = fingerprint(usage);
  }, [usage]);
  useEffect(() => {
    const timer = setInterval(async () => {
      if (document.visibilityState !== "visible" || seen.current === null) return;
      const { data, problem } = await call("GET", usagePath(scope, 1));
      if (!problem && fingerprint(data) !== seen.current) latest.current();
    }, LIVE_SECONDS * SECOND);
    return () => clearInterval(timer);
  }, [scope.query]);
}

const fingerprint = ({ status, block, storedBytes, artifacts, days }) =>
  JSON.stringify([status, block, storedBytes, artifacts, days.at(-1)]);

function Overview({ scope }) {
  const [period, setPeriod] = useState(30);
  const usage = useLoad(usagePath(scope, period));
  const before = useLoad(usagePath(scope, period, period));
  useLive(scope, usage.data, usage.reload);
  const isUnused = usage.data?.artifacts === 0 && usage.data.total.events === 0 && before.data?.total.events === 0;
  return html`<${Head} title=${isUnused ? "Get started" : "Overview"}>
      ${usage.data && !isUnused && html`<${Field} label="Period" value=${period} onChange=${({ target }) => setPeriod(Number(target.value))}>
        ${PERIODS.map((days) => html`<option value=${days}>Last ${days} days</option>`)}
      <//>
      <${Button} onClick=${() => exportUsage(scope, usage.data.days)}>Export as CSV<//>`}
    <//>
    <${Loaded} of=${usage} show=${(data) => html`
      <${UsageNotice} scope=${scope} usage=${data} />
      ${scope.team && html`<${ProtectionLine} scope=${scope} />`}
      ${isUnused
        ? html`<${Start} scope=${scope} />`
        : html`<${Period} scope=${scope} usage=${data} before=${before.data} period=${period} />`}`} />`;
}

/** Let the browser store the figures of each day as a file. */
function exportUsage(scope, days) {
  const names = Object.keys(days[0]);
  saveCsv(`${scope.team?.slug ?? "own"}-usage.csv`, names, days.map((day) => names.map((name) => day[name])));
}

/** What a period was like: in one sentence, then what to fix, then in figures. */
function Period({ scope, usage, before, period }) {
  const days = usedDays(usage.days);
  const isFirstDay = days.length === 1;
  const runs = useLoad(`/v1/runs?${scope.query}&from=${dayBefore(Math.min(period, MOST_DAYS_OF_RUNS) - 1)}&limit=${isFirstDay ? 100 : 1}`);
  const isHourly = isFirstDay && runs.data?.runs.length > 0;
  return html`<${Answer} scope=${scope} usage=${usage} period=${period} runs=${runs.data} />
    <${RunsOverview} scope=${scope} loaded=${runs} isHourly=${isHourly} />
    <${Figures} scope=${scope} usage=${usage} before=${before} period=${period} />
    <div class="pair">
      ${!isHourly && html`<${DaysCard} title="Tasks per day (UTC)" days=${days} charts=${TASK_CHARTS} table=${TasksTable} />`}
      <${Builds} scope=${scope} usage=${usage} period=${period} />
      <${StoredDays} days=${days} />
      ${scope.manages && html`<${StorageParts} scope=${scope} />`}
    </div>`;
}

/** How much was built, what the cache saved, and what there is to fix. */
function Answer({ scope, usage: { total }, period, runs }) {
  const [tasks, built] = [tasksOf(total), total.remoteMisses];
  const found = runs ? findingsOf(runs.figures, scope) : [];
  const money = moneyText(scope, total.timeSavedMs);
  if (tasks === 0) return html`<p class="answer">No tasks in the last ${period} days.</p>`;
  return html`<p class="answer">
    <strong>${rateText(hitRate(total))}</strong> of ${countText(tasks, "task", "tasks")} came from a cache, and ${formats.number.format(built)} ${built === 1 ? "was" : "were"} built.
    ${" "}That saved <strong>${durationText(total.timeSavedMs)}</strong> of building${money && html`, or <strong>${money}</strong>`}.
    ${" "}${found.length > 0 && html`<a href="#fix" onClick=${showFindings}>${countText(found.length, "thing", "things")} to fix</a> cost ${durationText(found.reduce((sum, { ms }) => sum + ms, 0))}.`}
    ${!money && scope.team && scope.manages && html` <a class="soft" href=${`${scope.path}/settings`}>Show it as money</a>`}
  </p>`;
}

function showFindings(event) {
  event.preventDefault();
  document.getElementById("fix").scrollIntoView({ block: "start" });
}

/** What the time would have cost at the price of the team, or null if it has none. */
function moneyText({ team }, ms) {
  if (!team?.buildHourCents) return null;
  const dollars = (ms / HOUR) * (team.buildHourCents / 100);
  return (dollars < 100 ? formats.cents : formats.dollars).format(dollars);
}

/** What keeps builds from using the cache, if anything does. */
function UsageNotice({ scope, usage }) {
  const text = {
    paused: "Caching is paused. Builds run without the cache.",
    disabled: "Caching is turned off. Builds run without the cache.",
    over_limit: "The quota is full. Nothing more is stored until artifacts expire or are deleted.",
  }[usage.status];
  if (usage.block)
    return html`<p class="notice warning" role="status">The operator has blocked this cache${usage.blockReason
      ? html`: <${Name} of=${usage.blockReason} />`
      : "."} Ask the operator of ${own.product}.</p>`;
  if (!text) return null;
  return html`<p class="notice warning" role="status">
    ${text} ${scope.manages && usage.status !== "over_limit" && html`<${CachingSetBy} scope=${scope} />`}${(scope.owns || !scope.team) && usage.status !== "over_limit" && html`<a href=${`${scope.path}/settings`}>Change this</a>`}
  </p>`;
}

/** Whether the team is protected, with what follows from it. */
function ProtectionLine({ scope }) {
  const { data } = useLoad(`/v1/teams/${scope.team.id}/protection`);
  if (data === null) return null;
  return data.protected
    ? html`<p class="state"><${Tag} kind="good">Protected<//> Only trusted jobs and keys write what everyone reads.</p>`
    : html`<p class="state"><${Tag} kind="warn">Not protected<//> A pull request can store an output that main restores. <a href=${`${scope.path}/protection`}>Protect the team</a></p>`;
}

function Figures({ scope, usage, before, period }) {
  const { total } = usage;
  const rate = hitRate(total);
  const { storedBytes, quotaBytes, artifacts } = usage;
  const share = quotaBytes ? Math.min(1, storedBytes / quotaBytes) : null;
  return html`<dl class="figures">
    <${Figure} name="Tasks from a cache" value=${rateText(rate)}>${before && html`<${Change} rate=${rate} before=${hitRate(before.total)} period=${period} />`}<//>
    <${Figure} name="Time saved" value=${durationText(total.timeSavedMs)}>${before && html`<${Growth} now=${total.timeSavedMs} before=${before.total.timeSavedMs} period=${period} />`} ${savedText(total)}<//>
    <${Figure} name="Stored now" value=${bytesText(storedBytes)}>
      ${countText(artifacts, "artifact", "artifacts")}${share === null ? ", no quota" : `, ${formats.percent.format(share)} of ${bytesText(quotaBytes)}`}
      ${usage.scopedBytes > 0 && html`, ${bytesText(usage.scopedBytes)} of it in own scopes`}${usage.countsHidden && html`, with what is <a href=${scope.manages ? artifactsPath(scope, { scope: "hidden" }) : `${scope.path}/protection`}>hidden since protection</a>`}
      ${share !== null && html`<span class="meter" aria-hidden="true"><i style=${{ width: `${100 * share}%` }}></i></span>`}
    <//>
    <${Figure} name="Uploads" value=${formats.number.format(total.uploads)}>${bytesText(total.uploadedBytes)} in ${period} days<//>
  </dl>`;
}

const Figure = ({ name, value, children }) => html`<div class="card"><dt>${name}</dt><dd><strong>${value}</strong><span class="soft">${children}</span></dd></div>`;

function savedText({ hits, untimedHits }) {
  if (untimedHits === 0) return "";
  return `At least: ${formats.percent.format(untimedHits / hits)} of hits report no duration, such as those of direct uploads`;
}

/** How the share of hits differs from the period before, in points. */
function Change({ rate, before, period }) {
  if (rate === null) return `No tasks in ${period} days`;
  if (before === null) return `No tasks in the ${period} days before`;
  const points = Math.round(Math.abs(rate - before) * 1000) / 10;
  if (points === 0) return `As in the ${period} days before`;
  const isMore = rate > before;
  return html`<b class=${isMore ? "better" : "worse"}>${isMore ? "▲" : "▼"} ${formats.tenths.format(points)} ${points === 1 ? "point" : "points"} ${isMore ? "more" : "less"}</b> than in the ${period} days before`;
}

/** How much more or less something is than in the period before, in percent, and whether more of it `isGood`. */
function Growth({ now, before, period, isGood = true }) {
  if (before === 0) return null;
  const share = now / before - 1;
  if (Math.abs(share) < 0.005) return `As in the ${period} days before`;
  return html`<b class=${share > 0 === isGood ? "better" : "worse"}>${share > 0 ? "▲" : "▼"} ${formats.wholePercent.format(Math.abs(share))} ${share > 0 ? "more" : "less"}</b> than in the ${period} days before`;
}

const PARTS_OF_BUILDS = {
  ci: { title: "CI", cell: ({ ci }) => html`<${Name} of=${ciText(ci)} />` },
  tools: { title: "Tool", cell: ({ tool }) => (tool === "other" ? "Others" : tool) },
};

/** What builds did, by CI or by tool. Owners and admins also see it by key. */
function Builds({ scope, usage, period }) {
  const [way, setWay] = useState("ci");
  if (usage.total.events === 0) return null;
  const choice = html`<${Field} label="Builds" value=${way} onChange=${({ target }) => setWay(target.value)}>
    <option value="ci">By CI</option>
    <option value="tools">By tool</option>
    ${scope.manages && html`<option value="key">By key</option>`}
  <//>`;
  return html`<${Card} title="Where builds run" actions=${choice}>
    ${way !== "key"
      ? html`<${BuildsTable} rows=${usage[way].filter(({ events }) => events > 0)} id=${({ ci, tool }) => tool ?? ci} columns=${[PARTS_OF_BUILDS[way]]} />`
      : html`<${BuildsByKey} scope=${scope} days=${Math.min(period, MOST_DAYS_BY_KEY)} />`}
  <//>`;
}

const BuildsTable = ({ columns, ...rest }) => html`<${Table} label="Where builds run" ...${rest} columns=${[
  ...columns,
  { title: "Tasks", number: true, cell: (row) => formats.number.format(tasksOf(row)) },
  { title: "From a cache", number: true, cell: (row) => rateText(hitRate(row)) },
  { title: "Time saved", number: true, cell: (row) => durationText(row.timeSavedMs) },
]} />`;

function BuildsByKey({ scope, days }) {
  const loaded = useLoad(`/v1/usage/by?${scope.query}&what=key&from=${dayBefore(days - 1)}`);
  const names = useLoad(`names of the builds ${scope.path}`, () => loadNames(scope)).data ?? new Map();
  const nameOf = (id) => (id === "" ? "All others" : (names.get(id) ?? `${id.slice(0, 8)}…`));
  const columns = [
    { title: "Key or rule", cell: ({ id }) => (names.has(id) ? html`<${KeyName} id=${id} names=${names} scope=${scope} />` : html`<${Name} of=${nameOf(id)} />`) },
    scope.team && { title: "User", cell: ({ id, userId }) => id && (userId ? html`<${Name} of=${nameOf(userId)} />` : html`<span class="soft">CI jobs</span>`) },
  ].filter(Boolean);
  return html`<${Loaded} of=${loaded} show=${({ keys, others }) => html`
    <${BuildsTable} rows=${others.events ? [...keys, { id: "", ...others }] : keys} id=${({ id }) => id} columns=${columns} />
    <p class="soft">The last ${days} days.</p>`} />`;
}

