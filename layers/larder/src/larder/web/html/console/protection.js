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
  const names = useLoad(`names ${scope.path}`, () => loadNames(scope)).data ?? new Map();
  const [open, setOpen] = useState(null);
  const close = (hasChanged) => {
    setOpen(null);
    if (!hasChanged) return;
    protection.reload();
    rules.reload();
  };
  const named = { ...scope, isProtected: protection.data?.protected };
  const isOn = protection.data?.protected;
  return html`<${Head} title="Protection">${protection.data && html`<${Tag} kind=${isOn ? "good" : "warn"}>${isOn ? "Protected" : "Not protected"}<//>`}<//>
    <${Loaded} of=${protection} show=${(data) => html`<${State} scope=${scope} protection=${data} open=${setOpen} />`} />
    <${Loaded} of=${rules} show=${(data) => html`<${Rules} scope=${scope} rules=${data.rules} open=${setOpen} />`} />
    ${protection.data && html`<${ProtectionSettings} key=${JSON.stringify(protection.data)} scope=${scope} protection=${protection.data} reload=${protection.reload} />`}
    ${scope.manages && html`<${Caches} scope=${scope} names=${names} /><${ContestedArtifacts} scope=${scope} names=${names} />`}
    ${open && html`<${open.what} scope=${named} rule=${open.rule} close=${close} />`}`;
}

function State({ scope, protection, open }) {
  const trusts = html`<p class="soft">Rules decide which jobs are trusted. A key is trusted if it was created so.</p>`;
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
    return html`<${Card} title="Writes and signatures">
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
  return html`<${Card} title="Writes and signatures">
    <${Form} action="Save" busy="Saving …" act=${act}>
      ${isOn && html`<${Choices} legend="Builds on members' computers" name="people" chosen=${protection.people} choices=${PEOPLE} />
        <${Choices} legend="Two uploads of one hash" name="overwrites" chosen=${protection.overwrites} choices=${OVERWRITES} />`}
      <${Choices} legend="Signatures" name="unsigned" chosen=${protection.unsigned} choices=${UNSIGNED} />
    <//>
  <//>`;
}

/** The own scopes of the team: caches that only their writer reads. */
function Caches({ scope, names }) {
  const loaded = useLoad(`own scopes of ${scope.team.id}`, () => loadScopes(scope));
  const [open, setOpen] = useState(null);
  const close = (hasChanged) => {
    setOpen(null);
    if (hasChanged) loaded.reload();
  };
  return html`<${Card} title="Own caches">
    <${Loaded} of=${loaded} show=${(rows) =>
      rows.length === 0
        ? html`<p>None. A cache of its own begins with the first upload of a job or key that is not trusted.</p>`
        : html`<${ScopesTable} rows=${rows} names=${names} open=${setOpen} />`} />
    ${open && html`<${DeleteCache} scope=${scope} row=${open} names=${names} close=${close} />`}
  <//>`;
}

/** The contested artifacts of what everyone reads. The list of artifacts has them, a page at a time. */
function ContestedArtifacts({ scope, names }) {
  const [scan, setScan] = useState(null);
  const [open, setOpen] = useState(null);
  const isShown = useRef(true);
  useEffect(() => () => (isShown.current = false), []);
  const start = async () => {
    const found = { count: 0, contested: [], isDone: false, problem: null };
    let cursor = "";
    do {
      const { data, problem } = await call("GET", `/v1/artifacts?${scope.query}&scope=shared&limit=${SCAN_LENGTH}${cursor}`);
      if (!isShown.current) return;
      if (problem) return setScan({ ...found, problem });
      found.count += data.artifacts.length;
      found.contested.push(...data.artifacts.filter(({ contested }) => contested));
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
  return html`<${Card} title="Contested artifacts" actions=${action}>
    <p class="soft">Another output was uploaded for the hash of a contested artifact, and the first one stays. A task that is not deterministic does this, and so does someone who tampers with a build. If the first one is wrong, delete it and build again.</p>
    ${scan && html`<p role="status" class="soft">${countText(scan.count, "artifact", "artifacts")} ${scan.isDone ? "checked." : "checked so far …"}</p>`}
    ${scan?.problem && html`<${Problem} text=${scan.problem} again=${start} />`}
    ${scan?.isDone && scan.contested.length === 0 && html`<p>None is contested.</p>`}
    ${scan?.contested.length > 0 && html`<${ContestedTable} rows=${scan.contested} scope=${scope} names=${names} open=${setOpen} />`}
    ${open && html`<${DeleteArtifact} scope=${scope} row=${open} close=${close} />`}
  <//>`;
}

const SCOPE_KINDS = { ci: "CI job", key: "Key", user: "User" };

/** The name of an own scope: the job, key or user that writes it. */
function scopeText({ id, kind, name, userId }, names) {
  const known = name ?? names.get(id.slice(1)) ?? names.get(userId) ?? `${id.slice(1, 9)}…`;
  return `${SCOPE_KINDS[kind]} ${visible(jobText(known))}`;
}

const ScopesTable = ({ rows, names, open }) => html`<${Table} label="Own caches" rows=${rows} id=${({ id }) => id} columns=${[
  { title: "Written by", cell: (row) => html`<bdi>${scopeText(row, names)}</bdi>` },
  { title: "Artifacts", number: true, cell: ({ artifacts }) => (artifacts === null ? "–" : formats.number.format(artifacts)) },
  { title: "Size", number: true, cell: ({ size }) => (size === null ? "–" : bytesText(size)) },
  { title: "Counted", cell: ({ countedAt }) => html`<${Time} at=${countedAt} none="not yet" />` },
  { title: "Last upload", cell: ({ lastUploadAt }) => html`<${Time} at=${lastUploadAt} none="–" />` },
  { title: "", cell: (row) => html`<${Button} kind="second small" aria-label=${`Delete the cache ${row.id}`} onClick=${() => open(row)}>Delete<//>` },
]} />`;

const ContestedTable = ({ rows, scope, names, open }) => html`<${Table} label="Contested artifacts" rows=${rows} id=${({ hash, scope }) => `${hash} ${scope}`} columns=${[
  { title: "Hash", cell: (row) => html`<${Hash} of=${row.hash} />` },
  { title: "Written by", cell: (row) => html`<${Writer} row=${row} scope=${scope} names=${names} />` },
  { title: "Other upload by", cell: (row) => html`<${Writer} row=${{ writer: row.contested.writer, ci: null }} scope=${scope} names=${names} />` },
  { title: "Last tried", cell: (row) => html`<${Time} at=${row.contested.at} />` },
  { title: "", cell: (row) => html`<${Button} kind="second small" aria-label=${`Delete ${row.hash}`} onClick=${() => open(row)}>Delete<//>` },
]} />`;

function DeleteCache({ scope, row, names, close }) {
  const act = async () => {
    const { problem } = await call("DELETE", `/v1/artifacts?${scope.query}&scope=${row.id}`);
    if (problem) return problem;
    announce("The cache is being deleted. This can take some minutes.");
    close(true);
  };
  return html`<${Confirm} title="Delete this cache?" action="Delete the cache" busy="Deleting …" act=${act} close=${() => close()}>
    <p>This deletes everything in the cache of <strong><bdi>${scopeText(row, names)}</bdi></strong>, which no one else reads. The shared cache does not change.</p>
  <//>`;
}
