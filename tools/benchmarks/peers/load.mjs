// Sends requests as several concurrent clients, and reports how long each took. A job is a line of JSON on standard input,
// its result a line on standard output. Every client sends its next request when it has the complete reply to the last
// one. Redirects are followed. With "preflight", an upload goes to the URL from OPTIONS, as in `turbo --preflight`.
import { createInterface } from "node:readline";
import { Pool } from "undici";

const PATIENCE_MS = 120_000;
const bodies = new Map();
let pools = new Map();

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await run(JSON.parse(line)))}\n`);
}

async function run(job) {
  const took = [];
  const failures = {};
  let next = 0;
  pools = new Map();
  const began = performance.now();
  const until = began + job.seconds * 1000;
  const mayBegin = () => next < job.least || (next < job.most && performance.now() < until);
  const clients = Array.from({ length: job.clients }, async () => {
    while (mayBegin()) {
      const number = next++;
      const sent = performance.now();
      const failure = await once(job, number).catch((error) => error.message || error.code);
      took.push(performance.now() - sent);
      if (failure) failures[failure] = (failures[failure] ?? 0) + 1;
    }
  });
  await Promise.all(clients);
  const seconds = (performance.now() - began) / 1000;
  await Promise.all([...pools.values()].map((pool) => pool.close()));
  return { seconds, took_ms: took, failures };
}

// Returns what was wrong with the reply, or nothing.
async function once(job, number) {
  const path = job.path.replace("{n}", String(number).padStart(6, "0"));
  let url = new URL(path, job.origin);
  let headers = job.headers;
  if (job.preflight) {
    const preflight = await send(job, url, "OPTIONS", {
      ...headers,
      "access-control-request-method": job.method,
      "access-control-request-headers": "Authorization, Content-Type, User-Agent",
    });
    await preflight.body.dump({ limit: Infinity });
    if (preflight.headers.location) {
      url = new URL(preflight.headers.location);
      headers = without(headers, "authorization");
    }
  }
  let reply = await send(job, url, job.method, headers, content(job));
  while (reply.statusCode >= 300 && reply.statusCode < 400 && reply.headers.location) {
    await reply.body.dump({ limit: Infinity });
    const target = new URL(reply.headers.location, url);
    if (target.host !== url.host) headers = without(headers, "authorization");
    url = target;
    reply = await send(job, url, job.method, headers);
  }
  let bytes = 0;
  for await (const chunk of reply.body) bytes += chunk.length;
  if (!job.statuses.includes(reply.statusCode)) return `status ${reply.statusCode}`;
  if (job.reply_bytes != null && bytes !== job.reply_bytes) return `${bytes} bytes`;
}

function send(job, url, method, headers, body) {
  if (!pools.has(url.origin)) {
    const options = { connections: job.clients, pipelining: 1, headersTimeout: PATIENCE_MS, bodyTimeout: PATIENCE_MS };
    pools.set(url.origin, new Pool(url.origin, options));
  }
  return pools.get(url.origin).request({ path: url.pathname + url.search, method, headers, body });
}

function content(job) {
  if (job.text != null) return job.text;
  if (!job.bytes) return undefined;
  if (!bodies.has(job.bytes)) bodies.set(job.bytes, Buffer.alloc(job.bytes, "larder"));
  return bodies.get(job.bytes);
}

function without(headers, name) {
  return Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));
}
