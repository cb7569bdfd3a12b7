// What several views consist of.

const isTrue = (option) => option === "true";
const own = document.getElementById("console").dataset;

/** Announce what was done, for some seconds. Not for what users have to read. */
function announce(text) {
  const line = document.getElementById("announced");
  line.textContent = text;
  setTimeout(() => {
    if (line.textContent === text) line.textContent = "";
  }, 5000);
}

/** A name that a person or a client has chosen: as text, and without an effect on the text around it. */
const Name = ({ of }) => html`<bdi>${visible(of)}</bdi>`;

const Tag = ({ kind = "", children }) => html`<span class=${`tag ${kind}`}>${children}</span>`;

/** A moment as a relative time. `at` is a number, an ISO time, or null for never. */
function Time({ at, none = "never" }) {
  if (at === null) return html`<span class="soft">${none}</span>`;
  const moment = new Date(at);
  return html`<time datetime=${moment.toISOString()} title=${formats.moment.format(moment)}>${relativeText(moment)}</time>`;
}

function Lines({ text, label = "Copy" }) {
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => announce("Copied."),
      () => announce("Your browser did not copy it. Select the text instead."),
    );
  return html`<div class="lines"><pre tabindex="0">${text}</pre>
    ${navigator.clipboard && html`<button type="button" class="copy" onClick=${copy}>${label}</button>`}</div>`;
}

/** Let the browser store rows as a file. Text that a spreadsheet takes for a formula gets an apostrophe before it. */
function saveCsv(name, titles, rows) {
  const cell = (value) => `"${String(value ?? "").replace(/^(?=[=+\-@\t\r])/, "'").replaceAll('"', '""')}"`;
  const text = [titles, ...rows].map((row) => row.map(cell).join(",")).join("\r\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([`${text}\r\n`], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), MINUTE);
}

const Problem = ({ text, again }) => html`<div class="problem" role="alert">
  <p>${text}</p>
  ${again && html`<button type="button" class="second small" onClick=${again}>Try again</button>`}
</div>`;

/** Move the focus to the heading of the view, for users of keyboards and screen readers. */
function focusHeading() {
  const heading = document.querySelector("h1");
  heading.tabIndex = -1;
  heading.focus();
}

/** Grey lines in place of what loads. They appear after 300 ms, so that a quick reply shows no flicker. */
const Loading = ({ lines = 4 }) => html`<div class="loading" role="status">
  <span class="hidden-text">Loading</span>
  ${Array.from({ length: lines }, () => html`<p></p>`)}
</div>`;

/** What `show` makes of the loaded data. Otherwise its problem with a way to repeat it, or that it loads. */
function Loaded({ of, lines, show }) {
  if (of.data !== null) return show(of.data);
  if (of.problem) return html`<${Problem} text=${of.problem} again=${of.status === 403 ? null : of.reload} />`;
  return html`<${Loading} lines=${lines} />`;
}

const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;

/** A table. `columns` are `{ title, cell, number, isWide, isMinor }`: `cell` makes the content from a row, and minor
 * ones are not shown on a phone. There each row is a block of lines, so the roles of tables are written out: browsers drop them with
 * the display of tables. `group` names the part of the table that a row is in, and each part has its name above it. */
const Table = ({ label, columns, rows, id, group = () => null }) => html`<table role="table" aria-label=${label}>
  <thead role="rowgroup"><tr role="row">
    ${columns.map(({ title, number }) => html`<th role="columnheader" scope="col" class=${number ? "number" : ""}>
      ${title || html`<span class="hidden-text">Actions</span>`}
    </th>`)}
  </tr></thead>
  <tbody role="rowgroup">
    ${rows.map((row, index) => html`${group(row) !== (index > 0 ? group(rows[index - 1]) : null) && html`<tr role="row" key=${group(row)} class="group"><th role="rowheader" colspan=${columns.length}>${group(row)}</th></tr>`}<tr role="row" key=${id(row)}>
      ${columns.map(({ title, cell, number, isWide, isMinor }) => {
        const content = cell(row);
        return html`<td role="cell" data-title=${title} class=${[number && "number", isWide && "spread", isMinor && "minor", !title && "acts"].filter(Boolean).join(" ")}>${content && html`<div>${content}</div>`}</td>`;
      })}
    </tr>`)}
  </tbody>
</table>`;

/** A form. `act` gets its fields and returns a problem to show, as in forms.js. */
function Form({ action, busy, kind = "primary", act, cancel, children, ...attributes }) {
  const form = useRef(null);
  const latest = useRef(act);
  latest.current = act;
  // Not in an effect: those run after the form is shown, and can be submitted.
  const attach = (shown) => {
    if (!shown || shown === form.current) return;
    form.current = shown;
    whenSubmitted(shown, (fields) => latest.current(fields));
  };
  return html`<form ref=${attach} method="post" ...${attributes}>
    <p class="problem" role="alert" hidden></p>
    ${children}
    <div class="end">
      ${cancel && html`<button type="button" class="second" onClick=${cancel}>Cancel</button>`}
      <button type="submit" class=${kind} data-busy=${busy}>${action}</button>
    </div>
  </form>`;
}

function Field({ label, hint, children, ...input }) {
  const id = useId();
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${children
      ? html`<select id=${id} aria-describedby=${hint ? `${id}-hint` : null} ...${input}>${children}</select>`
      : html`<input id=${id} aria-describedby=${hint ? `${id}-hint` : null} ...${input} />`}
    ${hint && html`<span id=${`${id}-hint`} class="soft">${hint}</span>`}
  </div>`;
}

/** A field of several lines. */
function Area({ label, hint, ...input }) {
  const id = useId();
  return html`<div class="field">
    <label for=${id}>${label}</label>
    <textarea id=${id} rows="3" autocomplete="off" autocapitalize="none" spellcheck="false" aria-describedby=${hint ? `${id}-hint` : null} ...${input}></textarea>
    ${hint && html`<span id=${`${id}-hint`} class="soft">${hint}</span>`}
  </div>`;
}

const PasswordField = ({ isNew, ...rest }) => html`<${Field}
  type="password"
  required
  autocomplete=${isNew ? "new-password" : "current-password"}
  minlength=${isNew ? options.shortestPassword : null}
  maxlength=${isNew ? options.longestPassword : null}
  hint=${isNew ? `At least ${options.shortestPassword} characters.` : null}
  ...${rest}
/>`;

/** Choices of which one holds. `choices` are `[value, label, hint]`. */
function Choices({ legend, name, chosen, choices }) {
  const id = useId();
  return html`<fieldset class="field">
    <legend>${legend}</legend>
    ${choices.map(([value, label, hint]) => html`<div class="check">
      <input type="radio" id=${`${id}-${value}`} name=${name} value=${value} defaultChecked=${value === chosen}
        aria-describedby=${hint ? `${id}-${value}-hint` : null} />
      <div><label for=${`${id}-${value}`}>${label}</label>
      ${hint && html`<span class="soft" id=${`${id}-${value}-hint`}>${hint}</span>`}</div>
    </div>`)}
  </fieldset>`;
}

function Check({ label, ...input }) {
  const id = useId();
  return html`<div class="check"><input type="checkbox" id=${id} ...${input} /><label for=${id}>${label}</label></div>`;
}

/** A setting that is saved when it is changed. `save` gets the new value, and returns a problem to show. */
function Choice({ legend, chosen, choices, save, saved }) {
  const id = useId();
  const [isWrong, setWrong] = useState(null);
  const [value, setValue] = useState(chosen);
  const choose = async (wanted) => {
    setValue(wanted);
    const problem = await save(wanted);
    setWrong(problem);
    if (problem) setValue(value);
    else announce(saved);
  };
  return html`<fieldset class="field">
    <legend class="hidden-text">${legend}</legend>
    ${isWrong && html`<p class="problem" role="alert">${isWrong}</p>`}
    ${choices.map(([one, label, hint]) => html`<div class="check">
      <input type="radio" id=${`${id}-${one}`} name=${id} checked=${one === value} onChange=${() => choose(one)} aria-describedby=${`${id}-${one}-hint`} />
      <div><label for=${`${id}-${one}`}>${label}</label><span class="soft" id=${`${id}-${one}-hint`}>${hint}</span></div>
    </div>`)}
  </fieldset>`;
}

/** A dialog over the page. The browser gives the focus back to the button that opened it. `stays` prevents that Escape
 * closes it. */
function Dialog({ title, close, stays, children }) {
  const dialog = useRef(null);
  const id = useId();
  const isClosing = useRef(false);
  useEffect(() => {
    const shown = dialog.current;
    shown.showModal();
    return () => {
      isClosing.current = true;
      shown.close();
      // The button that opened it may be gone, such as that of a deleted key.
      setTimeout(() => document.activeElement === document.body && focusHeading());
    };
  }, []);
  const cancel = (event) => stays && event.preventDefault();
  // Browsers close a dialog at a second Escape, whatever the page wants.
  const closed = () => {
    if (isClosing.current) return;
    if (stays) dialog.current.showModal();
    else close();
  };
  return html`<dialog ref=${dialog} aria-labelledby=${id} onCancel=${cancel} onClose=${closed}><h2 id=${id}>${title}</h2>${children}</dialog>`;
}

/** Ask before something that cannot be undone. With `word`, users have to type it. `more` are other fields. */
const Confirm = ({ title, word, wordLabel, more, action, busy, act, close, children }) => html`<${Dialog} title=${title} close=${close}>
  ${children}
  <${Form} kind="danger" action=${action} busy=${busy} cancel=${close} act=${(fields) => {
    if (word !== undefined && fields.word.trim() !== word) return { problem: `Type ${word} to confirm.`, field: "word" };
    return act(fields);
  }}>
    ${more}
    ${word !== undefined && html`<${Field} label=${wordLabel ?? `Type ${word} to confirm`} name="word" required
      autocomplete="off" autocapitalize="none" spellcheck="false" />`}
  <//>
<//>`;

const Card = ({ id, title, children, actions }) => html`<section class="card" id=${id}>
  ${title && html`<div class="head"><h2>${title}</h2>${actions}</div>`}
  ${children}
</section>`;

const Head = ({ title, children }) => html`<div class="head"><h1>${title}</h1>${children}</div>`;

const Button = ({ kind = "second", children, ...rest }) => html`<button type="button" class=${kind} ...${rest}>${children}</button>`;


/** Pairs `[name, value]` that describe one thing. Those without a value are left out. */
const Facts = ({ rows }) => html`<dl class="facts in-columns">${rows.filter(([, value]) => value).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

/** A button that opens what can be done with a row, or null if there is nothing. `items` are `[text, act]`, with "loses" as a third if
 * it deletes something. */
function Menu({ label, items }) {
  const id = useId();
  const button = useRef(null);
  const list = useRef(null);
  // The browser places it in the middle of the window.
  const place = ({ newState }) => {
    if (newState !== "open") return;
    const { top, bottom, right } = button.current.getBoundingClientRect();
    const isLow = innerHeight - bottom < 56 * items.length;
    Object.assign(list.current.style, {
      top: isLow ? "auto" : `${bottom + 4}px`,
      bottom: isLow ? `${innerHeight - top + 4}px` : "auto",
      right: `${document.documentElement.clientWidth - right}px`,
    });
  };
  const choose = (act) => {
    list.current.hidePopover();
    // A dialog gives the focus back to it.
    button.current.focus();
    act();
  };
  const shown = items.filter(Boolean);
  if (shown.length === 0) return null;
  return html`<button type="button" ref=${button} class="second small menu" popovertarget=${id} aria-label=${`Actions: ${visible(label)}`}>⋯</button>
    <div popover="auto" id=${id} ref=${list} role="group" aria-label=${`Actions: ${visible(label)}`} onBeforeToggle=${place}>
      ${shown.map(([text, act, effect], index) => html`<button type="button" class=${effect} autofocus=${index === 0} onClick=${() => choose(act)}>${text}</button>`)}
    </div>`;
}

// A menu stands next to its button, which scrolls away.
addEventListener("scroll", () => document.querySelector(":popover-open")?.hidePopover(), { passive: true });
