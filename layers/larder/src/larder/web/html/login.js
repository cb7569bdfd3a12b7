const wanted = { redirectUri: query.get("redirect_uri") ?? "", state: query.get("state"), team: query.get("team") };
const day = new Intl.DateTimeFormat("en", { dateStyle: "long" });

async function look({ moves = true } = {}) {
  const asked = new URLSearchParams({ redirect_uri: wanted.redirectUri });
  if (wanted.team !== null) asked.set("team", wanted.team);
  const { status, said, code, problem } = await ask("GET", `/api/auth/turbo-login?${asked}`);
  if (code === "TEAM_NOT_FOUND") {
    // Whoever made the link can have written anything: only what may be the name of a team is shown.
    fill("wanted-team", /^[\w-]{1,80}$/.test(wanted.team) ? wanted.team : "");
    show("not-a-member");
  } else if (status === 400) {
    fill("unusable-problem", problem);
    show("unusable", { moves });
  } else if (problem) {
    fail(problem, { moves });
  } else if (said.user === null) {
    askWho("turbo on this computer waits for you to sign in to your build cache.", { moves });
  } else {
    consider(said);
    show("consent", { moves });
  }
}

function consider({ user, client, token }) {
  fill("consent-email", user.email);
  fill("consent-client", client.replace("http://", ""));
  fill("consent-ends", token.expiresAt === null ? "never by itself" : endOf(new Date(token.expiresAt)));
  const field = element("consent-name-field");
  field.value = token.name;
  field.maxLength = token.maxNameLength;
  // A login for a team names neither another team nor the token, which turbo itself names after the computer.
  element("consent-name").hidden = field.disabled = token.team !== null;
  const choice = element("consent-team-id");
  choice.replaceChildren(...scopesOf(token));
  const chooses = choice.options.length > 1;
  element("consent-team").hidden = !chooses;
  element("consent-scope").hidden = chooses;
  fill("consent-scope-name", choice.options[0].text);
  tellRights();
}

function scopesOf({ team, teams }) {
  if (team !== null) return [scope(team)];
  const everything = new Option(teams.length ? "all my teams, and my own cache" : "my own cache, and teams that I join later", "");
  return [everything, ...teams.map(scope)];
}

function scope({ id, name, slug, writes }) {
  const option = new Option(`the team ${name} (${slug}) only`, id);
  option.dataset.writes = writes;
  return option;
}

function tellRights() {
  const reads = element("consent-team-id").selectedOptions[0].dataset.writes === "false";
  fill("consent-rights", reads ? "read build artifacts, which is what you may do in this team" : "read and write build artifacts, nothing else");
}

function endOf(moment) {
  const days = Math.round((moment - Date.now()) / 86_400_000);
  return days >= 1 ? `on ${day.format(moment)}, in ${days} ${days === 1 ? "day" : "days"}` : "within a day";
}

onSubmit("consent-form", async ({ name, teamId }) => {
  const { redirectUri, state, team } = wanted;
  const scope = team === null ? { name, ...(teamId ? { teamId } : {}) } : { team };
  const { status, said, problem } = await ask("POST", "/api/auth/turbo-login", { redirectUri, state, ...scope });
  if (status === 401) return look();
  if (problem) return problem;
  show("given");
  // In place of this page, so that no way back leads to where the token stood.
  location.replace(said.url);
});

element("consent-team-id").addEventListener("change", tellRights);
onClick("change-account", signOut);
onClick("cancel", () => show("cancelled"));
onClick("back", () => look());
look({ moves: false });
