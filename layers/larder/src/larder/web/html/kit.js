"use strict";

const options = document.body.dataset;
const query = new URLSearchParams(location.search);

// The deployment accepts requests only from pages of its own address.
const home = options.baseUrl ? new URL(options.baseUrl).origin : location.origin;
if (home !== location.origin) location.replace(home + location.pathname + location.search);

const element = (id) => document.getElementById(id);

/** Insert a value as text, never as markup. All values from outside enter the page here. */
function fill(id, text) {
  element(id).textContent = text;
}

/** Show one section and hide the others. `moves` focuses its heading, for users of keyboards and screen readers. */
function show(id, { moves = true } = {}) {
  for (const section of document.querySelectorAll("main > section")) {
    if (section.hidden && section.id === id) section.querySelectorAll("form").forEach(clear);
    section.hidden = section.id !== id;
  }
  const heading = element(id).querySelector("h1");
  document.title = heading.textContent + document.title.slice(document.title.lastIndexOf(" · "));
  if (moves) {
    heading.tabIndex = -1;
    heading.focus();
    scrollTo(0, 0);
  }
}

/** Remove what an earlier use has left in a form: its problem, and passwords. */
function clear(form) {
  hideProblem(form);
  for (const box of form.querySelectorAll("[data-shows]:checked")) box.click();
  for (const input of form.querySelectorAll("[autocomplete$=password]")) input.value = "";
}

/** Send a request to this deployment. `problem` in the result is the message to show, null for success. */
async function request(method, path, body, headers = {}) {
  const init = { method, headers: { ...headers }, cache: "no-store" };
  if (body !== undefined) {
    init.headers["content-type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  try {
    const reply = await fetch(path, init);
    const data = await reply.json().catch(() => null);
    return { status: reply.status, data, code: data?.code ?? null, problem: reply.ok ? null : problemOf(reply, data) };
  } catch {
    return { status: 0, data: null, code: null, problem: "Could not reach the server. Try again in a moment." };
  }
}

function problemOf(reply, data) {
  const wait = reply.headers.get("x-retry-after");
  if (reply.status === 429) return `Too many attempts. Try again ${wait ? `in ${wait} seconds` : "later"}.`;
  return data?.message ?? `The server replied with status ${reply.status}. Try again in a moment.`;
}

/** Show a problem: a rule below each field that it names, the rest above the form. Returns the first such field. */
function showProblem(form, problem) {
  hideProblem(form);
  const named = [];
  const others = [];
  // Such as `[body.name] Field required; email: must be an email address`.
  for (const part of problem.split("; ")) {
    const [, name, rule] = part.match(/^(?:\[\w+\.)?(\w+)(?:\] |: )(.+)$/) ?? [];
    const field = name && form.elements.namedItem(name);
    if (field && field.offsetParent !== null) named.push([field, rule]);
    else others.push(part);
  }
  for (const [field, rule] of named) {
    const line = Object.assign(document.createElement("p"), { className: "wrong", id: `${field.id}-problem` });
    line.textContent = field.dataset.example ?? `${field.labels[0].textContent} ${rule}.`;
    field.closest(".field").append(line);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", `${line.id} ${field.getAttribute("aria-describedby") ?? ""}`.trim());
  }
  const box = form.querySelector(".problem");
  box.textContent = others.join("; ").replace(/^[a-z]/, (letter) => letter.toUpperCase());
  box.hidden = others.length === 0;
  return named[0]?.[0];
}

function hideProblem(form) {
  const box = form.querySelector(".problem");
  box.hidden = true;
  box.textContent = "";
  for (const line of form.querySelectorAll(".wrong")) {
    const field = line.closest(".field").querySelector("[aria-invalid]");
    field.removeAttribute("aria-invalid");
    const hints = field.getAttribute("aria-describedby").replace(line.id, "").trim();
    if (hints) field.setAttribute("aria-describedby", hints);
    else field.removeAttribute("aria-describedby");
    line.remove();
  }
}

/** Call `act` with the form's fields on submit, and show what it returns as a problem, with the focus on the field that
 * the problem names. `act` can return `{ problem, field }` to name the field itself. The button keeps the focus
 * meanwhile, and says what happens. */
function onSubmit(id, act) {
  const form = element(id);
  const button = form.querySelector("[type=submit]");
  const label = button.textContent;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.ariaBusy === "true") return;
    form.ariaBusy = button.ariaDisabled = "true";
    button.textContent = button.dataset.busy;
    hideProblem(form);
    const outcome = await act(Object.fromEntries(new FormData(form)), form);
    form.ariaBusy = button.ariaDisabled = "false";
    button.textContent = label;
    const { problem, field } = typeof outcome === "string" ? { problem: outcome } : (outcome ?? {});
    if (!problem) return;
    const wrong = showProblem(form, problem) ?? (field && form.elements.namedItem(field));
    wrong?.focus();
    wrong?.select?.();
  });
}

for (const place of document.querySelectorAll("[data-home]")) place.textContent = home;

function onClick(id, act) {
  element(id).addEventListener("click", act);
}

for (const box of document.querySelectorAll("[data-shows]"))
  box.addEventListener("change", () => {
    element(box.dataset.shows).type = box.checked ? "text" : "password";
  });

// Lines of commands scroll instead of wrapping, and can be copied. Browsers offer the clipboard only to secure pages.
for (const lines of document.querySelectorAll("pre")) {
  lines.tabIndex = 0;
  if (!navigator.clipboard) continue;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy" });
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(lines.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  button.ariaLive = "polite";
  lines.after(button);
}

// A page that the browser restores from its cache can be out of date.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

for (const input of document.querySelectorAll("[autocomplete=new-password]")) {
  input.minLength = Number(options.shortestPassword);
  input.maxLength = Number(options.longestPassword);
}
for (const hint of document.querySelectorAll("[data-password-hint]"))
  hint.textContent = `At least ${options.shortestPassword} characters.`;
