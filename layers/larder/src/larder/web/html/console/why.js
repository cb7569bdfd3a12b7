// Why tasks of a run missed: its causes against a baseline.

const CHOSEN_WORDS = { ancestor: "the nearest commit", hashes: "the run with the most equal hashes", newest: "the newest run", asked: "the run that you chose" };
const NOTE_WORDS = {
  not_cached: "cache is false, so never cached",
  turbo_version: "another version of turbo, with the same hashes",
  not_hashed: "differs, and turbo does not hash it",
  passed_variable: "another value, which turbo does not hash",
};
const NAMES_SHOWN = 20;
const MOST_OTHERS = 30;

const tasksIn = ({ directCount, below }) => directCount + below;

const BASELINES = [
  ["", "The closest run"],
  ["main", "The newest run of main"],
  ["ci", "The newest run in CI"],
  ["last", "The last run of this key or job"],
];
const MISSING_WORDS = {
  inputs_off: "Explain misses is off. Owners and admins can turn it on in the settings.",
  no_inputs: "The report of this run has no inputs: Explain misses was off, CI sends none (inputs: off), or you may not see them.",
  cache_unused: `The run did not use the cache, so nothing of it is a miss. ${UNUSED_ADVICE}`,
  no_baseline: "There was no earlier run to compare with. The next one has this one.",
  no_time: "The comparison took too long.",
  too_many: "The team has reported too many inputs in this hour.",
  failed: "The comparison failed.",
};

/** Why tasks of a run missed, as it was found when the run was reported, or against another run, next to its tasks. */
function WhyMissed({ run, path, scope }) {
  const [against, setAgainst] = useState("");
  const earlier = useLoad(`/v1/runs?${scope.query}&from=${dayBefore(MOST_DAYS_OF_RUNS - 1)}&limit=100&before=${encodeURIComponent(runPlace(run))}`);
  const others = (earlier.data?.runs ?? []).filter(({ client }) => client === run.client).slice(0, MOST_OTHERS);
  const compared = useLoad(`${path}&against=${against}`, () => (against ? call("GET", `${path}&against=${against}`) : Promise.resolve({ data: run, problem: null })));
  const copy = () => navigator.clipboard.writeText(markdownOf(compared.data.causes)).then(() => announce("Copied."), () => announce("Your browser did not copy it."));
  const actions = html`<${Field} label="Compare with" value=${against} onChange=${({ target }) => setAgainst(target.value)}>
      ${BASELINES.map(([value, text]) => html`<option value=${value}>${text}</option>`)}
      ${others.length > 0 && html`<optgroup label="An earlier run">${others.map((one) => html`<option value=${one.id}>${otherText(one)}</option>`)}</optgroup>`}
    <//>
    ${compared.data?.causes && navigator.clipboard && html`<${Button} kind="second small" onClick=${copy}>Copy as Markdown<//>`}`;
  return html`<${Card} title="Why tasks missed" actions=${actions}>
      <${Loaded} of=${compared} show=${({ causes, missing }) => (causes ? html`<${Causes} of=${causes} scope=${scope} />` : html`<p class="soft">${MISSING_WORDS[missing] ?? missing}</p>`)} />
    <//>
    ${compared.data && html`<${SideBySide} run=${run} other=${others.find(({ id }) => id === against) ?? (against ? compared.data.causes?.baseline : null)} scope=${scope} />`}
    ${compared.data?.causes && html`<${SameHash} of=${compared.data.causes} scope=${scope} /><${NewAndNotes} of=${compared.data.causes} scope=${scope} />`}`;
}

/** A run in a list to choose from: 2 hours ago, main, Fix the login. */
const otherText = ({ startedAt, branch, title, sha }) => [relativeText(startedAt), branch, title ?? sha?.slice(0, 8)].filter(Boolean).map(visible).join(", ");

/** Where a page of the runs before this one begins. */
const runPlace = ({ startedAt, id }) => `${startedAt.toString(16).padStart(12, "0")}#${id}`;

/** The causes as bars of build time. Those that no commit made are striped. */
function Causes({ of, scope }) {
  const { baseline, causes } = of;
  const most = Math.max(1, ...causes.map(({ buildMs }) => buildMs));
  return html`<p>Compared with ${baseline.startedAt === null ? "a run" : html`<a href=${runPath(scope, baseline)}>the run of <${Time} at=${baseline.startedAt} /></a>`}${baseline.branch && html` of <${Name} of=${baseline.branch} />`}${baseline.sha && html` at <code>${visible(baseline.sha.slice(0, 8))}</code>`}${CHOSEN_WORDS[baseline.chosen] && `, ${CHOSEN_WORDS[baseline.chosen]}`}: ${of.changed === 0 ? "every hash is the same." : `${countText(of.changed, "task has", "tasks have")} another hash, of ${formats.number.format(of.tasks)}.`}</p>
    <ol class="plain causes">${causes.map((cause) => html`<li key=${`${cause.kind} ${cause.subject} ${cause.task}`}>
      <div><${CauseText} of=${cause} /> <${ClassTag} of=${cause.class} /></div>
      <div class="bar-of"><i class=${cause.class === "setup" ? "striped" : ""} style=${{ width: `${Math.max(0.5, (100 * cause.buildMs) / most)}%` }}></i></div>
      <div class="soft">${countText(tasksIn(cause), "task", "tasks")}${cause.buildMs > 0 && `, ${durationText(cause.buildMs)}`}${cause.alone < tasksIn(cause) && ` (${formats.number.format(cause.alone)} only because of this)`}. <${Advice} text=${ADVICE[cause.advice]} /></div>
      <details><summary>Tasks</summary>
        <p>${cause.direct.map((id, index) => html`${index > 0 && ", "}<${TaskOfId} key=${id} id=${id} scope=${scope} />`)}${cause.directCount > cause.direct.length && ` and ${formats.number.format(cause.directCount - cause.direct.length)} more`}${cause.below > 0 && `; then ${formats.number.format(cause.below)} that depend on them`}</p>
      </details>
    </li>`)}</ol>
    ${!of.complete && html`<p class="soft">There are more causes.</p>`}`;
}

/** Why an upload was refused, by the last piece of evidence. */
const REFUSALS = {
  read_only: "the credential only reads",
  signature_required: "the team requires signatures",
  quota_full: "the quota is full",
  scopes_full: "the space for own scopes is full",
  storage_full: "the deployment is full",
};

function reasonText(reason, evidence) {
  const [words] = REASONS[reason] ?? REASONS.unknown;
  const refusal = reason === "refused" && REFUSALS[evidence.at(-1)];
  return refusal ? `${words}, because ${refusal}` : words;
}

const SameHash = ({ of: { sameHash, sameHashCount }, scope }) =>
  sameHash.length > 0 && html`<${Card} title="Same hash, not restored"><${SameHashTable} rows=${sameHash} scope=${scope} />
    ${sameHashCount > sameHash.length && html`<p class="soft">These are ${formats.number.format(sameHash.length)} of ${formats.number.format(sameHashCount)} tasks.</p>`}
  <//>`;

const SameHashTable = ({ rows, scope }) => html`<${Table} label="Same hash, not restored" rows=${rows} id=${({ task }) => task} columns=${[
  { title: "Task", cell: ({ task }) => html`<${TaskOfId} id=${task} scope=${scope} />` },
  { title: "Hash", cell: ({ hash }) => html`<${Hash} of=${hash} scope=${scope} />` },
  { title: "Why", cell: ({ reason, certain, evidence }) => `${reasonText(reason, evidence)}${reason && reason !== "unknown" && !certain ? " (probably)" : ""}` },
  { title: "When", cell: ({ at }) => html`<${Time} at=${at} none="–" />` },
]} />`;

function NewAndNotes({ of, scope }) {
  if (of.newCount === 0 && of.notes.length === 0) return null;
  const more = (count, list) => count > list.length && ` and ${formats.number.format(count - list.length)} more`;
  const shown = of.new.slice(0, NAMES_SHOWN);
  return html`<${Card} title="Also">
    ${of.newCount > 0 && html`<p>The baseline does not have ${shown.map((id, index) => html`${index > 0 && ", "}<${TaskOfId} key=${id} id=${id} scope=${scope} />`)}${more(of.newCount, shown)}</p>`}
    <ul>${of.notes.map(({ note, subject, count, tasks }) => html`<li>
      ${subject && html`<${Name} of=${subject} />: `}${NOTE_WORDS[note] ?? note}${!subject && html`: <${Name} of=${tasks.slice(0, NAMES_SHOWN).join(", ")} />${more(count, tasks.slice(0, NAMES_SHOWN))}`}
    </li>`)}</ul>
  <//>`;
}

/** A name in Markdown, where it is no markup and no mention. */
const codeSpan = (name) => TICK + (visible(name ?? "").replaceAll(TICK, "'").replaceAll("|", "\\|") || " ") + TICK;

/** The explanation for a comment or a chat. */
function markdownOf({ baseline, causes, sameHash, tasks, changed }) {
  const at = baseline.sha ? codeSpan(baseline.sha.slice(0, 8)) : "a run";
  const lines = [`**${own.product}**: ${changed} of ${tasks} tasks have another hash than at ${at}${baseline.branch ? ` of ${codeSpan(baseline.branch)}` : ""}.`, ""];
  if (causes.length > 0) lines.push("| Cause | Tasks | Build time | Class |", "|---|---:|---:|---|");
  for (const cause of causes) {
    const subject = [causeSubject(cause, codeSpan)].flat().join("");
    lines.push(`| ${CAUSE_TITLES[cause.kind] ?? cause.kind}: ${subject} ${cause.how} | ${tasksIn(cause)} | ${durationText(cause.buildMs)} | ${cause.class ?? ""} |`);
  }
  for (const { task, reason, evidence } of sameHash) lines.push("", `${codeSpan(task)}: same hash, ${reasonText(reason, evidence)}.`);
  return lines.join("\n");
}
