// Any page can link here with any address, so this page continues only at pages of the console.
const wanted = query.get("next") ?? "";
setupCode = new URLSearchParams(location.hash.slice(1)).get("setup");
const next = setupCode ? "/console/new-team" : /^\/console(\/[a-z0-9-]+)*$/.test(wanted) ? wanted : "/console";

async function refresh({ moves = true } = {}) {
  const { data, problem } = await request("GET", "/api/auth/get-session");
  if (problem) fail(problem, { moves });
  else if (data === null && setupCode) await showSignIn("You are the first one here. This account needs no link in an email. Then create your team.", { moves, isNew: true, to: () => next });
  else if (data === null) await showSignIn("See what the cache does, and manage keys and teams.", { moves, to: () => next });
  else location.replace(next);
}

refresh({ moves: false });
