// Requests with the session of the user. The endpoints of `/v1` to `/v3` take no cookie, so the token is sent to them in
// a header. It is only in this variable, never in the page, its address or the browser's storage.

let token = "";

/** Send a request. Without a valid session, continue at the sign-in page. */
async function call(method, path, body) {
  const headers = path.startsWith("/v") ? { authorization: `Bearer ${token}` } : {};
  const reply = await request(method, path, body, headers);
  if (reply.status === 401) signIn();
  return reply;
}

function signIn() {
  location.assign(`/sign-in?next=${encodeURIComponent(location.pathname)}`);
}

/** Load the session and its user: `{ data: { session, user }, problem }`. `data` is null if no one is signed in. */
async function loadSession() {
  const reply = await request("GET", "/api/auth/get-session");
  if (reply.problem) return reply;
  if (reply.data === null) signIn();
  else token = reply.data.session.token;
  return reply;
}

/** Load a list that comes in pages: `{ data: [...], problem }`. */
async function loadAll(path, items, parameter) {
  const found = [];
  let next = "";
  do {
    const { data, problem } = await call("GET", `${path}?limit=100${next}`);
    if (problem) return { data: null, problem };
    found.push(...data[items]);
    next = data.pagination.next === null ? "" : `&${parameter}=${data.pagination.next}`;
  } while (next);
  return { data: found, problem: null };
}

const loadTeams = () => loadAll("/v2/teams", "teams", "until");

const started = new Map();

/** Start a request that the first view will ask for, so that it does not wait for what the frame needs. */
function loadAhead(path) {
  started.set(path, call("GET", path));
}

let hiddenAt = null;
addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") hiddenAt = Date.now();
});

/** The data of `load`, by default of the path `key`: `{ data, problem, status, code, reload }`. Both are null while it
 * loads. It loads again for another key, and when the page was hidden for a minute. */
function useLoad(key, load = () => call("GET", key)) {
  const [state, setState] = useState({ key: null });
  const [round, setRound] = useState(0);
  const reload = () => setRound((before) => before + 1);
  useEffect(() => {
    let isCurrent = true;
    const reply = started.get(key) ?? load();
    started.delete(key);
    reply.then(({ data, problem, status, code }) => {
      // A failed repetition keeps what is shown.
      if (isCurrent)
        setState((before) => ({ key, problem, status, code, data: problem ? (before.key === key ? before.data : null) : data }));
    });
    return () => (isCurrent = false);
  }, [key, round]);
  useEffect(() => {
    const shown = () => {
      if (document.visibilityState === "visible" && hiddenAt && Date.now() - hiddenAt > MINUTE) reload();
    };
    addEventListener("visibilitychange", shown);
    return () => removeEventListener("visibilitychange", shown);
  }, []);
  return { data: null, problem: null, ...(state.key === key ? state : {}), reload };
}

