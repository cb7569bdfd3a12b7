"use strict";

const options = document.body.dataset;
const query = new URLSearchParams(location.search);

// The deployment accepts requests only from pages of its own address.
const home = options.baseUrl ? new URL(options.baseUrl).origin : location.origin;
if (home !== location.origin) location.replace(home + location.pathname + location.search);

// A page that the browser restores from its cache can be out of date.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

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

/** The words are English; the order of day and month is that of the user's region. */
function locale() {
  const { region } = new Intl.Locale(navigator.language || "en").maximize();
  return region ? `en-${region}` : "en";
}

