const wanted = { redirectUri: query.get("redirect_uri") ?? "", state: query.get("state"), team: query.get("team") };

const day = new Intl.DateTimeFormat(locale(), { dateStyle: "long" });

async function refresh({ moves = true } = {}) {
  const parameters = new URLSearchParams({ redirect_uri: wanted.redirectUri });
  if (wanted.team !== null) parameters.set("team", wanted.team);
  const { status, data, code, problem } = await request("GET", `/api/auth/turbo-login?${parameters}`);
  if (code === "TEAM_NOT_FOUND") {
    // Any page can link here with any text, so show it only if it can be a slug or an id.
    fill("wanted-team", /^[\w-]{1,80}$/.test(wanted.team) ? wanted.team : "");
    show("not-a-member");
  } else if (status === 400) {
    fill("unusable-problem", problem);
    show("unusable", { moves });
  } else if (problem) {
    fail(problem, { moves });
  } else if (data.user === null) {
    await showSignIn("turbo on this computer waits for you to sign in to your build cache.", { moves });
    if (wanted.team !== null) showTeamButtons();
  } else {
    fillConsent(data);
    await askToConfirm(data.user.needsPassword);
    show("consent", { moves });
  }
}

/** A team can have one of several companies. Its members do not have to know which. */
async function showTeamButtons() {
  const { providers, asksAddress } = await ways();
  if (providers.length < 2 && !asksAddress) return;
  for (const place of document.querySelectorAll("[data-providers]")) {
    place.prepend(providerButton("Continue with the company of the team", async () =>
      (await continueWith("sso", { organizationSlug: wanted.team })) ?? "This team has no company of its own. Choose another way to sign in."));
    place.hidden = false;
  }
}

/** Ask a user who signed in some time ago for the password, or to sign in at a provider once more. */
async function askToConfirm(isAsked) {
  const { hasPassword, providers } = isAsked ? await ownWays() : { hasPassword: false, providers: [] };
  element("consent-password").hidden = element("consent-password-field").disabled = !hasPassword;
  element("consent-confirm").hidden = !providers.length;
  element("consent-confirm-hint").hidden = hasPassword;
  element("consent-providers").replaceChildren(...confirmButtons(providers));
  document.querySelector("#consent-form [type=submit]").hidden = isAsked && !hasPassword;
  showProviderProblem(providerError());
}

function fillConsent({ user, client, token }) {
  fill("consent-email", user.email);
  fill("consent-client", client.replace("http://", ""));
  fill("consent-ends", token.expiresAt === null ? "without an end" : endOf(new Date(token.expiresAt)));
  element("consent-username").value = user.email;
  const field = element("consent-name-field");
  field.value = token.name;
  field.maxLength = token.maxNameLength;
  // A login with `--sso-team` has a fixed team and no name: turbo names the token after the computer.
  element("consent-name").hidden = field.disabled = token.team !== null;
  const choice = element("consent-team-id");
  choice.replaceChildren(...scopesOf(token));
  const chooses = choice.options.length > 1;
  element("consent-team").hidden = !chooses;
  element("consent-scope").hidden = chooses;
  fill("consent-scope-name", choice.options[0].text);
  showRights();
}

function scopesOf({ team, teams }) {
  if (team !== null) return [scope(team)];
  const everything = new Option(teams.length ? "all your teams and your own cache" : "your own cache, and teams that you join later", "");
  return [everything, ...teams.map(scope)];
}

function scope({ id, name, slug, writes }) {
  const option = new Option(`only the team ${name} (${slug})`, id);
  option.dataset.writes = writes;
  return option;
}

function showRights() {
  const reads = element("consent-team-id").selectedOptions[0].dataset.writes === "false";
  fill("consent-rights", reads ? "only read build artifacts, because your role in this team cannot write them" : "only read and write build artifacts");
}

function endOf(moment) {
  const days = Math.round((moment - Date.now()) / 86_400_000);
  return days >= 1 ? `until ${day.format(moment)}, ${days} ${days === 1 ? "day" : "days"} from now` : "for less than a day";
}

onSubmit("consent-form", async ({ name, teamId, password }) => {
  const { redirectUri, state, team } = wanted;
  const scope = team === null ? { name, ...(teamId ? { teamId } : {}) } : { team };
  const { status, data, code, problem } = await request("POST", "/api/auth/turbo-login", { redirectUri, state, password, ...scope });
  // The session has ended, or is no longer fresh: the page then asks for the password.
  if (status === 401 || code === "SESSION_NOT_FRESH") return refresh();
  if (problem) return problem;
  show("given");
  // `replace` keeps the token's address out of the browser's history.
  location.replace(data.url);
});

element("consent-team-id").addEventListener("change", showRights);
onClick("not-you", signOut);
onClick("change-account", signOut);
onClick("cancel", () => show("canceled"));
onClick("back", () => refresh());
refresh({ moves: false });
