// Requests with the session of the user. The endpoints of `/v1` to `/v3` take no cookie, so the token is sent to them in
// a header. It is only in this variable, never in the page, its address or the browser's storage.

let token = "";

/** Send a request. Without a valid session, continue at the sign-in page. */
async function call(method, path, body) {
  const headers = path.startsWith("/v") ? { authorization: `Bearer ${token}` } : {};
  const reply = await request(method, path, body, headers);
  if (reply.status === 401) signIn();
  // After the password, the same once more. The view of the sessions asks for it in its place.
  const isStale = /^session_not_fresh$/i.test(reply.code) && method !== "GET";
  return isStale && (await askPassword()) ? call(method, path, body) : reply;
}

/** Ask for the password, and start a fresh session with it: whether that was done. The frame of the console sets it. */
let askPassword;

function signIn() {
  location.assign(`/sign-in?next=${encodeURIComponent(location.pathname)}`);
}

/** Load the session, its user and their teams: `{ data, problem }`. `data` is null if no one is signed in. */
async function loadConsole() {
  const reply = await request("GET", "/api/auth/console");
  if (reply.problem) return reply;
  const { data } = reply;
  if (data === null) {
    signIn();
    return reply;
  }
  token = data.session.token;
  const { next } = data.pagination;
  const more = next === null ? { data: [] } : await loadAll("/v2/teams", "teams", "until", next);
  return more.data ? { ...reply, data: { ...data, teams: [...data.teams, ...more.data] } } : more;
}

/** Load a list that comes in pages, from the page `next` on: `{ data: [...], problem }`. */
async function loadAll(path, items, parameter, next = null) {
  const found = [];
  do {
    const { data, problem } = await call("GET", `${path}?limit=100${next === null ? "" : `&${parameter}=${next}`}`);
    if (problem) return { data: null, problem };
    found.push(...data[items]);
    next = data.pagination.next;
  } while (next !== null);
  return { data: found, problem: null };
}

let hiddenAt = null;
addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") hiddenAt = Date.now();
});

/** How many loads of the view have not ended. */
let loading = 0;

/** The data of `load`, by default of the path `key`: `{ data, problem, status, code, reload }`. Both are null while it
 * loads. It loads again for another key, and when the page was hidden for a minute. */
function useLoad(key, load = () => call("GET", key)) {
  const [state, setState] = useState({ key: null });
  const [round, setRound] = useState(0);
  const reload = () => setRound((before) => before + 1);
  useEffect(() => {
    let isCurrent = true;
    loading += 1;
    load().finally(() => (loading -= 1)).then(({ data, problem, status, code }) => {
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

