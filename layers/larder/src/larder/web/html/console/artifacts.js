// The stored artifacts, by hash: find one, see who wrote it, and delete it or all of its writer.

const PAGE_LENGTH = 20;

async function loadNames({ team, manages }) {
  const [keys, members] = await Promise.all([
    team ? loadAll(`/v1/teams/${team.id}/keys`, "keys", "offset") : loadOwnKeys(),
    team ? loadMembers(team) : { data: [] },
  ]);
  const named = [...(members.data ?? []).map(({ uid, name }) => [uid, name]), ...(keys.data ?? []).map(({ id, name, start }) => [id, name ?? start])];
  return { data: new Map(named), problem: null };
}

function Artifacts({ scope }) {
  // The cursors of the pages up to this one. The first page has none.
  const [cursors, setCursors] = useState([""]);
  const [hash, setHash] = useState("");
  const cursor = cursors.at(-1);
  const path = hash
    ? `/v1/artifacts/${encodeURIComponent(hash)}?${scope.query}`
    : `/v1/artifacts?${scope.query}&limit=${PAGE_LENGTH}${cursor && `&cursor=${cursor}`}`;
  const loaded = useLoad(path);
  const names = useLoad(`names ${scope.path}`, () => loadNames(scope));
  const [open, setOpen] = useState(null);
  const close = (hasChanged) => {
    setOpen(null);
    if (hasChanged) loaded.reload();
  };
  const rowsOf = (data) => (hash ? [data] : data.artifacts);
  return html`<${Head} title="Artifacts" />
    <${Card}>
      <${Form} class="in-a-row" role="search" kind="second" action="Find" busy="Find" act=${(fields) => setHash(fields.hash.trim())}>
        <${Field} label="Hash" name="hash" type="search" autocomplete="off" autocapitalize="none" spellcheck="false" hint="All of it. Leave it empty to list all artifacts." />
      <//>
    <//>
    <${Card}>
      ${loaded.status === 404
        ? html`<${Empty} title="No such artifact"><p>It was never stored, has expired or was deleted.</p><//>`
        : html`<${Loaded} of=${loaded} lines=${8} show=${(data) => {
            const rows = rowsOf(data);
            const next = data.pagination?.next ?? null;
            if (rows.length === 0 && cursors.length === 1 && next === null)
              return html`<${Empty} title="No artifacts yet"><p>What builds store appears here. Artifacts are kept for ${own.retentionDays} days.</p><//>`;
            return html`<${ArtifactsTable} rows=${rows} names=${names.data ?? new Map()} open=${setOpen} />
              ${!hash && html`<div class="end">
                ${cursors.length > 1 && html`<${Button} onClick=${() => setCursors(cursors.slice(0, -1))}>Back<//>`}
                ${next !== null && html`<${Button} onClick=${() => setCursors([...cursors, next])}>More<//>`}
              </div>`}`;
          }} />`}
    <//>
    ${open && html`<${open.what} scope=${scope} row=${open.row} names=${names.data ?? new Map()} close=${close} />`}`;
}

/** The name of the key or the user that wrote an artifact. Sessions have none. */
const writerName = ({ writer }, names) => writer && (names.get(writer.id) ?? names.get(writer.userId));

function Writer({ row, names }) {
  if (row.writer === null) return html`<span class="soft">Unknown</span>`;
  const name = writerName(row, names);
  return html`${name ? html`<${Name} of=${name} />` : html`<span class="soft">${row.writer.id.slice(0, 8)}…</span>`}
    ${row.ci && html` <${Tag}><${Name} of=${ciText(row.ci)} /><//>`}`;
}

function ArtifactsTable({ rows, names, open }) {
  const evicts = isTrue(own.evicts);
  return html`<${Table} label="Artifacts" rows=${rows} id=${({ hash }) => hash} columns=${[
    { title: "Hash", cell: (row) => html`<code>${row.hash}</code>` },
    { title: "Size", number: true, cell: ({ size }) => bytesText(size) },
    { title: "Task took", number: true, cell: ({ taskDurationMs }) => (taskDurationMs === null ? "–" : durationText(taskDurationMs)) },
    { title: "Written by", cell: (row) => html`<${Writer} row=${row} names=${names} />` },
    { title: "Stored", cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
    evicts && { title: "Last used", cell: ({ lastUsedAt }) => html`<${Time} at=${lastUsedAt} none="–" />` },
    { title: "Expires", cell: ({ expiresAt }) => html`<${Time} at=${expiresAt} />` },
    {
      title: "",
      cell: (row) => html`<div class="buttons">
        <${Button} kind="second small" aria-label=${`Details of ${row.hash}`} onClick=${() => open({ what: ArtifactDetails, row })}>Details<//>
        <${Button} kind="second small" aria-label=${`Delete ${row.hash}`} onClick=${() => open({ what: DeleteArtifact, row })}>Delete<//>
      </div>`,
    },
  ].filter(Boolean)} />`;
}

function ArtifactDetails({ scope, row, names, close }) {
  const [isPurge, setPurge] = useState(false);
  if (isPurge) return html`<${DeleteWritten} scope=${scope} row=${row} names=${names} close=${close} />`;
  const facts = [
    ["Hash", html`<code>${row.hash}</code>`],
    ["Written by", html`<${Writer} row=${row} names=${names} />`],
    ["Commit", row.sha && html`<code>${visible(row.sha)}</code>`],
    ["Uncommitted changes", row.dirtyHash && html`<code>${visible(row.dirtyHash)}</code>`],
    ["Signature", row.tag && html`<code>${visible(row.tag)}</code>`],
    ["Stored", formats.moment.format(row.createdAt)],
    ["Expires", formats.moment.format(row.expiresAt)],
  ];
  return html`<${Dialog} title="Artifact" close=${() => close()}>
    <dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value || html`<span class="soft">Not known</span>`}</dd></div>`)}</dl>
    <div class="end">
      ${row.writer && html`<${Button} onClick=${() => setPurge(true)}>Delete all from this writer<//>`}
      <${Button} kind="primary" onClick=${() => close()}>Close<//>
    </div>
  <//>`;
}

function DeleteArtifact({ scope, row, close }) {
  const act = async () => {
    const { problem } = await call("DELETE", `/v1/artifacts/${row.hash}?${scope.query}`);
    if (problem) return problem;
    announce("The artifact is deleted.");
    close(true);
  };
  return html`<${Confirm} title="Delete the artifact?" action="Delete the artifact" busy="Deleting …" act=${act} close=${() => close()}>
    <p><code>${row.hash}</code>, ${bytesText(row.size)}. The next build of this task runs again.</p>
  <//>`;
}

function DeleteWritten({ scope, row, names, close }) {
  const act = async () => {
    const { problem } = await call("DELETE", `/v1/artifacts?${scope.query}&writer=${row.writer.id}`);
    if (problem) return problem;
    announce("The artifacts are being deleted. This can take some minutes.");
    close(true);
  };
  return html`<${Confirm} title="Delete all from this writer?" word=${scope.word} action="Delete the artifacts" busy="Deleting …" act=${act} close=${() => close()}>
    <p>This deletes every artifact that <strong><${Name} of=${writerName(row, names) ?? row.writer.id} /></strong> has stored until now. It takes some minutes, and continues if you leave this page.</p>
    <p>Turn off or delete the key first, so that it stores nothing more.</p>
  <//>`;
}

