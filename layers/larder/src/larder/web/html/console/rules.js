// The rules by which CI jobs get tokens of a team, as cards and dialogs of the view of its protection.

/** CI systems. `repository` says that its name is enough; `refs` and `events` that tokens have them. */
const PROVIDERS = {
  github: { name: "GitHub Actions", repository: true, refs: true, events: true },
  gitlab: { name: "GitLab CI", repository: true, refs: true, events: true },
  circleci: { name: "CircleCI", refs: true, pinned: "oidc.circleci.com/project-id" },
  buildkite: { name: "Buildkite", refs: true, events: true, pinned: "pipeline_id and organization_id" },
  bitbucket: { name: "Bitbucket Pipelines", refs: true, pinned: "repositoryUuid" },
  azure: { name: "Azure Pipelines", refs: true, pinned: "def_id, prj_id and org_id" },
  jenkins: { name: "Jenkins", pinned: "a claim that only these jobs have" },
  generic: { name: "Another CI", pinned: "a claim that only these jobs have" },
};

const OTHER_JOBS = { scope: "A cache of their own", read: "Read only", refuse: "No token" };

/** Other issuers are shown, because rules of the same name can differ in them. */
const HOSTED = ["https://token.actions.githubusercontent.com", "https://gitlab.com", "https://agent.buildkite.com"];

const RULE_STATES = {
  pending: ["warn", "pending"],
  expired: ["bad", "expired"],
  disabled: ["bad", "off"],
};

/** What to paste into the CI of a provider, line by line: the page is sent without the indentation of its script. */
function tokenLines(provider, team) {
  const variables = `{TURBO_API: "${home}", TURBO_TEAMID: ${team.id}}`;
  const build = "python3 .github/larder.pyz run -- npx turbo run build";
  const lines = {
    github: [
      "permissions: {contents: read, id-token: write}",
      `env: ${variables}`,
      "steps:",
      "  - uses: actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd",
      "  - run: npm ci",
      `  - run: ${build}`,
    ],
    gitlab: [
      "build:",
      `  variables: ${variables}`,
      '  id_tokens: {LARDER_ID_TOKEN: {aud: "$TURBO_API"}}',
      `  script: [npm ci, ${build}]`,
    ],
  }[provider] ?? [
    `export TURBO_API=${home} TURBO_TEAMID=${team.id}`,
    "# In place of print-id-token: the command of your CI, with the audience $TURBO_API",
    `LARDER_ID_TOKEN=$(print-id-token) ${build}`,
  ];
  return lines.join("\n");
}

const pinnedText = ({ pinned }) => Object.entries(pinned).map(([name, value]) => `${name}=${value}`).sort().join(", ");
const shortRef = (ref) => ref.replace(/^refs\/heads\//, "");

/** The jobs that a rule is for. */
const RuleJobs = ({ rule }) => html`${PROVIDERS[rule.provider]?.name ?? rule.provider}${rule.repository && html`: <${Name} of=${rule.repository} />`}${!HOSTED.includes(rule.issuer) && html`<br /><span class="soft"><${Name} of=${rule.issuer} /></span>`}`;

const ruleActions = (rule, open) => [
  ["Lines for CI", () => open({ what: RuleLines, rule })],
  ["Change", () => open({ what: ChangeRule, rule })],
  ["Delete", () => open({ what: DeleteRule, rule }), "loses"],
];

function Rules({ scope, rules, open }) {
  const columns = [
    { title: "Name", cell: (rule) => html`<strong><a href=${keyPath(scope, rule.id)}><${Name} of=${rule.name} /></a></strong> <${RuleState} rule=${rule} />` },
    { title: "Jobs of", cell: (rule) => html`<${RuleJobs} rule=${rule} />` },
    { title: "Trusted", cell: (rule) => html`<${Name} of=${trustedText(rule.trusted)} />` },
    { title: "Others get", cell: ({ others }) => OTHER_JOBS[others] ?? others },
    { title: "Made by", cell: ({ createdBy }) => html`<${Name} of=${makerText(createdBy)} />` },
    { title: "Last token", cell: ({ lastExchangeAt }) => html`<${Time} at=${lastExchangeAt} />` },
    scope.manages && {
      title: "",
      cell: (rule) => html`<${Menu} label=${rule.name} items=${ruleActions(rule, open)} />`,
    },
  ].filter(Boolean);
  const actions = scope.manages && html`<div class="buttons">
    ${rules.length > 0 && html`<${Button} onClick=${() => open({ what: ExplainRules })}>Test a job<//>`}
    <${Button} kind="primary" onClick=${() => open({ what: CreateRule })}>Add a rule<//>
  </div>`;
  return html`<${Card} title="Rules for CI jobs" actions=${actions}>
    <${SameJobs} rules=${rules} />
    ${rules.length === 0
      ? html`<${Empty} title="No rules yet"><p>With a rule, jobs of a repository use this cache without a stored secret. The rule says which of them are trusted.</p><//>`
      : html`<${Table} label="Rules for CI jobs" columns=${columns} rows=${rules} id=${({ id }) => id} />`}
  <//>`;
}

/** Who made a rule. Null is unknown, and without an id it is the operator. */
function makerText(maker) {
  if (!maker) return "unknown";
  const { uid, email, role } = maker;
  if (!uid) return "the operator";
  return (email ?? "a deleted user") + (role === "OWNER" || role === "ADMIN" ? "" : role ? `, now ${ROLES[role]}` : ", who left");
}

/** Whether a job has to name one of two rules, because both accept it: `accept_same_jobs` in trust/matching.py. */
function acceptSameJobs(one, other) {
  if (one.provider !== other.provider || one.issuer !== other.issuer || one.audience !== other.audience) return false;
  if (one.state === "active" && other.state === "active") return pinnedText(one) === pinnedText(other);
  // With one id, a rule is for all repositories of an owner.
  return one.repository === other.repository && [one, other].every(({ pinned }) => Object.keys(pinned).length !== 1);
}

function SameJobs({ rules }) {
  const used = rules.filter(({ state }) => state === "active" || state === "pending");
  const same = used.filter((one) => used.some((other) => other !== one && acceptSameJobs(one, other)));
  if (same.length === 0) return null;
  return html`<p class="notice warning" role="status">More than one rule accepts the same jobs: <${Name} of=${same.map(({ name }) => name).join(", ")} />. Such a job gets no token until it names one of them, with the input rule of the action or the variable LARDER_RULE.</p>`;
}

function RuleState({ rule }) {
  const [kind, text] = RULE_STATES[rule.state] ?? [];
  return text ? html`<${Tag} kind=${kind}>${text}<//>` : null;
}

function trustedText({ refs, events, claims, requireProtectedRef }) {
  const named = Object.entries(claims).map(([name, values]) => `${name}: ${values.join(" or ")}`);
  return [
    refs.length > 0 && `${refs.map(shortRef).join(", ")}${requireProtectedRef ? " (protected)" : ""}`,
    events.length > 0 && events.join(", "),
    ...named,
  ].filter(Boolean).join("; ");
}

const wordsOf = (text) => text.split(/[\s,]+/).filter(Boolean);
const refsOf = (text) => wordsOf(text).map((ref) => (ref.startsWith("refs/") ? ref : `refs/heads/${ref}`));

/** The lines `name=value` of a field as pairs. Null if a line is not one. */
function pairsOf(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const pairs = lines.map((line) => [line.slice(0, line.indexOf("=")).trim(), line.slice(line.indexOf("=") + 1).trim()]);
  return lines.every((line) => line.indexOf("=") > 0) ? pairs : null;
}

function claimsOf(pairs) {
  const claims = {};
  for (const [name, value] of pairs) (claims[name] ??= []).push(value);
  return claims;
}

const claimLines = (claims) => Object.entries(claims).flatMap(([name, values]) => values.map((value) => `${name}=${value}`)).join("\n");

const LINES_RULE = "Write one name=value in each line.";

/** What the form says of trusted jobs. With `isNew`, empty fields are left out, for the defaults of the CI. */
function sentTrust(fields, isNew) {
  const given = (value) => (isNew && value.length === 0 ? undefined : value);
  const claims = pairsOf(fields.claims);
  if (claims === null) return null;
  return {
    ...(fields.refs !== undefined && { refs: given(refsOf(fields.refs)) }),
    ...(fields.events !== undefined && { events: given(wordsOf(fields.events)), replaceEvents: given(wordsOf(fields.replaceEvents)) }),
    ...(fields.protectedRef !== undefined && fields.protectedRef !== "" && { requireProtectedRef: fields.protectedRef === "yes" }),
    ...((claims.length > 0 || !isNew) && { claims: claimsOf(claims) }),
  };
}

/** Fields that a rule has when it is new and when it changes. */
function TrustFields({ provider, trusted }) {
  const { refs, events } = PROVIDERS[provider];
  return html`${events && html`<${Field} label="Trusted events" name="events" autocomplete="off" spellcheck="false" defaultValue=${trusted?.events.join(", ")}
      hint=${trusted ? null : "Empty: those that only members can start, such as push and schedule."} />
    <${Field} label="Events that replace artifacts" name="replaceEvents" autocomplete="off" spellcheck="false" defaultValue=${trusted?.replaceEvents.join(", ")}
      hint="Trusted events whose jobs replace what a protected team keeps, such as runs started by hand." />`}
    ${refs && html`<${Field} label="Branches have to be protected" name="protectedRef">
      ${!trusted && html`<option value="">The default of this CI</option>`}
      <option value="yes" selected=${trusted?.requireProtectedRef}>Yes</option>
      <option value="no" selected=${trusted && !trusted.requireProtectedRef}>No</option>
    <//>`}
    <${Area} label="Claims of trusted jobs" name="claims" defaultValue=${trusted && claimLines(trusted.claims)}
      hint="One name=value in each line, such as environment=production. A job needs one of the values of each name." />`;
}

const LifetimeField = ({ seconds }) => html`<${Field} label="A token is valid for" name="lifetimeSeconds">
  <option value="">${seconds ? `${durationText(seconds * SECOND)}, as now` : "The time that the operator has set"}</option>
  ${[900, 3600, 7200, 21_600].map((value) => html`<option value=${value}>${value / 60} min</option>`)}
<//>`;

const OthersField = ({ chosen }) => html`<${Field} label="Other jobs, such as pull requests, get" name="others">
  ${!chosen && html`<option value="">The default of this CI</option>`}
  ${Object.entries(OTHER_JOBS).map(([value, text]) => html`<option value=${value} selected=${value === chosen}>${text}</option>`)}
<//>`;

const RefsField = ({ trusted }) => html`<${Field} label="Trusted branches" name="refs" required autocomplete="off" autocapitalize="none" spellcheck="false"
  defaultValue=${trusted ? trusted.refs.map(shortRef).join(", ") : "main"} hint="With a comma between them. Tags begin with refs/tags/." />`;

function CreateRule({ scope, close }) {
  const [provider, setProvider] = useState("github");
  const [made, setMade] = useState(null);
  if (made) return html`<${RuleLines} scope=${scope} rule=${made} isNew close=${() => close(true)} />`;
  const { repository, refs, pinned } = PROVIDERS[provider];
  const act = async (fields) => {
    const [pins, trusted] = [pairsOf(fields.pinned), sentTrust(fields, true)];
    if (pins === null) return { problem: LINES_RULE, field: "pinned" };
    if (trusted === null) return { problem: LINES_RULE, field: "claims" };
    const texts = ["name", "repository", "issuer", "audience", "others", "scopeClaim"];
    const { data, problem } = await call("POST", `/v1/teams/${scope.team.id}/rules`, {
      provider,
      ...Object.fromEntries(texts.filter((name) => fields[name]?.trim()).map((name) => [name, fields[name].trim()])),
      ...(pins.length > 0 && { pinned: Object.fromEntries(pins) }),
      trusted,
      ...(fields.lifetimeSeconds && { lifetimeSeconds: Number(fields.lifetimeSeconds) }),
      protect: fields.protect !== "no",
    });
    if (problem) return problem;
    setMade(data);
  };
  return html`<${Dialog} title="Add a rule" close=${() => close()}>
    <${Form} action="Add the rule" busy="Adding the rule …" cancel=${() => close()} act=${act}>
      <${Field} label="CI" value=${provider} onChange=${({ target }) => setProvider(target.value)}>
        ${Object.entries(PROVIDERS).map(([value, { name }]) => html`<option value=${value}>${name}</option>`)}
      <//>
      ${repository && html`<${Field} label="Repository" name="repository" autocomplete="off" autocapitalize="none" spellcheck="false"
        hint="Such as acme/web. The first job within seven days fixes the ids of the repository." />`}
      ${!repository && html`<${Area} label="Claims that identify the jobs" name="pinned" required hint=${`One name=value in each line: ${pinned}.`} />`}
      ${refs && html`<${RefsField} />`}
      <${OthersField} />
      ${!scope.isProtected && html`<${Field} label="Protect the team now" name="protect"
        hint="Only trusted jobs and keys then write what everyone reads. What is stored now is hidden.">
        <option value="yes">Yes</option>
        <option value="no">No</option>
      <//>`}
      <details><summary>More</summary>
        <${Field} label="Name" name="name" maxlength="100" autocomplete="off" />
        ${repository && html`<${Area} label="Claims that identify the jobs" name="pinned" hint="Fixes the ids at once, for example repository_id=74 and repository_owner_id=65." />`}
        <${TrustFields} key=${provider} provider=${provider} />
        <${LifetimeField} />
        <${Field} label="Issuer" name="issuer" inputmode="url" autocomplete="off" spellcheck="false" hint="If it is not that of the hosted CI. The operator has to accept it." />
        <${Field} label="Audience" name="audience" autocomplete="off" spellcheck="false" hint=${`If it is not ${home}.`} />
        ${!refs && html`<${Field} label="Claim that tells jobs apart" name="scopeClaim" autocomplete="off" spellcheck="false" hint="Jobs that differ in it get caches of their own." />`}
      </details>
    <//>
  <//>`;
}

/** Change a rule, or turn it on or off. Each change ends its tokens. */
function ChangeRule({ scope, rule, close }) {
  const path = `/v1/teams/${scope.team.id}/rules/${rule.id}`;
  const act = async (fields) => {
    const trusted = sentTrust(fields, false);
    if (trusted === null) return { problem: LINES_RULE, field: "claims" };
    const { problem } = await call("PATCH", path, {
      name: fields.name,
      others: fields.others,
      trusted,
      enabled: fields.enabled === "yes",
      ...(fields.lifetimeSeconds && { lifetimeSeconds: Number(fields.lifetimeSeconds) }),
    });
    if (problem) return problem;
    announce("Saved. The tokens that it has given are ended.");
    close(true);
  };
  const pins = pinnedText(rule);
  return html`<${Dialog} title="Change the rule" close=${() => close()}>
    <p class="soft">${PROVIDERS[rule.provider]?.name}${rule.repository && html`: <${Name} of=${rule.repository} />`}. Each change ends the tokens of running jobs. They continue without the cache.</p>
    ${pins && html`<p class="soft">Only jobs with these claims: <${Name} of=${pins} />.</p>`}
    <${Form} action="Save" busy="Saving …" cancel=${() => close()} act=${act}>
      <${Field} label="Name" name="name" required maxlength="100" autocomplete="off" defaultValue=${rule.name} />
      <${Field} label="The rule is" name="enabled">
        <option value="yes" selected=${rule.enabled}>On</option>
        <option value="no" selected=${!rule.enabled}>Off</option>
      <//>
      ${PROVIDERS[rule.provider].refs && html`<${RefsField} trusted=${rule.trusted} />`}
      <${OthersField} chosen=${rule.others} />
      <details><summary>More</summary>
        <${TrustFields} provider=${rule.provider} trusted=${rule.trusted} />
        <${LifetimeField} seconds=${rule.lifetimeSeconds} />
      </details>
    <//>
  <//>`;
}

function DeleteRule({ scope, rule, close }) {
  const act = async () => {
    const { problem } = await call("DELETE", `/v1/teams/${scope.team.id}/rules/${rule.id}`);
    if (problem) return problem;
    announce("The rule is deleted.");
    close(true);
  };
  return html`<${Confirm} title="Delete the rule?" action="Delete the rule" busy="Deleting the rule …" act=${act} close=${() => close()}>
    <p>Jobs that use <strong><${Name} of=${rule.name} /></strong> run without the cache from now on. Last token: <${Time} at=${rule.lastExchangeAt} />.</p>
    <p>What they have stored stays.</p>
  <//>`;
}

function RuleLines({ scope, rule, isNew, close }) {
  return html`<${Dialog} title="Lines for your CI" close=${() => close()}>
    ${isNew && html`<p class="notice" role="status">The rule is added${rule.teamProtected ? ", and the team is protected. Its builds start from an empty cache once" : ""}.</p>`}
    ${!rule.teamProtected && !scope.isProtected && html`<p class="notice warning">The team is not protected, so every job writes what everyone reads.</p>`}
    <p>Once, put <code>larder run</code> into your repository, and commit it. It gets a token for each job, and runs turbo.</p>
    <${Lines} text=${`curl -fsSL --create-dirs -o .github/larder.pyz ${home}/docs/larder.pyz`} />
    <p>Then, in the file of your CI:</p>
    <${Lines} text=${tokenLines(rule.provider, scope.team)} />
    <p class="soft">Or use a <a href=${`${own.docs}/trust`}>step of its own</a>, which also reports why tasks missed on the pull request.</p>
    <div class="end"><${Button} kind="primary" onClick=${() => close()}>Close<//></div>
  <//>`;
}

/** Prints the claims of a token, as docs/trust.md has it. */
const CLAIMS_LINE = "cut -d. -f2 | tr _- /+ | awk '{while (length % 4) $0=$0\"=\"; print}' | base64 -d";

/** Show what each rule says to the claims of a job. */
function ExplainRules({ scope, close }) {
  const [found, setFound] = useState(null);
  const act = async (fields) => {
    let claims = null;
    try {
      claims = JSON.parse(fields.claims);
    } catch {
      // Not JSON: the message below.
    }
    if (typeof claims !== "object" || claims === null || Array.isArray(claims)) return { problem: "Paste a JSON object.", field: "claims" };
    const { data, problem } = await call("POST", `/v1/teams/${scope.team.id}/rules/explain`, { claims });
    if (problem) return problem;
    setFound(data.rules);
  };
  return html`<${Dialog} title="Test a job" close=${() => close()}>
    <${Form} kind="primary" action="Test" busy="Testing …" cancel=${() => close()} act=${act}>
      <${Area} label="Claims of its id token, as JSON" name="claims" required rows="6" hint="Never paste a token. This prints its claims:" />
      <${Lines} text=${CLAIMS_LINE} />
    <//>
    <div role="status">${found?.map((one) => html`<${Explanation} key=${one.rule} one=${one} />`)}</div>
  <//>`;
}

function Explanation({ one }) {
  const [kind, text] = !one.accepted ? ["bad", "no token"] : one.trusted ? ["good", "trusted"] : ["warn", "not trusted"];
  const reasons = [...one.refused, ...one.notTrusted];
  const gets = one.permissions.map((permission) => permission.replace("artifacts:", "")).join(", ");
  return html`<section>
    <h3><${Name} of=${one.name} /> <${Tag} kind=${kind}>${text}<//></h3>
    ${one.accepted && html`<p>It can ${gets}, in ${one.cacheScope === "shared" ? "the shared cache" : "a cache of its own"}.</p>`}
    ${reasons.length > 0 && html`<ul>${reasons.map((reason) => html`<li><${Name} of=${reason} /></li>`)}</ul>`}
  </section>`;
}
