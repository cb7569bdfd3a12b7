// The frame of the console: which view an address shows, and the navigation between them.

/** `view` is null if only the page with all scripts has it. Views without a tab of their own are in another, `tab`. Tabs
 * are in groups: builds, access, settings. Each group after the first begins with `isApart`. */
const VIEWS = [
  { path: "", title: "Overview", view: Overview },
  { path: "artifacts", title: "Artifacts", view: typeof Artifacts === "function" ? Artifacts : null, isFor: ({ manages }) => manages },
  { path: "runs", title: "Runs", view: typeof RunsView === "function" ? RunsView : null },
  { path: "keys", title: "Keys", view: Keys, isApart: true },
  { path: "members", title: "Members", view: Members, isFor: ({ team }) => team !== null },
  { path: "protection", title: "Protection", view: typeof Protection === "function" ? Protection : null, isFor: ({ team }) => team !== null },
  { path: "activity", title: "Activity", view: typeof Activity === "function" ? Activity : null, isFor: ({ manages }) => manages },
  { path: "settings", title: "Settings", view: Settings, isApart: true },
  { path: "run", title: "Run", tab: "runs", view: typeof OneRun === "function" ? OneRun : null },
  { path: "task", title: "Task", tab: "runs", view: typeof OneTask === "function" ? OneTask : null },
  { path: "key", title: "Key", tab: "keys", view: typeof OneKey === "function" ? OneKey : null },
  { path: "rule", title: "Rule", tab: "protection", view: typeof OneRule === "function" ? OneRule : null, isFor: ({ team }) => team !== null },
];

const viewsOf = (scope) => VIEWS.filter(({ isFor }) => !isFor || isFor(scope));

/** What a view shows the cache of: a team, with what the user's role allows, or the user's own cache. `word` has to be
 * typed before everything in it is deleted. */
function scopeOf(team, user) {
  if (team === null)
    return { team, path: "/console/me", query: "teamId=", manages: true, owns: true, writes: true, word: user.email };
  const { role } = team.membership;
  return {
    team,
    path: `/console/t/${team.slug}`,
    query: `slug=${team.slug}`,
    role,
    manages: role === "OWNER" || role === "ADMIN",
    owns: role === "OWNER",
    writes: role !== "VIEWER",
    word: team.slug,
  };
}

/** Whether this page has all scripts. Otherwise, links to the views of the others load the page that has them. */
const hasAll = typeof Account === "function";

const QUIET_FRAMES = 3;
const LONGEST_WAIT = 2 * SECOND;

let showPath = () => {};

/** Show another view. Its address goes into the browser's history. */
function go(path, { replaces = false } = {}) {
  const { place, view } = partsOf(path);
  if (!hasAll && (place === "account" || VIEWS.some((one) => one.path === view && one.view === null))) return location.assign(`${path}#main`);
  if (path !== location.pathname + location.search) history[replaces ? "replaceState" : "pushState"](null, "", path);
  showPath(path);
}

addEventListener("popstate", () => showPath(location.pathname + location.search));
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  if (!/^\/console(\/|$)/.test(link.getAttribute("href"))) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});

/** The team and the view that a path names: `/console/t/web/keys`. */
function partsOf(path) {
  const [, , place = "", ...rest] = path.replace(/\/?(\?.*)?$/, "").split("/");
  if (place === "t") return { place, slug: rest[0], view: rest[1] ?? "" };
  return { place, view: rest[0] ?? "" };
}

function Console() {
  const [path, setPath] = useState(location.pathname + location.search);
  showPath = setPath;
  const [state, setState] = useState({ user: null, problem: null });
  const [asked, setAsked] = useState(null);
  askPassword = () => new Promise((answer) => setAsked({ answer }));
  const answer = (isDone) => {
    asked.answer(isDone);
    setAsked(null);
  };
  const load = async () => {
    const { data, problem } = await loadConsole();
    setState((before) => ({ ...before, ...data, problem }));
  };
  useEffect(() => {
    load();
  }, []);
  const { user, session, operator, teams, accessUntil, problem } = state;
  if (user === null)
    return html`<main class="wide page"><h1>Console</h1>${problem ? html`<${Problem} text=${problem} again=${load} />` : html`<${Loading} />`}</main>`;
  return html`<${Frame} path=${path} user=${user} session=${session} operator=${operator} teams=${teams} until=${accessUntil} reload=${load} />
    ${asked && html`<${Dialog} title="Confirm that it is you" close=${() => answer(false)}>
      <${ConfirmIdentity} user=${user} session=${session} cancel=${() => answer(false)} done=${async () => {
        await load();
        answer(true);
      }} />
    <//>`}`;
}

function Frame({ path, teams, until, ...shared }) {
  const { user } = shared;
  const { place, slug, view } = partsOf(path);
  useEffect(() => {
    if (place !== "") return;
    go(teams.length ? `/console/t/${teams[0].slug}` : "/console/me", { replaces: true });
  }, [place]);
  const team = place === "t" ? (teams.find((one) => one.slug === slug) ?? teams.find((one) => one.formerSlugs.includes(slug))) : null;
  const scope = team === undefined || (place !== "t" && place !== "me") ? null : scopeOf(team, user);
  const shown = scope && viewsOf(scope).find((one) => one.path === view);
  const other = { account: hasAll && [Account, "Your account"], "new-team": [NewTeam, "Create a team"] }[view === "" ? place : ""];
  const [View, title] = shown ? [shown.view, shown.title] : (other ?? [NotFound, "Page not found"]);
  // Pages of no team keep the tabs of the team before.
  const last = useRef(teams[0]?.id);
  if (scope) last.current = scope.team?.id;
  const around = scope ?? (other ? scopeOf(teams.find(({ id }) => id === last.current) ?? null, user) : null);
  const isFirst = useRef(true);
  useEffect(() => {
    if (place === "") return;
    document.title = [title, scope && (team ? visible(team.name) : "Your own cache"), own.product].filter(Boolean).join(" · ");
    document.querySelector(".tabs [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
    // With `#main`, another page of the console led here.
    if (!isFirst.current || location.hash === "#main") {
      history.replaceState(null, "", path);
      scrollTo(0, 0);
      focusHeading();
    }
    isFirst.current = false;
  }, [path, title]);
  if (place === "") return html`<main class="wide page"><${Loading} /></main>`;
  return html`<a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <${Bar} scope=${around} place=${place} teams=${teams} user=${user} tab=${shown && (shown.tab ?? view)} />
    <${Appearing} key=${`${place} ${team?.id} ${view} ${path.split("?")[1]}`}>
      <${KeysEnd} user=${user} until=${until} />
      <${View} view=${view} scope=${scope} ...${shared} />
    <//>
    <p id="announced" class="announced" role="status"></p>`;
}

/** A view, of which only the title shows until what it loads first is there, so that nothing moves. A slow reply does not
 * hide the others. */
function Appearing({ children }) {
  const [isThere, setThere] = useState(false);
  useEffect(() => {
    const begun = Date.now();
    let frames = 0;
    // What has loaded is drawn in one frame, and can load more after the next one.
    const look = () => {
      frames = loading > 0 ? 0 : frames + 1;
      if (frames > QUIET_FRAMES || Date.now() - begun > LONGEST_WAIT) setThere(true);
      else frame = requestAnimationFrame(look);
    };
    let frame = requestAnimationFrame(look);
    return () => cancelAnimationFrame(frame);
  }, []);
  return html`<main id="main" class=${`wide page ${isThere ? "" : "appearing"}`}>
    ${!isThere && html`<div class="over"><${Loading} lines=${8} /></div>`}
    ${children}
  </main>`;
}

/** Call `open` for the keys of the search. */
function useSearchKeys(open) {
  useEffect(() => {
    const pressed = (event) => {
      const isTyping = /^(input|textarea|select)$/i.test(event.target.tagName) || document.querySelector("dialog[open]");
      const isSearch = event.key === "/" ? !isTyping && !event.ctrlKey && !event.metaKey : event.key === "k" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog[open]");
      if (!isSearch) return;
      event.preventDefault();
      open();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

function Bar({ scope, place, teams, user, tab }) {
  const choose = ({ target }) => go(target.value);
  const [isSearching, setSearching] = useState(false);
  useSearchKeys(() => setSearching(true));
  return html`<header class="bar"><div class="wide">
    <div class="top">
      <a class="brand" href="/console" aria-label=${own.product}>
        <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true" focusable="false"><rect width="32" height="32" rx="8" class="jar" /><path d="M10 7h12v4H10zM9 12.500h14a2 2 0 0 1 1.500 2V23a3 3 0 0 1-3 3h-11a3 3 0 0 1-3-3v-8.500a2 2 0 0 1 1.500-2z" class="glass" /><path d="M11 17h10v4H11z" class="jar" /></svg>
        <span>${own.product}</span>
      </a>
      <select aria-label="Cache" value=${scope?.path ?? ""} onChange=${choose}>
        ${!scope && html`<option value="" disabled>Choose a team</option>`}
        ${teams.map((team) => html`<option value=${`/console/t/${team.slug}`}>${visible(team.name)}</option>`)}
        <option value="/console/me">Your own cache</option>
        ${isTrue(own.createsTeams) && html`<option value="/console/new-team">Create a team …</option>`}
      </select>
      ${scope && html`<button type="button" class="search link" onClick=${() => setSearching(true)} aria-keyshortcuts="/ Control+K Meta+K"><svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false"><path d="M2 7a5 5 0 1 0 10 0a5 5 0 1 0 -10 0M11 11l4 4" /></svg><span>Search</span></button>`}
      <button type="button" class="help link" popovertarget="help">Help</button>
      <div popover="auto" id="help" role="group" aria-label="Help">
        <a href=${own.docs}>Documentation</a>
        <a href=${`${own.docs}/troubleshooting`}>Troubleshooting</a>
        <span class="soft"><kbd>/</kbd> or <kbd>Ctrl K</kbd> searches</span>
        <span class="soft">${own.version}</span>
      </div>
      <a class="account" href="/console/account" aria-current=${place === "account" ? "page" : null}><${Name} of=${user.name} /></a>
    </div>
    ${scope && html`<nav class="tabs" aria-label="Views"><ul>
      ${viewsOf(scope).filter((one) => !one.tab).map((one) => html`<li key=${one.path}>
        <a class=${one.isApart ? "apart" : ""} href=${one.path ? `${scope.path}/${one.path}` : scope.path} aria-current=${one.path === tab ? "page" : null}>${one.title}</a>
      </li>`)}
    </ul></nav>`}
  </div>${isSearching && scope && html`<${Search} scope=${scope} close=${() => setSearching(false)} />`}</header>`;
}

function skip(event) {
  event.preventDefault();
  focusHeading();
}

const NotFound = ({ scope, view }) => html`<${Head} title="Page not found" />
  <${Card}><p>${scope?.team && VIEWS.some(({ path }) => path === view)
    ? `Your role, ${ROLES[scope.role]}, does not show this.`
    : "There is no such page, or you are not a member of this team. An owner or admin of the team can invite you."}</p>
  <p><a class="primary" href="/console">Open the overview</a></p><//>`;

const root = document.getElementById("console");
root.replaceChildren();
render(html`<${Console} />`, root);
