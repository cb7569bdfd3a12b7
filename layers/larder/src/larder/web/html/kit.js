"use strict";

const options = document.body.dataset;
const query = new URLSearchParams(location.search);

// The deployment has one address of its own, and takes requests from pages of that address alone.
const home = options.baseUrl ? new URL(options.baseUrl).origin : location.origin;
if (home !== location.origin) location.replace(home + location.pathname + location.search);

const element = (id) => document.getElementById(id);

/** Everything from outside goes into pages by this: as text, never as markup. */
function fill(id, text) {
  element(id).textContent = text;
}

/** Show one section and hide the others. Who moves by keyboard or hears the page is taken to its heading. */
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

/** A request to this deployment. `reply.problem` is what to tell the reader, null for success. */
async function ask(method, path, body, headers = {}) {
  const init = { method, headers: { ...headers }, cache: "no-store" };
  if (body !== undefined) {
    init.headers["content-type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  try {
    const reply = await fetch(path, init);
    const said = await reply.json().catch(() => null);
    return { status: reply.status, said, code: said?.code ?? null, problem: reply.ok ? null : problemOf(reply, said) };
  } catch {
    return { status: 0, said: null, code: null, problem: "The server cannot be reached. Try again in a moment." };
  }
}

function problemOf(reply, said) {
  const wait = reply.headers.get("x-retry-after");
  if (reply.status === 429) return `Too many attempts. Try again ${wait ? `in ${wait} seconds` : "later"}.`;
  const message = said?.message ?? `The server answered ${reply.status}. Try again in a moment.`;
  // `[body.name] must ...` and `name: must ...` name the field, which the reader has in front of them.
  return message.replace(/(^|; )\[(?:body|query)\.(\w+)\] /g, "$1$2: ").replace(/^[a-z]/, (letter) => letter.toUpperCase());
}

/** Tell what is wrong above a form's button, and have it read out; nothing to take it away. */
function complain(form, problem) {
  const line = form.querySelector(".problem");
  line.hidden = !problem;
  line.textContent = problem ?? "";
}

/** `act` gets the form's fields when it is sent; its button rests meanwhile. What it returns is told as a problem. */
function onSubmit(id, act) {
  const form = element(id);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("[type=submit]");
    if (button.disabled) return;
    button.disabled = true;
    complain(form, null);
    const problem = await act(Object.fromEntries(new FormData(form)), form);
    button.disabled = false;
    if (problem) {
      complain(form, problem);
      [...form.elements].find((one) => one.offsetParent !== null)?.focus();
    }
  });
}

for (const place of document.querySelectorAll("[data-home]")) place.textContent = home;

function onClick(id, act) {
  element(id).addEventListener("click", act);
}

// A page that the browser kept and shows again tells of a moment that is over.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

for (const input of document.querySelectorAll("[autocomplete=new-password]")) {
  input.minLength = Number(options.shortestPassword);
  input.maxLength = Number(options.longestPassword);
}
for (const hint of document.querySelectorAll("[data-password-hint]"))
  hint.textContent = `At least ${options.shortestPassword} characters.`;
