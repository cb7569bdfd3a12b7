// A Better Auth server on plain node http: e-mail and password, sessions by cookie, API keys. Tables in SQLite, written
// ahead and in a file, or in memory where better-sqlite3 could not be installed. Its rate limits are off: they would
// refuse what is measured.
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
  secret: "a secret of the benchmark, which nobody else knows",
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
  // Verifying a key is a call of the server's own; this is the least that gives it to others.
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
