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
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== id;
  const heading = element(id).querySelector("h1");
  document.title = heading.textContent + document.title.slice(document.title.lastIndexOf(" · "));
  if (moves) {
    heading.tabIndex = -1;
    heading.focus();
    scrollTo(0, 0);
  }
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
  const message = data?.message ?? `The server replied with status ${reply.status}. Try again in a moment.`;
  // Turn `[body.name] must ...` and `name: must ...` into `Name: must ...`.
  return message.replace(/(^|; )\[(?:body|query)\.(\w+)\] /g, "$1$2: ").replace(/^[a-z]/, (letter) => letter.toUpperCase());
}

/** Show a message above a form's button, where screen readers announce it. `null` removes it. */
function showProblem(form, problem) {
  const line = form.querySelector(".problem");
  line.hidden = !problem;
  line.textContent = problem ?? "";
}

/** Call `act` with the form's fields on submit, with the button disabled meanwhile. Show what it returns as a problem. */
function onSubmit(id, act) {
  const form = element(id);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("[type=submit]");
    if (button.disabled) return;
    button.disabled = true;
    showProblem(form, null);
    const problem = await act(Object.fromEntries(new FormData(form)), form);
    button.disabled = false;
    if (problem) {
      showProblem(form, problem);
      [...form.elements].find((one) => one.offsetParent !== null)?.focus();
    }
  });
}

for (const place of document.querySelectorAll("[data-home]")) place.textContent = home;

function onClick(id, act) {
  element(id).addEventListener("click", act);
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
