// The settings of a team, or of the user's own cache.

const CACHING = [
  ["enabled", "On", "Builds read and store artifacts."],
  ["paused", "Paused", "Builds run without the cache for now."],
  ["disabled", "Off", "Builds run without the cache."],
];

function Settings({ scope, reload }) {
  const usage = useLoad(usagePath(scope, 1));
  const [open, setOpen] = useState(null);
  const { team } = scope;
  return html`<${Head} title="Settings" /><div class="sides">
    ${team && scope.manages && html`<${TeamName} scope=${scope} reload=${reload} />`}
    ${scope.owns && html`<${Loaded} of=${usage} show=${(data) => html`<${Caching} scope=${scope} status=${data.status} reload=${usage.reload} />`} />`}
    ${team && scope.manages && html`<${RunInputs} team=${team} reload=${reload} /><${BuildHour} team=${team} reload=${reload} />`}
    <${Card} title="Storage">
      <p>Artifacts are kept for ${own.retentionDays} days after their last use. ${isTrue(own.evicts)
        ? "If the quota is full, the artifacts that were used longest ago are deleted."
        : "If the quota is full, nothing more is stored."}</p>
      <p class="soft">The operator of ${own.product} sets the quota${team ? ` with: larder teams set ${team.slug} --quota 200GB` : ""}.</p>
    <//>
    ${team && html`<${Card} title="Leave or delete">
      <p>To leave the team, open <a href=${`${scope.path}/members`}>Members</a>.</p>
      ${scope.owns && html`<p>Deleting the team deletes its artifacts, keys, members and usage figures.</p>
        <div><${Button} kind="danger" onClick=${() => setOpen("delete")}>Delete the team<//></div>`}
    <//>`}</div>
    ${open && html`<${DeleteTeam} team=${team} close=${() => setOpen(null)} />`}`;
}

function TeamName({ scope, reload }) {
  const { team } = scope;
  const act = async ({ name, slug }) => {
    const { data, problem } = await call("PATCH", `/v2/teams/${team.id}`, { name, slug });
    if (problem) return problem;
    announce("Saved.");
    await reload();
    go(`/console/t/${data.slug}/settings`, { replaces: true });
  };
  const free = async (slug) => {
    const { problem } = await call("PATCH", `/v2/teams/${team.id}`, { formerSlugs: team.formerSlugs.filter((one) => one !== slug) });
    announce(problem ?? "The slug is given up.");
    reload();
  };
  return html`<${Card} title="Team">
    <${Form} action="Save" busy="Saving …" kind="second" act=${act}>
      <${Field} label="Name" name="name" required maxlength="100" autocomplete="off" defaultValue=${team.name} />
      <${Field} label="Slug" name="slug" required maxlength="48" autocomplete="off" autocapitalize="none" spellcheck="false" defaultValue=${team.slug} hint="Builds name the team by its slug: TURBO_TEAM. Its former slugs keep working." />
    <//>
    ${team.formerSlugs.length > 0 && html`<h3>Former slugs</h3>
      <ul class="plain">${team.formerSlugs.map((slug) => html`<li key=${slug}><code>${slug}</code> <${Button} kind="second small" aria-label=${`Give up the slug ${slug}`} onClick=${() => free(slug)}>Give up<//></li>`)}</ul>
      <p class="soft">Builds that still use a slug that you give up do not find this team. No other team can take it.</p>`}
  <//>`;
}

function Caching({ scope, status, reload }) {
  const save = async (wanted) => {
    const { problem } = await call("PUT", `/v1/artifacts/status?${scope.query}`, { status: wanted });
    if (!problem) reload();
    return problem;
  };
  return html`<${Card} title="Caching">
    <${Choice} legend="Caching is" chosen=${status === "over_limit" ? "enabled" : status} choices=${CACHING} save=${save} saved="Saved. The change applies to the next request." />
  <//>`;
}

const RUN_INPUTS = [
  ["off", "Off", "Larder keeps no names, and compares no runs."],
  ["names", "On", "Shows which files and packages changed, and which variables were added or removed. Larder keeps names, and digests of files."],
  ["values", "On, with a code of each value", "Also shows which variable changed, if CI sends turbo's digests (inputs: values). No one can compute a value from its code."],
];

/** Whether Larder explains misses, and what it keeps of the inputs of runs for that. */
function RunInputs({ team, reload }) {
  const save = async (runInputs) => {
    const { problem } = await call("PATCH", `/v2/teams/${team.id}`, { runInputs });
    if (!problem) reload();
    return problem;
  };
  return html`<${Card} title="Explain misses">
    <p>Larder compares runs that <code>larder run</code> and CI report, and says which file, variable or package made tasks miss. Members see the names.</p>
    <${Choice} legend="Explain misses" chosen=${team.runInputs} choices=${RUN_INPUTS} save=${save} saved="Saved. The change applies to the next report." />
  <//>`;
}

/** The price of an hour of builds, with which the overview shows the saved time as money. */
function BuildHour({ team, reload }) {
  const act = async ({ dollars }) => {
    const buildHourCents = Math.round(Number(dollars) * 100);
    const { problem } = await call("PATCH", `/v2/teams/${team.id}`, { buildHourCents });
    if (problem) return { problem, field: "dollars" };
    announce("Saved.");
    reload();
  };
  return html`<${Card} title="Price of builds">
    <${Form} action="Save" busy="Saving …" kind="second" act=${act}>
      <${Field} label="An hour of a machine that builds, in US dollars" name="dollars" type="number" required min="0" max="1000" step="0.01" defaultValue=${(team.buildHourCents / 100).toFixed(2)}
        hint="The overview shows the saved time as money. $0.008 a minute is $0.48. 0 shows no money." />
    <//>
  <//>`;
}

function DeleteTeam({ team, close }) {
  const act = async () => {
    const { problem } = await call("DELETE", `/v1/teams/${team.id}`);
    if (problem) return problem;
    location.assign("/console");
  };
  return html`<${Confirm} title="Delete the team?" word=${team.slug} action="Delete the team" busy="Deleting the team …" act=${act} close=${close}>
    <p>Builds of <strong><${Name} of=${team.name} /></strong> run without the cache from now on. Its artifacts, keys, invitations and usage figures are deleted. You cannot undo this.</p>
  <//>`;
}

