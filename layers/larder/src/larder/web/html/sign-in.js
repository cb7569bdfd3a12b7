// Any page can link here with any address, so this page continues only at pages of the console.
const wanted = query.get("next") ?? "";
const next = /^\/console(\/[a-z0-9-]+)*$/.test(wanted) ? wanted : "/console";

async function refresh({ moves = true } = {}) {
  const { data, problem } = await request("GET", "/api/auth/get-session");
  if (problem) fail(problem, { moves });
  else if (data === null) await showSignIn("See what the cache does, and manage keys and teams.", { moves, to: () => next });
  else location.replace(next);
}

refresh({ moves: false });
