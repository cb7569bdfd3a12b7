// A run of turbo as Larder gets it, and what Larder answers as Markdown. Needs node 18, and nothing else.
//
//   node run-report.mjs report FILE          the body of POST /v1/runs on standard output, compressed
//   node run-report.mjs report -             the same, not compressed, of a file that is named on standard input later
//   node run-report.mjs hits FILE            Markdown: hits, misses and time saved
//   node run-report.mjs causes REPLY         Markdown: the causes in a reply of POST /v1/runs. Nothing without causes
//
// It has the names and digests of what turbo hashed, so that Larder explains misses, if the team wants that. With
// LARDER_INPUTS=values also turbo's digests of the values of variables, which Larder replaces, and with LARDER_INPUTS=off
// nothing of it. Values, commands, arguments and variables of passThroughEnv are never sent.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { gzipSync } from "node:zlib";

const MOST_FILES = 200_000;
const MOST_COMMITS = 100;
const MOST_HINTS = 50;
const MOST_TEXT = 200;
const DIGEST = 12;
/** In place of turbo's digest of a value: the variable has one. */
const SOME_VALUE = "0".repeat(64);

const read = (file) => JSON.parse(readFileSync(file, "utf8"));

/** The first characters of the SHA-256 of texts with NUL between them. Empty for no or only empty texts. */
const digest = (texts) => {
  const joined = texts.join("\0");
  return joined && createHash("sha256").update(joined).digest("hex").slice(0, DIGEST);
};

const times = (one) => one && { startTime: one.startTime, endTime: one.endTime, exitCode: one.exitCode };

/** turbo writes NAME=digest. An empty value has no digest. */
const pairs = (listed) => Object.fromEntries((listed ?? []).map((one) => [one.split("=", 1)[0], one.slice(one.indexOf("=") + 1)]));

const cut = (files) => Object.fromEntries(Object.entries(files ?? {}).map(([name, hash]) => [name, hash.slice(0, DIGEST)]));

/** Different entries, each once, by their number. */
class Numbers {
  listed = [];
  #known = new Map();

  of(entry) {
    const key = JSON.stringify(entry);
    if (!this.#known.has(key)) this.#known.set(key, this.listed.push(entry) - 1);
    return this.#known.get(key);
  }
}

/** `env` has turbo's digest of each value, or only whether there is one. */
function variables(environment, withValues) {
  const [configured, inferred] = [pairs(environment?.configured), pairs(environment?.inferred)];
  const env = { ...inferred, ...configured };
  if (!withValues) for (const name of Object.keys(env)) env[name] &&= SOME_VALUE;
  return { env, inferred: Object.keys(inferred).filter((name) => !(name in configured)) };
}

/** The tasks whose lists of files are too long for a report, so that one digest stands for each. */
function tooLong(tasks) {
  const seen = new Set();
  const found = new Set();
  let count = 0;
  const size = (task) => Object.keys(task.inputs ?? {}).length;
  for (const task of [...tasks].sort((one, other) => size(one) - size(other))) {
    const list = JSON.stringify([task.directory, Object.keys(task.inputs ?? {}).sort()]);
    if (!seen.has(list)) {
      seen.add(list);
      count += size(task);
    }
    if (count > MOST_FILES) found.add(task.taskId);
  }
  return found;
}

/** What turbo hashed, without values, commands and arguments. */
function inputsOf({ tasks, globalCacheInputs: shared, envMode, frameworkInference }, withValues) {
  const [files, definitions] = [new Numbers(), new Numbers()];
  const long = tooLong(tasks);
  const specified = shared.environmentVariables?.specified;
  const engines = Object.entries(shared.engines ?? {}).map(([name, version]) => `${name} ${version}`);
  return {
    version: 1,
    global: {
      rootKey: digest([shared.rootKey ?? ""]),
      files: cut(shared.files),
      external: shared.hashOfExternalDependencies ?? "",
      internal: shared.hashOfInternalDependencies ?? "",
      ...variables(shared.environmentVariables, withValues),
      specified: { env: specified?.env ?? [], passThroughEnv: specified?.passThroughEnv ?? null },
      engines: digest([engines.join(", ")]),
      envMode: envMode ?? "",
      frameworkInference: frameworkInference !== false,
      ...(shared.globalDotEnv?.length && { dotEnv: shared.globalDotEnv }),
    },
    tasks: tasks.map((task) => {
      const settings = task.resolvedTaskDefinition ?? {};
      const names = Object.keys(task.inputs ?? {}).sort();
      const own = long.has(task.taskId)
        ? { "": digest(names.map((name) => `${name} ${task.inputs[name].slice(0, DIGEST)}`)) }
        : cut(Object.fromEntries(names.map((name) => [name, task.inputs[name]])));
      return {
        files: files.of({ directory: task.directory ?? "", files: own }),
        definition: definitions.of({
          outputs: settings.outputs ?? [],
          env: settings.env ?? [],
          passThroughEnv: settings.passThroughEnv ?? [],
          dependsOn: settings.dependsOn ?? [],
          cache: settings.cache !== false,
          ...(settings.dotEnv?.length && { dotEnv: settings.dotEnv }),
        }),
        external: task.hashOfExternalDependencies ?? "",
        ...variables(task.environmentVariables, withValues),
        dependencies: task.dependencies ?? [],
        script: digest([task.command ?? ""]),
        arguments: digest(task.cliArguments ?? []),
        envMode: task.envMode ?? "",
      };
    }),
    files: files.listed,
    definitions: definitions.listed,
  };
}

/** What git says, "" if it fails. No program of the repository's configuration runs, and no lock is taken. */
function git(...command) {
  const safe = ["--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false"];
  try {
    const options = { encoding: "utf8", maxBuffer: 2 ** 28, stdio: ["pipe", "pipe", "ignore"], timeout: 60_000 };
    const input = typeof command.at(-1) === "object" ? command.pop().input : "";
    return execFileSync("git", [...safe, ...command], { ...options, input });
  } catch {
    return "";
  }
}

const listed = (text) => text.split("\0").filter(Boolean);

/** Commits before this one, the nearest first. The event of GitHub names one also for a clone of depth 1. */
function ancestors(known) {
  let event = {};
  try {
    event = JSON.parse(readFileSync(process.env.GITHUB_EVENT_PATH, "utf8"));
  } catch {
    // Another CI, or none.
  }
  const named = [...known, event.pull_request?.base?.sha, event.before];
  return [...new Set(named.filter((one) => /^(?!0+$)[0-9a-f]{40}$/.test(one ?? "")))].slice(0, MOST_COMMITS);
}

/** The inputs that are not in git. turbo's paths of a package start at its folder. */
function outsideGit(tasks, tracked) {
  if (!tracked.size) return {};
  const paths = new Set();
  for (const { directory, inputs } of tasks) for (const name of Object.keys(inputs ?? {})) paths.add(directory ? `${directory}/${name}` : name);
  const outside = [...paths].filter((path) => !tracked.has(path) && !path.includes("..")).slice(0, MOST_HINTS);
  const ignored = outside.length ? new Set(listed(git("check-ignore", "-z", "--stdin", { input: outside.join("\0") }))) : new Set();
  return Object.fromEntries(outside.map((path) => [path, ignored.has(path) ? "ignored" : "untracked"]));
}

/** The changed files that differ from the commit only in their line endings: git shows no other line. */
function otherLineEndings() {
  const options = ["--raw", "--numstat", "-z", "--no-renames", "--relative", "--ignore-cr-at-eol", "--no-ext-diff", "--no-textconv"];
  const shown = listed(git("diff", ...options, "HEAD"));
  const changed = shown.filter((_, at) => shown[at - 1]?.startsWith(":"));
  const byLines = new Set(shown.map((one) => one.split("\t")[2]));
  const endings = changed.filter((path) => !byLines.has(path)).slice(0, MOST_HINTS);
  return Object.fromEntries(endings.map((path) => [path, "line_endings"]));
}

/** The size of what turbo stored of a task, which is what it uploads. Undefined if it is not there. */
function bytes({ hash }) {
  const file = [".turbo/cache", "node_modules/.cache/turbo"].map((folder) => `${folder}/${hash}.tar.zst`).find(existsSync);
  return file && statSync(file).size;
}

/** Whether a file names a team for turbo. */
function namesTeam(file) {
  try {
    return /"team_?(id|slug)"/i.test(readFileSync(file, "utf8"));
  } catch {
    return false;
  }
}

/** Whether turbo can have asked the remote cache. It does not without a team, or if TURBO_CACHE leaves it out. `larder run` knows. */
function canAskCache() {
  const { TURBO_TEAM, TURBO_TEAMID, TURBO_CACHE, XDG_CONFIG_HOME } = process.env;
  if (TURBO_CACHE && !/(^|,) *remote: *[rw]/.test(TURBO_CACHE)) return false;
  const folders = [XDG_CONFIG_HOME ?? `${homedir()}/.config`, `${homedir()}/Library/Application Support`];
  const files = ["turbo.json", "turbo.jsonc", ".turbo/config.json", ...folders.map((folder) => `${folder}/turborepo/config.json`)];
  return Boolean(TURBO_TEAM || TURBO_TEAMID) || files.some(namesTeam);
}

/** The number of the pull request that the job builds, by the variables of the CIs. Undefined without one. */
function pullRequest() {
  const { env } = process;
  const named = [env.GITHUB_REF?.match(/^refs\/pull\/(\d+)\//)?.[1], env.CIRCLE_PULL_REQUEST?.match(/\d+$/)?.[0]];
  const numbers = ["CI_MERGE_REQUEST_IID", "BUILDKITE_PULL_REQUEST", "BITBUCKET_PR_ID", "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER", "CHANGE_ID"];
  const number = Number([...named, ...numbers.map((name) => env[name])].find((one) => /^\d{1,9}$/.test(one ?? "")));
  return number || undefined;
}

/** The subject and the author of a commit. A merge that the CI made for a pull request says nothing by its own. */
function commit([, parents = "", author = "", subject = ""]) {
  const isMade = parents.includes(" ") && /^Merge [0-9a-f]{40} into [0-9a-f]{40}$/.test(subject);
  return isMade ? {} : { subject: subject.slice(0, MOST_TEXT), author: author.slice(0, MOST_TEXT) };
}

/** What git knows without the file of turbo. */
function repository() {
  const dirty = git("status", "--porcelain", "--untracked-files=no") !== "";
  const tracked = new Set(listed(git("ls-files", "-z")));
  const log = listed(git("log", `--max-count=${MOST_COMMITS + 1}`, "-z", "--format=%H%n%P%n%an%n%s"));
  const [head = [], ...before] = log.map((one) => one.split("\n"));
  return { commit: commit(head), ancestors: ancestors(before.map(([hash]) => hash)), dirty, tracked, endings: dirty ? otherLineEndings() : {} };
}

function report(file) {
  const asked = process.env.LARDER_INPUTS || "names";
  const hasInputs = asked === "names" || asked === "values";
  const known = hasInputs && repository();
  const name = file === "-" ? readFileSync(0, "utf8") : file;
  // Nobody needs it any more.
  if (!name) return;
  const summary = read(name);
  const { id, turboVersion, execution, scm, tasks } = summary;
  const body = {
    id,
    turboVersion,
    usedCache: canAskCache() || !tasks.some((one) => one.cache.status === "MISS" && one.execution && one.resolvedTaskDefinition?.cache !== false),
    execution: times(execution),
    scm: scm && { branch: scm.branch, sha: scm.sha, ...(hasInputs && { ...known.commit, pullRequest: pullRequest() }) },
    tasks: tasks.map((one) => ({
      package: one.package,
      task: one.task,
      hash: one.hash,
      ...(hasInputs && { bytes: bytes(one) }),
      cache: { status: one.cache.status, source: one.cache.source, timeSaved: one.cache.timeSaved },
      execution: times(one.execution),
    })),
  };
  if (hasInputs) {
    const { ancestors, dirty, tracked, endings } = known;
    const hinted = Object.entries({ ...outsideGit(tasks, tracked), ...endings }).slice(0, MOST_HINTS);
    const hints = { files: Object.fromEntries(hinted), packages: {} };
    Object.assign(body, { ancestors, dirty, inputs: inputsOf(summary, asked === "values"), hints });
  }
  const text = JSON.stringify(body);
  process.stdout.write(file === "-" ? text : gzipSync(text, { level: 9 }));
}

const time = (ms) => (ms < 60_000 ? `${Math.round(ms / 1000)} s` : `${Math.floor(ms / 60_000)} min ${Math.floor(ms / 1000) % 60} s`);

function hits(file) {
  const { tasks } = read(file);
  const found = tasks.filter((one) => one.cache.status === "HIT");
  const remote = found.filter((one) => one.cache.source === "REMOTE").length;
  const misses = tasks.filter((one) => one.cache.status !== "HIT" && one.execution).length;
  const saved = found.reduce((sum, one) => sum + (Number(one.cache.timeSaved) || 0), 0);
  console.log("| Hits | of these remote | Misses | Time saved |\n|---|---|---|---|");
  console.log(`| ${found.length} | ${remote} | ${misses} | ${Math.floor(saved / 60_000)} min ${Math.round(saved / 1000) % 60} s |\n`);
}

/** A name as code of Markdown: no markup, no mention, and no end of the cell. */
const code = (name) => `\`${String(name).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "?").replaceAll("`", "'").replaceAll("|", "\\|").slice(0, 200) || " "}\``;

const KINDS = {
  env: "variable",
  "global-env": "global variable",
  "global-file": "global file",
  external: "external packages of",
  "global-external": "external packages of",
  "global-internal": "workspace packages of",
  definition: "turbo.json:",
  "turbo-json": "turbo.json:",
};

/** Whether a commit made the difference. Only the repository knows it of a file. */
function classOf({ kind, subject, class: known }, committed) {
  if (known || !committed || !["file", "global-file"].includes(kind)) return known;
  return committed.has(subject) ? "code" : "setup";
}

/** The causes of a reply with what git knows here, those that cost most first. */
function causesOf({ baseline, causes }) {
  const changed = /^[0-9a-f]{40}$/.test(baseline.sha ?? "") && git("diff", "--name-only", "-z", "--no-renames", "--relative", baseline.sha, "HEAD");
  const committed = changed ? new Set(listed(changed)) : null;
  return causes.map((one) => ({ ...one, class: classOf(one, committed) }));
}

function causes(file) {
  const found = read(file).causes;
  if (!found) return;
  const all = causesOf(found);
  const built = found.changed - found.restored;
  const cost = (one) => (one.class === "setup" ? one.buildMs : 0);
  // What the comment of a pull request depends on comes first, as a comment of Markdown.
  console.log(`<!-- outside the code: ${all.reduce((sum, one) => sum + cost(one), 0)} ms -->`);
  const { sha, branch, id } = found.baseline;
  const where = sha ? `${code(sha.slice(0, 8))}${branch ? ` of ${code(branch)}` : ""}` : `run ${code(id)}`;
  console.log(`**Larder**: ${found.tasks} tasks compared with ${where}. ${built} of them were built with another hash, ${found.sameHashCount} with the same one.\n`);
  if (all.length) console.log("| Cause | Tasks | Build time |\n|---|---:|---:|");
  for (const one of all.slice(0, 8)) {
    const more = one.more ? ` and ${one.more} more` : "";
    const outside = one.class === "setup" ? ", not by this change" : "";
    console.log(`| ${KINDS[one.kind] ?? one.kind.replaceAll("-", " ")} ${code(one.subject)}${more} ${one.values.length ? code(one.values.join(", ")) : one.how}${outside} | ${one.directCount + one.below} | ${time(one.buildMs)} |`);
  }
  if (all.length) console.log("");
  const same = found.sameHash.filter((one) => one.reason).slice(0, 8);
  for (const one of same) console.log(`- ${code(one.task)} was built with the same hash: ${one.reason.replaceAll("_", " ")}`);
  if (same.length) console.log("");
}

const [what, file] = process.argv.slice(2);
const work = { report, hits, causes };
work[what](file);
