// The search of the console: to a view, key, member, rule, task, run or artifact from the keyboard.

const MOST_FOUND = 12;
const LEAST_OF_HASH = 4;

/** What is in a view, with words that it does not have: `[view, text, words]`. */
const PLACES = [
  ["settings", "Caching", "status pause on off"],
  ["settings", "Name and slug", "rename"],
  ["settings", "Explain misses", "inputs of runs"],
  ["settings", "Price of builds", "money cost dollars"],
  ["settings", "Delete or leave the team", ""],
  ["members", "Invite a member", "add person"],
  ["keys", "Create a key", "token secret"],
];

/** Everything that can be found by a name, as `{ kind, text, path }`. */
async function loadPlaces(scope) {
  const at = (view) => (view ? `${scope.path}/${view}` : scope.path);
  const shown = viewsOf(scope).filter(({ tab }) => !tab);
  const views = shown.map(({ path, title }) => ({ kind: "View", text: title, path: at(path) }));
  const places = PLACES.filter(([view]) => shown.some(({ path }) => path === view)).map(([view, text, also]) => ({ kind: "Setting", text, also, path: at(view) }));
  const [named, runs] = await Promise.all([loadNamed(scope), call("GET", `/v1/runs?${scope.query}&from=${dayBefore(29)}&limit=100`)]);
  const tasks = (runs.data?.figures.tasks ?? []).map((task) => ({ kind: "Task", text: taskName(task), path: taskPath(scope, task) }));
  const reported = (runs.data?.runs ?? []).map((run) => ({
    kind: "Run",
    text: [run.title, run.branch, run.pull && `PR ${run.pull}`, run.sha?.slice(0, 8), relativeText(run.startedAt)].filter(Boolean).join(", "),
    also: `${run.sha ?? ""} ${run.author ?? ""}`,
    path: `${at("run")}?id=${run.id}&startedAt=${run.startedAt}`,
  }));
  return { data: [...views, ...places, ...named.map((one) => ({ ...one, path: one.kind === "Member" ? at("members") : keyPath(scope, one.id) })), ...tasks, ...reported], problem: null };
}

/** What has every word of the question, in the order of the list. A hash need not be known. */
function found(places, question, scope) {
  const words = question.toLowerCase().split(/\s+/).filter(Boolean);
  const hash = words.length === 1 && words[0].length >= LEAST_OF_HASH && /^[0-9a-f]+$/.test(words[0]) && scope.manages
    ? [{ kind: "Artifact", text: words[0], path: artifactsPath(scope, { prefix: words[0] }) }]
    : [];
  const matches = places.filter(({ text, kind, also = "" }) => words.every((word) => `${kind} ${text} ${also}`.toLowerCase().includes(word)));
  return [...hash, ...matches].slice(0, MOST_FOUND);
}

function Search({ scope, close }) {
  const [question, setQuestion] = useState("");
  const [chosen, setChosen] = useState(0);
  const loaded = useLoad(`search ${scope.path}`, () => loadPlaces(scope));
  const id = useId();
  const rows = loaded.data ? found(loaded.data, question, scope) : [];
  const at = Math.max(0, Math.min(chosen, rows.length - 1));
  const open = (path) => {
    close();
    go(path);
  };
  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setChosen((at + step + rows.length) % Math.max(1, rows.length));
    else if (event.key === "Enter" && rows[at]) open(rows[at].path);
    else return;
    event.preventDefault();
  };
  const type = ({ target }) => {
    setQuestion(target.value);
    setChosen(0);
  };
  return html`<${Dialog} title="Search" close=${close}>
    <input type="search" role="combobox" aria-label="Search for a hash, task, run, key, member or view" aria-expanded=${rows.length > 0} aria-controls=${id} aria-activedescendant=${rows.length > 0 ? `${id}-${at}` : null}
      placeholder="Hash, task, run, key, member …" autocomplete="off" autocapitalize="none" spellcheck="false" autofocus value=${question} onInput=${type} onKeyDown=${move} />
    <ul class="plain found" role="listbox" id=${id} aria-label="Found">
      ${rows.map(({ kind, text, path }, index) => html`<li key=${`${kind} ${path} ${text}`} role="option" id=${`${id}-${index}`} aria-selected=${index === at} onClick=${() => open(path)} onMouseMove=${() => setChosen(index)}>
        <span class="soft">${kind}</span> <${Name} of=${text} />
      </li>`)}
    </ul>
    <p class="soft" role="status">${loaded.data === null ? "Loading …" : rows.length === 0 ? "Nothing has this name." : ""}</p>
  <//>`;
}
