// A key, or a rule for CI jobs, with its use.

const USE_DAYS = [1, 7, 30];
const NEWEST = 5;

/** What builds with a key or a rule did, and what it has stored. Owners and admins see it. */
function Use({ id, scope, names }) {
  const loaded = useLoad(`use of ${id}`, async () => {
    const replies = await Promise.all(USE_DAYS.map((days) => call("GET", `/v1/usage/by?${scope.query}&what=key&from=${dayBefore(days - 1)}`)));
    const failed = replies.find(({ problem }) => problem);
    return failed ?? { data: replies.map(({ data }, index) => ({ days: USE_DAYS[index], row: data.keys.find((one) => one.id === id) })), problem: null };
  });
  const newest = useLoad(`/v1/artifacts?${scope.query}&${new URLSearchParams({ ...(scope.team && { scope: "all" }), writer: id, order: "uploaded", limit: NEWEST })}`);
  const tasks = useTasks(scope, (newest.data?.artifacts ?? []).map(({ hash }) => hash));
  return html`<${Card} title="Builds">
      <${Loaded} of=${loaded} show=${(rows) => html`<${Table} label="Builds" rows=${rows} id=${({ days }) => days} columns=${[
        { title: "Period", cell: ({ days }) => (days === 1 ? "Today (UTC)" : `Last ${days} days`) },
        { title: "Tasks", number: true, cell: ({ row }) => formats.number.format(row ? tasksOf(row) : 0) },
        { title: "From a cache", number: true, cell: ({ row }) => rateText(row ? hitRate(row) : null) },
        { title: "Time saved", number: true, cell: ({ row }) => (row ? durationText(row.timeSavedMs) : "–") },
      ]} />`} />
    <//>
    <${Card} title="Newest artifacts" actions=${html`<a href=${artifactsPath(scope, { writer: id })}>All of its artifacts</a>`}>
      <${Loaded} of=${newest} show=${({ artifacts }) =>
        artifacts.length === 0
          ? html`<p class="soft">None among the newest artifacts.</p>`
          : html`<${Table} label="Newest artifacts" rows=${artifacts} id=${({ hash, scope }) => `${hash} ${scope}`} columns=${[
              { title: "Hash", cell: ({ hash }) => html`<${Hash} of=${hash} scope=${scope} />` },
              tasks.size > 0 && { title: "Task", cell: ({ hash }) => tasks.has(hash) && html`<${TaskName} of=${tasks.get(hash)} scope=${scope} />` },
              { title: "Size", number: true, cell: ({ size }) => bytesText(size) },
              { title: "Written by", cell: (row) => html`<${Writer} row=${row} scope=${scope} names=${names} />` },
              { title: "Stored", cell: ({ createdAt }) => html`<${Time} at=${createdAt} />` },
            ].filter(Boolean)} />`} />
    <//>`;
}

function OneKey({ scope }) {
  const id = new URLSearchParams(location.search).get("id");
  const keys = useLoad(`keys ${scope.path}`, () => loadKeys(scope));
  const names = useLoad(`names ${scope.path}`, () => loadNames(scope)).data ?? new Map();
  const [open, setOpen] = useState(null);
  const close = (hasChanged) => {
    setOpen(null);
    if (hasChanged) keys.reload();
  };
  const row = keys.data?.find((one) => one.id === id);
  return html`<${Head} title=${row ? html`<${Name} of=${keyName(row)} /> <${KeyState} row=${row} />` : "Key"}>
      ${row && html`<${Menu} label=${keyName(row)} items=${keyActions(row, scope, setOpen, (one) => turnKey(one, keys.reload))} />`}
    <//>
    <${Loaded} of=${keys} show=${() =>
      row
        ? html`<${Card}><${Facts} rows=${[
              ["Last used", html`<${Time} at=${row.lastUsedAt} />`],
              ["Permissions", html`<${Name} of=${permissionsText(row.permissions)} />`],
              ["Today (UTC)", row.bounds && boundsText(row.bounds)],
              ["Begins with", html`<code>${row.start ?? "–"}</code>`],
              ["Owner", scope.team && scope.manages && html`<${KeyOwner} row=${row} />`],
              ["Created", html`<${Time} at=${row.createdAt} />`],
              ["Expires", html`<${Time} at=${row.expiresAt} />`],
            ]} /><//>
            ${scope.manages && html`<${Use} id=${row.id} scope=${scope} names=${names} />`}`
        : html`<${Card}><${Empty} title="No such key"><p>It has expired or was deleted.</p><//><//>`} />
    ${open && html`<${open.what} scope=${scope} row=${open.row} close=${close} />`}`;
}

function OneRule({ scope }) {
  const id = new URLSearchParams(location.search).get("id");
  const rules = useLoad(`/v1/teams/${scope.team.id}/rules`);
  const names = useLoad(`names ${scope.path}`, () => loadNames(scope)).data ?? new Map();
  const [open, setOpen] = useState(null);
  const close = (hasChanged) => {
    setOpen(null);
    if (hasChanged) rules.reload();
  };
  const rule = rules.data?.rules.find((one) => one.id === id);
  return html`<${Head} title=${rule ? html`<${Name} of=${rule.name} /> <${RuleState} rule=${rule} />` : "Rule"}>
      ${rule && scope.manages && html`<${Menu} label=${rule.name} items=${ruleActions(rule, setOpen)} />`}
    <//>
    <${Loaded} of=${rules} show=${() =>
      rule
        ? html`<${Card}><${Facts} rows=${[
              ["Last token", html`<${Time} at=${rule.lastExchangeAt} />`],
              ["Jobs of", html`<${RuleJobs} rule=${rule} />`],
              ["Trusted", html`<${Name} of=${trustedText(rule.trusted)} />`],
              ["Others get", OTHER_JOBS[rule.others] ?? rule.others],
              ["Made by", html`<${Name} of=${makerText(rule.createdBy)} />`],
            ]} /><//>
            ${scope.manages && html`<${Use} id=${rule.id} scope=${scope} names=${names} />`}`
        : html`<${Card}><${Empty} title="No such rule"><p>It was deleted.</p><//><//>`} />
    ${open && html`<${open.what} scope=${scope} rule=${open.rule} close=${close} />`}`;
}
