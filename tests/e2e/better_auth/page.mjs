// The unmodified Better Auth client as on a page: with cookies, which Node's fetch does not keep, an address to move on
// from, and the session's store in use. Lines are those of call.mjs, and also:
// - "browser.state" returns {"cookies", "address", "store"}, "browser.restart" forgets the cookies that end with it;
// - "browser.open" opens an address and follows its redirects, and returns the last address;
// - a Date comes as {"$date": ...}, to distinguish it from text;
// - an error comes with `retryAfter`, read as in Better Auth's documentation.
import { createInterface } from "node:readline";

const cookies = new Map();
let client, retryAfter;

function keep(setCookie) {
  const [pair, ...attributes] = setCookie.split(/;\s*/);
  const [name, value] = pair.split(/=(.*)/s);
  const maxAge = attributes.find((attribute) => /^max-age=/i.test(attribute))?.split("=")[1];
  if (maxAge === "0") cookies.delete(name);
  else cookies.set(name, { value, maxAge: maxAge === undefined ? null : Number(maxAge) });
}

const cookieHeader = () => Array.from(cookies, ([name, { value }]) => `${name}=${value}`).join("; ");

async function page({ baseURL, headers }) {
  // Release 1.3.34 looks for a window when it is imported: without one it never fills the session's store.
  globalThis.window = { location: { href: `${baseURL}/` } };
  const { createAuthClient } = await import("better-auth/client");
  client = createAuthClient({
    baseURL,
    fetchOptions: {
      headers,
      onRequest({ headers }) {
        if (cookies.size) headers.set("cookie", cookieHeader());
      },
      onResponse({ response }) {
        response.headers.getSetCookie().forEach(keep);
      },
      onError({ response }) {
        retryAfter = response.headers.get("X-Retry-After");
      },
    },
  });
  client.useSession.subscribe(() => {});
}

const browser = {
  state: () => ({
    data: { cookies: Object.fromEntries(cookies), address: window.location.href, store: client.useSession.get() },
    error: null,
  }),
  async open({ url }) {
    for (;;) {
      const reply = await fetch(url, { redirect: "manual", headers: { cookie: cookieHeader() } });
      reply.headers.getSetCookie().forEach(keep);
      const location = reply.headers.get("location");
      if (location === null) break;
      url = new URL(location, url).href;
    }
    window.location.href = url;
    return { data: url, error: null };
  },
  restart() {
    for (const [name, { maxAge }] of cookies) if (maxAge === null) cookies.delete(name);
    return { data: null, error: null };
  },
};

function withDates(key, value) {
  return this[key] instanceof Date ? { $date: value } : value;
}

for await (const line of createInterface({ input: process.stdin })) {
  const sent = JSON.parse(line);
  if (client === undefined) {
    await page(sent);
  } else {
    retryAfter = null;
    const root = sent.method.startsWith("browser.") ? { browser } : client;
    const call = sent.method.split(".").reduce((object, name) => object[name], root);
    console.log(JSON.stringify({ ...(await call(sent.argument)), retryAfter }, withDates));
  }
}
