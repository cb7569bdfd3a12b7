// A Better Auth server on plain node HTTP: email and password, session cookies, API keys. Tables are in an SQLite file
// with a write-ahead log, or in memory if better-sqlite3 could not be installed. Rate limits are off, because they would
// refuse the requests of the benchmark.
import { createServer } from "node:http";
import { apiKey } from "@better-auth/api-key";
import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import { getMigrations } from "better-auth/db/migration";
import { toNodeHandler } from "better-auth/node";

const [port, file] = process.argv.slice(2);
const origin = `http://127.0.0.1:${port}`;

const tables = await openTables();
const options = {
  baseURL: origin,
  secret: "a secret of the benchmark, used only here",
  database: tables.database,
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  logger: { level: "error" },
  plugins: [apiKey({ rateLimit: { enabled: false } })],
};
const auth = betterAuth(options);
if (tables.name === "SQLite") await (await getMigrations(options)).runMigrations();

const handle = toNodeHandler(auth);
const server = createServer(async (request, response) => {
  // Better Auth can verify a key only in its own process, so this adds a minimal route.
  if (request.method !== "POST" || request.url !== "/api/auth/api-key/verify") return handle(request, response);
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { key } = JSON.parse(Buffer.concat(chunks));
  const verdict = await auth.api.verifyApiKey({ body: { key } });
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(verdict));
});
server.keepAliveTimeout = 75_000;
server.listen(Number(port), "127.0.0.1", () => console.log(`ready: ${tables.name}`));

async function openTables() {
  try {
    const { default: Database } = await import("better-sqlite3");
    const database = new Database(file);
    database.pragma("journal_mode = WAL");
    database.pragma("synchronous = NORMAL");
    return { name: "SQLite", database };
  } catch (error) {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    const empty = { user: [], session: [], account: [], verification: [], apikey: [] };
    return { name: "memory", database: memoryAdapter(empty) };
  }
}
