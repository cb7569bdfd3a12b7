// The protection of a team: what is trusted to write what everyone reads, and what its caches hold.

const SCAN_LENGTH = 100;

const PEOPLE = [
  ["own", "Write to a cache of their own", "Only they read it."],
  ["read", "Only read", "Builds on their computers store nothing."],
];

const OVERWRITES = [
  ["keep", "The first upload stays", "Other uploads of the same hash are not stored."],
  ["replace", "The last upload replaces it", "Every trusted job can replace what others read."],
];

const UNSIGNED = [
  ["accept", "Accept artifacts without a signature", ""],
  ["refuse", "Refuse artifacts without a signature", "Builds need remoteCache.signature in turbo.json."],
];

function Protection({ scope }) {
  const { team } = scope;
  const protection = useLoad(`/v1/teams/${team.id}/protection`);
  const rules = useLoad(`/v1/teams/${team.id}/rules`);
  const [open, setOpen] = useState(null);
  const close = (hasChanged) => {
    setOpen(null);
    if (!hasChanged) return;
    protection.reload();
    rules.reload();
  };
  const named = { ...scope, isProtected: protection.data?.protected };
  return html`<${Head} title="Protection" />
    <${Loaded} of=${protection} show=${(data) => html`<${State} scope=${scope} protection=${data} open=${setOpen} />`} />
    <${Loaded} of=${rules} show=${(data) => html`<${Rules} scope=${scope} rules=${data.rules} open=${setOpen} />`} />
    ${protection.data && html`<${ProtectionSettings} key=${JSON.stringify(protection.data)} scope=${scope} protection=${protection.data} reload=${protection.reload} />`}
    ${scope.manages && html`<${Caches} scope=${scope} />`}
    ${open && html`<${open.what} scope=${named} rule=${open.rule} close=${close} />`}`;
}

function State({ scope, protection, open }) {
  const trusts = html`<p class="soft">Trusted are the jobs that a rule below trusts, and keys that are created as trusted.</p>`;
  if (!protection.protected)
    return html`<${Card} title="Not protected">
      <p>Every member, key and CI job of this team writes what everyone reads. A pull request can store a wrong output that your main branch restores.</p>
      ${trusts}
      ${scope.manages
        ? html`<${Button} kind="primary" onClick=${() => open({ what: Protect })}>Protect the team<//>`
        : html`<p class="soft">An owner or admin can protect the team.</p>`}
    <//>`;
  return html`<${Card} title="Protected">
    <p>Only trusted jobs and keys write what everyone reads. All others write to caches of their own.</p>
    ${protection.trustedFrom !== null && html`<p class="soft">The shared cache shows what was stored since ${formats.moment.format(protection.trustedFrom)}.</p>`}
    ${protection.keepStored && html`<p class="soft">The shared cache also shows what was stored before the team was protected.</p>`}
    ${trusts}
    ${scope.owns
      ? html`<${Button} kind="danger" onClick=${() => open({ what: Unprotect })}>Turn protection off<//>`
      : html`<p class="soft">Only owners can turn protection off.</p>`}
  <//>`;
}

function Protect({ scope, close }) {
  const act = async ({ stored }) => {
    const { problem } = await call("PUT", `/v1/teams/${scope.team.id}/protection`, { protected: true, ...(stored === "keep" && { keepStored: true }) });
    if (problem) return problem;
    announce("The team is protected.");
    close(true);
  };
  return html`<${Dialog} title="Protect the team" close=${() => close()}>
    <p>From then on, only trusted jobs and keys write what everyone reads. Without one, the shared cache stays empty.</p>
    <${Form} action="Protect the team" busy="Protecting the team …" cancel=${() => close()} act=${act}>
      ${scope.owns && html`<${Choices} legend="What is stored now is" name="stored" chosen="hide" choices=${[
        ["hide", "Hidden", "Trusted jobs build everything once."],
        ["keep", "Still shown", "Only if you are sure that no one has stored a wrong output."],
      ]} />`}
    <//>
  <//>`;
}

function Unprotect({ scope, close }) {
  const act = async () => {
    const { problem } = await call("PUT", `/v1/teams/${scope.team.id}/protection`, { protected: false });
    if (problem) return problem;
    announce("The team is not protected anymore.");
    close(true);
  };
  return html`<${Confirm} title="Turn protection off?" word=${scope.team.slug} action="Turn protection off" busy="Turning it off …" act=${act} close=${() => close()}>
    <p>Every member, key and CI job then writes what everyone reads. Everything that was hidden in the shared cache is shown again.</p>
  <//>`;
}

function ProtectionSettings({ scope, protection, reload }) {
  const isOn = protection.protected;
  if (!scope.owns)
    return html`<${Card} title="Settings">
      <dl class="facts">${[
        isOn && ["Builds on members' computers", PEOPLE, protection.people],
        isOn && ["Two uploads of one hash", OVERWRITES, protection.overwrites],
        ["Signatures", UNSIGNED, protection.unsigned],
      ].filter(Boolean).map(([name, choices, chosen]) => html`<div><dt>${name}</dt><dd>${choices.find(([value]) => value === chosen)?.[1] ?? chosen}</dd></div>`)}</dl>
      <p class="soft">Only owners can change this.</p>
    <//>`;
  const act = async (fields) => {
    const { problem } = await call("PUT", `/v1/teams/${scope.team.id}/protection`, { protected: isOn, ...fields });
    if (problem) return problem;
    announce("Saved. The change applies to the next request.");
    reload();
  };
  return html`<${Card} title="Settings">
    <${Form} action="Save" busy="Saving …" act=${act}>
      ${isOn && html`<${Choices} legend="Builds on members' computers" name="people" chosen=${protection.people} choices=${PEOPLE} />
        <${Choices} legend="Two uploads of one hash" name="overwrites" chosen=${protection.overwrites} choices=${OVERWRITES} />`}
      <${Choices} legend="Signatures" name="unsigned" chosen=${protection.unsigned} choices=${UNSIGNED} />
    <//>
  <//>`;
}

/** The caches of a team and its contested artifacts. The list of artifacts has both, a page at a time. */
function Caches({ scope }) {
  const [scan, setScan] = useState(null);
  const [open, setOpen] = useState(null);
  const names = useLoad(`names ${scope.path}`, () => loadNames(scope));
  const isShown = useRef(true);
  useEffect(() => () => (isShown.current = false), []);
  const start = async () => {
    const found = { count: 0, scopes: new Map(), contested: [], isDone: false, problem: null };
    let cursor = "";
    do {
      const { data, problem } = await call("GET", `/v1/artifacts?${scope.query}&scope=all&limit=${SCAN_LENGTH}${cursor}`);
      if (!isShown.current) return;
      if (problem) return setScan({ ...found, problem });
      for (const artifact of data.artifacts) addTo(found, artifact);
      cursor = data.pagination.next === null ? "" : `&cursor=${data.pagination.next}`;
      setScan({ ...found, isDone: cursor === "" });
    } while (cursor);
  };
  const close = (hasChanged) => {
    setOpen(null);
    if (hasChanged) start();
  };
  const isRunning = scan !== null && !scan.isDone && !scan.problem;
  const action = html`<${Button} aria-disabled=${isRunning} onClick=${() => isRunning || start()}>${scan ? "Check again" : "Check the artifacts"}<//>`;
  const known = names.data ?? new Map();
  return html`<${Card} title="Caches and contested artifacts" actions=${action}>
      ${scan === null && html`<p class="soft">This reads the list of all artifacts: how much each cache has, and where two builds have stored different outputs for one hash.</p>`}
      ${scan && html`<p role="status" class="soft">${countText(scan.count, "artifact", "artifacts")} ${scan.isDone ? "checked." : "checked so far …"}</p>`}
      ${scan?.problem && html`<${Problem} text=${scan.problem} again=${start} />`}
      ${scan && scan.count > 0 && html`<h3>Caches</h3><${ScopesTable} scan=${scan} names=${known} open=${setOpen} />`}
      ${scan?.isDone && html`<h3>Contested artifacts</h3>
        ${scan.contested.length === 0
          ? html`<p>None. No other output was uploaded for a hash that the team keeps.</p>`
          : html`<p class="soft">Another output was uploaded for these, and the first one stays. A task that is not deterministic does this, and so does someone who tampers with a build. If the first one is wrong, delete it and build again.</p>
              <${ContestedTable} rows=${scan.contested} names=${known} open=${setOpen} />`}`}
    <//>
    ${open && html`<${open.what} scope=${scope} row=${open.row} names=${known} close=${close} />`}`;
}

function addTo(found, artifact) {
  found.count += 1;
  const of = found.scopes.get(artifact.scope) ?? { scope: artifact.scope, artifacts: 0, bytes: 0, latest: 0 };
  of.artifacts += 1;
  of.bytes += artifact.size;
  of.latest = Math.max(of.latest, artifact.createdAt);
  found.scopes.set(artifact.scope, of);
  if (artifact.contested) found.contested.push(artifact);
}

/** The name of a cache: `shared`, or the key, the user or the CI job that writes it. */
function CacheName({ of, names }) {
  if (of === "shared") return html`<strong>Shared</strong>`;
  const [kind, id] = [of[0], of.slice(1)];
  if (kind === "c") return html`CI job <code>${id.slice(0, 8)}…</code>`;
  const name = names.get(id);
  return html`${kind === "k" ? "Key" : "User"} ${name ? html`<${Name} of=${name} />` : html`<code>${id.slice(0, 8)}…</code>`}`;
}

const ScopesTable = ({ scan, names, open }) => html`<${Table} label="Caches" rows=${[...scan.scopes.values()].sort((one, other) => other.bytes - one.bytes)}
  id=${({ scope }) => scope} columns=${[
    { title: "Written by", cell: (row) => html`<${CacheName} of=${row.scope} names=${names} />` },
    { title: "Artifacts", number: true, cell: (row) => formats.number.format(row.artifacts) },
    { title: "Size", number: true, cell: (row) => bytesText(row.bytes) },
    { title: "Last stored", cell: (row) => html`<${Time} at=${row.latest} />` },
    {
      title: "",
      cell: (row) => row.scope !== "shared" && html`<${Button} kind="second small" aria-label=${`Delete the cache ${row.scope}`} onClick=${() => open({ what: DeleteCache, row })}>Delete<//>`,
    },
  ]} />`;

const ContestedTable = ({ rows, names, open }) => html`<${Table} label="Contested artifacts" rows=${rows} id=${({ hash, scope }) => `${hash} ${scope}`} columns=${[
  { title: "Hash", cell: (row) => html`<code>${row.hash}</code>` },
  { title: "Written by", cell: (row) => html`<${Writer} row=${row} names=${names} />` },
  { title: "Other upload by", cell: (row) => html`<${Writer} row=${{ writer: row.contested.writer, ci: null }} names=${names} />` },
  { title: "Last tried", cell: (row) => html`<${Time} at=${row.contested.at} />` },
  { title: "", cell: (row) => html`<${Button} kind="second small" aria-label=${`Delete ${row.hash}`} onClick=${() => open({ what: DeleteArtifact, row })}>Delete<//>` },
]} />`;

function DeleteCache({ scope, row, names, close }) {
  const act = async () => {
    const { problem } = await call("DELETE", `/v1/artifacts?${scope.query}&scope=${row.scope}`);
    if (problem) return problem;
    announce("The cache is being deleted. This can take some minutes.");
    close(true);
  };
  return html`<${Confirm} title="Delete this cache?" action="Delete the cache" busy="Deleting …" act=${act} close=${() => close()}>
    <p>This deletes ${countText(row.artifacts, "artifact", "artifacts")} that only this writer reads: <${CacheName} of=${row.scope} names=${names} />. The shared cache does not change.</p>
  <//>`;
}
