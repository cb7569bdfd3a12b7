// How to connect a repository and CI: the overview of a cache that nothing has used.

const PREFLIGHT_LINE = '"remoteCache": { "preflight": true }';

/** What to set for builds in `scope` with `key`, for the CI systems that differ in it. `[name, lines]`. */
function ciLines(scope, key) {
  const variables = { TURBO_API: home, ...(scope.team && { TURBO_TEAM: scope.team.slug }) };
  const write = (line) => Object.entries(variables).map(line).join("\n");
  return [
    ["Shell", `${write(([name, value]) => `export ${name}=${value}`)}\nexport TURBO_TOKEN=${key}`],
    ["GitHub Actions", `env:\n${write(([name, value]) => `  ${name}: ${value}`)}\n  TURBO_TOKEN: \${{ secrets.TURBO_TOKEN }}`],
    ["GitLab CI", `variables:\n${write(([name, value]) => `  ${name}: "${value}"`)}\n# TURBO_TOKEN: a masked variable of the project`],
  ];
}

function CiLines({ scope, secret }) {
  const [chosen, setChosen] = useState("Shell");
  const choices = ciLines(scope, secret);
  return html`<${Field} label="Where it runs" value=${chosen} onChange=${({ target }) => setChosen(target.value)}>
      ${choices.map(([name]) => html`<option value=${name}>${name}</option>`)}
    <//>
    <${Lines} text=${choices.find(([name]) => name === chosen)[1]} />`;
}

function Start({ scope }) {
  const [hasKey, setHasKey] = useState(false);
  const [isCreating, setCreating] = useState(false);
  const link = scope.team ? `turbo link --yes --scope ${scope.team.slug}` : "turbo link";
  return html`<${Card} title="1. On your computer">
      <p>Sign in with turbo. In your repository, choose ${scope.team ? "this team" : "your own cache"}.</p>
      <${Lines} text=${`turbo login --api ${home} --login ${home}\nexport TURBO_API=${home}\n${link}`} />
    <//>
    ${scope.team && html`<${Card} title="2. In CI">
      <p>On GitHub, GitLab and others, jobs need no secret: <a href=${`${scope.path}/protection`}>add a rule</a>, and <code>larder run</code> signs them in by their id token (OIDC).</p>
      <p>Or create a key, and set three variables. Store the key as a secret of your CI.</p>
      <${CiLines} scope=${scope} secret="<the key>" />
      ${!hasKey && html`<${Button} kind="second" onClick=${() => setCreating(true)}>Create a key<//>`}
    <//>`}
    <${Card} title=${`${scope.team ? 3 : 2}. Build twice`}>
      <p>Add this line to <code>turbo.json</code>. Without it, artifacts over 4.5 MB are not cached.</p>
      <${Lines} text=${PREFLIGHT_LINE} />
      <p>The second build comes from this cache, and from nowhere else.</p>
      <${Lines} text="turbo run build --cache=remote:rw" />
      <p role="status" class="soft">Waiting for the first build. The overview then appears here.</p>
    <//>
    ${isCreating && html`<${CreateKey} scope=${scope} close=${(made) => {
      setCreating(false);
      if (made) setHasKey(true);
    }} />`}`;
}

