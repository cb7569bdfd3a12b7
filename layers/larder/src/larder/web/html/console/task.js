// A task of a package: its figures, and what became of each of its hashes.

const TASK_DAYS = 30;
const HASHES_LENGTH = 20;

function OneTask({ scope }) {
  const named = Object.fromEntries(new URLSearchParams(location.search));
  const asked = new URLSearchParams({ package: named.package ?? "", task: named.task ?? "" });
  const history = useLoad(`/v1/tasks/history?${scope.query}&${asked}`);
  const runs = useLoad(`/v1/runs?${scope.query}&from=${dayBefore(TASK_DAYS - 1)}&limit=1`);
  return html`<${Head} title=${html`<${Name} of=${taskName(named)} />`}><a href=${`${scope.path}/runs`}>All runs</a><//>
    ${runs.data && html`<${TaskFigures} row=${runs.data.figures.tasks.find((row) => taskName(row) === taskName(named))} />`}
    <${Card} title="Its hashes">
      <${Loaded} of=${history} lines=${8} show=${({ hashes, complete }) =>
        hashes.length === 0
          ? html`<${Empty} title="No hashes"><p>No reported run has this task with its hash. Runs keep the hashes of their longest tasks.</p><//>`
          : html`<${HashesTable} rows=${hashes} scope=${scope} />
              ${!complete && html`<p class="soft">Older runs are not counted.</p>`}`} />
    <//>`;
}

function TaskFigures({ row }) {
  if (!row) return null;
  return html`<dl class="figures">
    <${Figure} name="From a cache" value=${rateText(hitShare(row))}>of ${countText(row.runs, "run", "runs")} in ${TASK_DAYS} days<//>
    <${Figure} name="Build time" value=${durationText(row.builtMs)}>${countText(row.built, "build", "builds")}${row.failed > 0 && `, ${formats.number.format(row.failed)} failed`}<//>
    <${Figure} name="Built again" value=${durationText(row.repeatedMs)}>${countText(row.repeated, "build", "builds")} of a hash that was built before<//>
    <${Figure} name="Different hashes" value=${formats.number.format(row.hashes)}>${row.drift ? `${countText(row.drift, "build", "builds")} with another hash at the same commit` : "None differs at the same commit"}<//>
  </dl>`;
}

const namesText = (names, more) => (names.length > more ? `${names.slice(0, more).join(", ")} and ${names.length - more} more` : names.join(", "));

function HashesTable({ rows, scope }) {
  const [shown, setShown] = useState(HASHES_LENGTH);
  return html`<${Table} label="Its hashes" rows=${rows.slice(0, shown)} id=${({ hash }) => hash} columns=${[
    { title: "Hash", cell: ({ hash, stored }) => html`<${Hash} of=${hash} scope=${scope} /> ${stored ? html`<${Tag} kind="good">stored<//>` : html`<${Tag}>not stored<//>`}` },
    { title: "First seen", cell: ({ firstAt }) => html`<${Time} at=${firstAt} />` },
    { title: "Last seen", cell: ({ lastAt }) => html`<${Time} at=${lastAt} />` },
    { title: "Built", number: true, cell: ({ built }) => formats.number.format(built) },
    { title: "Build time", number: true, cell: ({ built, builtMs }) => (built ? durationText(builtMs) : "–") },
    { title: "Hits", number: true, cell: ({ hits }) => formats.number.format(hits) },
    { title: "Why", isWide: true, cell: ({ cause, reason }) => html`${cause && html`<${CauseText} of=${cause} />`}${cause && reason && "; "}${reason && `built again: ${REASONS[reason][0]}`}` },
    { title: "Branches", cell: ({ branches }) => html`<${Name} of=${namesText(branches, 3) || "–"} />` },
    { title: "Commit", isMinor: true, cell: ({ shas }) => (shas.length ? html`<code>${visible(shas[0].slice(0, 8))}</code>${shas.length > 1 && ` and ${shas.length - 1} more`}` : "–") },
    { title: "Where", isMinor: true, cell: ({ ci }) => html`<${Name} of=${ci.map((one) => ciText(one && one.toUpperCase())).join(", ")} />` },
  ]} />
    ${rows.length > shown && html`<div class="end"><${Button} onClick=${() => setShown(shown + HASHES_LENGTH)}>More hashes<//></div>`}`;
}
