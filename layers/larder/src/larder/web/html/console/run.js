// A run with its tasks.

const OUTCOMES = { localHit: "Local hit", remoteHit: "Remote hit", built: "Built", failed: "Failed" };

function OneRun({ scope }) {
  const { id, startedAt } = Object.fromEntries(new URLSearchParams(location.search));
  const path = `/v1/runs/${encodeURIComponent(id)}?${scope.query}&startedAt=${encodeURIComponent(startedAt)}`;
  const loaded = useLoad(path);
  const names = useLoad(`names ${scope.path}`, () => loadNames(scope)).data ?? new Map();
  return html`<${Head} title=${loaded.data?.title ? html`<${Name} of=${loaded.data.title} />` : "Run"}><a href=${`${scope.path}/runs`}>All runs</a><//>
    ${loaded.status === 404
      ? html`<${Card}><${Empty} title="No such run"><p>It has expired or was deleted.</p><//><//>`
      : html`<${Loaded} of=${loaded} lines=${8} show=${(run) => html`<${RunFacts} run=${run} scope=${scope} names=${names} />
          <${WhyMissed} run=${run} path=${path} scope=${scope} />
          <${RanTasks} rows=${run.ran} scope=${scope} />`} />`}`;
}

function RunFacts({ run, scope, names }) {
  const { reporter } = run;
  const of = names.has(reporter.id) ? reporter.id : reporter.userId;
  const facts = [
    ["Tasks", run.names.join(", ")],
    ["Branch", run.branch && html`<a href=${branchPath(scope, run.branch)}><${Name} of=${run.branch} /></a>`],
    ["Pull request", run.pull],
    ["Author", run.author && html`<${Name} of=${run.author} />`],
    ["Commit", run.sha && html`<code title=${visible(run.sha)}>${visible(run.sha.slice(0, 12))}</code>`],
    ["Where", run.ci ? html`<${Name} of=${ciText(run.ci.toUpperCase())} />` : ciText(null)],
    ["Reported by", of && html`<${KeyName} id=${of} names=${names} scope=${scope} />`],
    ["Tool", `${run.client} ${visible(run.turboVersion ?? "")}`],
  ];
  return html`<dl class="figures">
      <${Figure} name="Started" value=${relativeText(run.startedAt)}>${formats.moment.format(run.startedAt)}<//>
      <${Figure} name="Took" value=${durationText(run.durationMs)}>${run.exitCode ? html`<${Tag} kind="bad">failed<//>` : "without an error"}<//>
      <${Figure} name="From a cache" value=${run.usedCache ? rateText(hitShare({ ...run, runs: run.tasks })) : "–"}>${!run.usedCache && html`<${Tag} kind="warn">did not use the cache<//> `}${countText(run.localHits + run.remoteHits, "task", "tasks")} of ${formats.number.format(run.tasks)}<//>
      <${Figure} name="Time saved" value=${durationText(run.timeSavedMs)}>as turbo reports it<//>
    </dl>
    <${Card}><${Facts} rows=${facts} /><//>`;
}

/** The tasks of a run, those that were built first. Each leads to its page and its artifact. */
function RanTasks({ rows, scope }) {
  const isBuilt = ({ outcome }) => outcome === "built" || outcome === "failed";
  const sorted = [...rows].sort((one, other) => isBuilt(other) - isBuilt(one) || other.ms - one.ms);
  return html`<${Card} title="Tasks"><${Table} label="Tasks" rows=${sorted} id=${taskName} columns=${[
    { title: "Task", cell: (row) => html`<${TaskName} of=${row} scope=${scope} />` },
    { title: "Result", cell: ({ outcome }) => (outcome === "failed" ? html`<${Tag} kind="bad">Failed<//>` : outcome === "built" ? html`<${Tag} kind="warn">Built<//>` : OUTCOMES[outcome]) },
    { title: "Built or saved", number: true, cell: ({ ms }) => durationText(ms) },
    { title: "Artifact", cell: ({ hash }) => hash && html`<${Hash} of=${hash} scope=${scope} />` },
  ]} /><//>`;
}
