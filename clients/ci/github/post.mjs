// Runs at the end of the job, also of one that failed: report the runs of turbo, comment on the pull request, and revoke the
// token. Nothing here fails the job.
import { execFileSync, spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const MOST_RUNS = 20;
const WORTH_A_COMMENT_MS = 60_000;
const MOST_PAGES = 10;

const here = dirname(fileURLToPath(import.meta.url));
const { env } = process;
const input = (name) => (env[`INPUT_${name.toUpperCase()}`] ?? "").trim();
const token = env.STATE_token ?? "";
const api = input("api").replace(/\/$/, "");

/** The summaries that turbo has written since the step, in order. */
function newRuns() {
  const folder = join(input("directory") || ".", ".turbo", "runs");
  let names = [];
  try {
    names = readdirSync(folder);
  } catch {
    // turbo did not run.
  }
  const files = names.filter((name) => name.endsWith(".json")).map((name) => ({ name, at: statSync(join(folder, name)).mtimeMs }));
  const found = files.filter(({ at }) => at >= Number(env.STATE_startedAt)).sort((one, other) => one.at - other.at);
  return found.slice(-MOST_RUNS).map(({ name }) => join(".turbo", "runs", name));
}

/** Report them. Returns the Markdown for people. */
function report(runs, folder) {
  const markdown = join(folder, "markdown");
  writeFileSync(markdown, "");
  const variables = {
    TURBO_API: api,
    TURBO_TEAMID: input("team_id"),
    TURBO_TEAM: input("team"),
    TURBO_TOKEN: token,
    LARDER_CI: "GITHUB_ACTIONS",
    LARDER_INPUTS: input("inputs"),
    LARDER_MARKDOWN: markdown,
  };
  spawnSync("sh", [join(here, "..", "report-run.sh"), ...runs], { cwd: input("directory") || ".", env: { ...env, ...variables }, stdio: "inherit" });
  return readFileSync(markdown, "utf8");
}

/** Send a request with curl, which knows the proxies of the runner. Its configuration has the secret, not its arguments. */
function curl(secret, setting, ...options) {
  if (/[\r\n"\\]/.test(secret)) throw new Error("the token has characters that no token has");
  const all = { encoding: "utf8", input: `${setting}${secret}"\n`, maxBuffer: 2 ** 26, stdio: ["pipe", "pipe", "pipe"] };
  return execFileSync("curl", ["-sSf", "--max-time", "30", "-K", "-", ...options], all);
}

/** Write the Markdown into the one comment of this job on its pull request. */
function comment(markdown) {
  const number = JSON.parse(readFileSync(env.GITHUB_EVENT_PATH, "utf8")).pull_request?.number;
  if (!number || !input("github-token")) return;
  const outside = [...markdown.matchAll(/^<!-- outside the code: (\d+) ms -->$/gm)].reduce((sum, [, ms]) => sum + Number(ms), 0);
  const job = `${env.GITHUB_WORKFLOW} / ${env.GITHUB_JOB}`.replace(/[^A-Za-z0-9 ._/-]/g, "_");
  const mark = `<!-- larder: ${job} -->`;
  const issues = `${env.GITHUB_API_URL}/repos/${env.GITHUB_REPOSITORY}/issues`;
  const asGitHub = (method, path, body) => {
    const data = body ? ["-H", "Content-Type: application/json", "--data-binary", JSON.stringify(body)] : [];
    return JSON.parse(curl(input("github-token"), 'header = "Authorization: Bearer ', "-X", method, ...data, `${issues}${path}`));
  };
  let known;
  for (let page = 1; page <= MOST_PAGES && !known; page += 1) {
    const found = asGitHub("GET", `/${number}/comments?per_page=100&page=${page}`);
    // Anyone can write the mark.
    known = found.find(({ body, user }) => body?.startsWith(mark) && user?.type === "Bot");
    if (found.length < 100) break;
  }
  if (!known && outside < WORTH_A_COMMENT_MS) return;
  const body = { body: `${mark}\n${markdown}`.slice(0, 60_000) };
  if (known) asGitHub("PATCH", `/comments/${known.id}`, body);
  else asGitHub("POST", `/${number}/comments`, body);
}

/** Do a part of the work. If it fails, one line says so. */
function attempt(what, work) {
  try {
    return work();
  } catch (error) {
    const reason = String(error?.stderr || error?.message || error).replace(/[^ -~]/g, " ").replaceAll("::", ":").slice(0, 300);
    console.log(`::notice::${what}: ${reason}`);
    return undefined;
  }
}

const folder = mkdtempSync(join(tmpdir(), "larder-"));
const runs = input("report") === "false" ? [] : attempt("No run was reported", newRuns);
if (runs?.length) {
  const markdown = attempt("No run was reported", () => report(runs, folder));
  if (markdown && input("summary") === "true") attempt("The run is not in the summary", () => appendFileSync(env.GITHUB_STEP_SUMMARY, markdown));
  if (markdown && input("comment") === "true") attempt("The pull request got no comment", () => comment(markdown));
}
if (token) attempt("The token was not revoked, and ends by itself", () => curl(token, 'data = "token=', `${api}/login/oauth/token/revoke`));
rmSync(folder, { recursive: true, force: true });
