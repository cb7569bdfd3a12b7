// Delete many artifacts, of a writer, of a time, or all, and see how far that is.

const REMOVAL_SECONDS = 3;
const SLOW_REMOVAL_SECONDS = 15;
const ROUNDS_BEFORE_SLOW = 20;

const targetOf = ({ writer, scope, from, until, all }) => ({ writer, scope, from, until, all });

/** What a removal deletes, as text. */
function RemovalTarget({ of: { writer, scope, from, until, all }, names }) {
  if (all) return "all artifacts";
  if (from !== undefined) return `what was stored from ${formats.moment.format(from)} to ${formats.moment.format(until)}`;
  if (scope) return html`what is in the scope ${visible(scope)}`;
  const name = names.get(writer);
  return html`what ${name ? html`<${Name} of=${name} />` : html`<span class="soft">${visible(writer.slice(0, 8))}…</span>`} stored`;
}

/** The target of a removal that an entry of the audit names. */
function targetOfSubject(subject) {
  const [, from, until] = subject.match(/^(\d{14})-(\d{14})$/) ?? [];
  if (from) return { from: Number(from), until: Number(until) };
  if (subject === "all") return { all: true };
  return subject.length === 32 || subject.startsWith("rule_") ? { writer: subject } : { scope: subject };
}

/** The removals of the last day. Asks for their progress while they run and the page is visible. */
function Removals({ scope, names, removed }) {
  const loaded = useLoad(`/v1/artifacts/removals?${scope.query}&limit=100`);
  const removals = [...(loaded.data?.removals ?? [])].sort((one, other) => other.askedAt - one.askedAt);
  const isRunning = removals.some(({ passedAt }) => passedAt === null);
  const round = useRef(0);
  const wasRunning = useRef(false);
  useEffect(() => {
    if (wasRunning.current && !isRunning) removed();
    wasRunning.current = isRunning;
    if (!isRunning) return undefined;
    const seconds = round.current++ < ROUNDS_BEFORE_SLOW ? REMOVAL_SECONDS : SLOW_REMOVAL_SECONDS;
    const timer = setInterval(() => document.visibilityState === "visible" && loaded.reload(), seconds * SECOND);
    return () => clearInterval(timer);
  }, [loaded.data]);
  if (removals.length === 0) return null;
  return html`<${Card} title="Deletions"><ul class="plain">
    ${removals.map((removal) => html`<li key=${JSON.stringify(targetOf(removal))}>
      ${removal.passedAt === null
        ? html`<span role="status">Deleting <${RemovalTarget} of=${removal} names=${names} />: ${partText(removal)} so far. It continues if you leave this page.</span>`
        : html`Deleted <${RemovalTarget} of=${removal} names=${names} />: ${partText(removal)}, <${Time} at=${removal.passedAt} />. Uploads that were in progress are deleted when they arrive.`}
    </li>`)}
  </ul><//>`;
}

/** The time of an input, which is in the user's zone. NaN without one. */
const momentOf = (text) => new Date(text).getTime();

/** A moment for an input: 2026-11-21T14:05 in the user's zone. */
function inputMoment(ms) {
  const at = new Date(ms);
  return new Date(ms - at.getTimezoneOffset() * MINUTE).toISOString().slice(0, 16);
}

const MOST_COUNTED = 2_000;

/** What was stored in a time, in every scope: `{ artifacts, sizeBytes, isAll }`. */
async function countStored(scope, from, until) {
  const found = { artifacts: 0, sizeBytes: 0, isAll: true };
  for (let cursor = ""; cursor !== null; ) {
    if (found.artifacts >= MOST_COUNTED) return { data: { ...found, isAll: false }, problem: null };
    const { data, problem } = await call("GET", `/v1/artifacts?${scope.query}&from=${from}&until=${until}&order=uploaded&limit=100${scope.team ? "&scope=all&hidden=true" : ""}${cursor && `&cursor=${cursor}`}`);
    if (problem) return { data: null, problem };
    found.artifacts += data.artifacts.length;
    for (const { size } of data.artifacts) found.sizeBytes += size;
    cursor = data.pagination.next;
  }
  return { data: found, problem: null };
}

/** First the time, then what it holds, and then the word. */
function DeleteStoredThen({ scope, close }) {
  const [counted, setCounted] = useState(null);
  const count = async ({ from, until }) => {
    const asked = [momentOf(from), momentOf(until)];
    if (!(asked[0] < asked[1])) return { problem: "The end must be after the beginning.", field: "until" };
    const { data, problem } = await countStored(scope, ...asked);
    if (problem) return problem;
    setCounted({ ...data, asked });
  };
  const act = async () => {
    const [from, until] = counted.asked;
    const { problem } = await call("DELETE", `/v1/artifacts?${scope.query}&from=${from}&until=${until}`);
    if (problem) return problem;
    announce("The artifacts are being deleted. This can take some minutes.");
    close(true);
  };
  if (counted === null)
    return html`<${Dialog} title="Delete the artifacts of a time?" close=${() => close()}>
      <p>First choose the time. Nothing is deleted yet.</p>
      <${Form} kind="second" action="Count the artifacts" busy="Counting …" act=${count} cancel=${() => close()}>
        <${Field} label="Stored from" name="from" type="datetime-local" required defaultValue=${inputMoment(Date.now() - HOUR)} />
        <${Field} label="Until" name="until" type="datetime-local" required defaultValue=${inputMoment(Date.now() + MINUTE)} />
      <//>
    <//>`;
  const [from, until] = counted.asked.map((moment) => formats.moment.format(moment));
  return html`<${Confirm} title="Delete these artifacts?" word=${scope.word} action="Delete the artifacts" busy="Deleting …" act=${act} close=${() => close()}>
    <p><strong>${counted.isAll ? "" : "At least "}${partText(counted)}</strong>, stored from ${from} to ${until}, in every scope. Builds run these tasks again. What is stored after your request stays.</p>
  <//>`;
}

function DeleteEverything({ scope, user, close }) {
  const act = async () => {
    const { problem } = await call("DELETE", `/v1/artifacts?${scope.query}&all=${scope.team?.slug ?? user.id}`);
    if (problem) return problem;
    announce("The artifacts are being deleted. This can take some minutes.");
    close(true);
  };
  return html`<${Confirm} title="Delete all artifacts?" word=${scope.word} action="Delete all artifacts" busy="Deleting …" act=${act} close=${() => close()}>
    <p>This deletes everything that is stored now, in every scope. The next builds run all tasks again. Keys, members and usage figures stay.</p>
  <//>`;
}
