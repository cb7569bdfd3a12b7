// The words of causes: what made the hash of a task another one, and why a known hash was not restored.

// <<<cog why.words() >>>
const CAUSE_TITLES = {
  "turbo-version": "turbo-version",
  "turbo-json": "turbo.json",
  "env-mode": "env mode",
  "framework": "framework",
  "engines": "engines",
  "global-file": "global file",
  "global-env": "global variable",
  "global-external": "lockfile",
  "global-internal": "root dependencies",
  "file": "file",
  "external": "lockfile",
  "env": "variable",
  "definition": "turbo.json",
  "arguments": "arguments",
  "task-env-mode": "env mode",
  "moved": "moved",
  "edge": "task graph",
  "value": "variable",
  "unknown": "unknown",
};
const HINT_WORDS = {
  "line_endings": "only its line endings differ",
  "letter_case": "only its letter case",
  "ignored": "git ignores it, and the inputs in turbo.json name it",
  "untracked": "not in git",
  "uncommitted": "not committed",
  "dependencies": "dependencies: {}",
  "script": "the script {} changed",
  "packages": "{}",
  "no_lockfile": "no lockfile on one side",
  "every_package": "another lockfile, package manager or a shared package",
  "example": "for example {}",
  "inferred": "inferred from the framework",
  "volatile_name": "its name says that it changes with each commit or job",
  "missing_dependency": "depends on {}, which only one of the runs has",
  "other_version": "turbo {}",
};
const ADVICE = {
  "source-file": "Expected if you changed it. To leave files out, narrow `inputs` in turbo.json.",
  "file-outside-git": "Commit it, or add it to .gitignore: turbo hashes untracked files, and skips ignored ones.",
  "ignored-file": "Take it out of `inputs` or `globalDependencies`, or make every computer write the same file.",
  "line-endings": "Add `* text=auto eol=lf` to .gitattributes, so that every checkout has the same bytes.",
  "letter-case": "Give the file the same name everywhere: some file systems ignore the case of letters.",
  "workspace-dependency": "Expected if you changed dependencies. The tasks of the package now depend on others.",
  "script": "Expected if you changed it. package.json is an input of every task of its package.",
  "external-packages": "Expected after an update. Only packages that use the dependency miss.",
  "lockfile": "Use the same package manager and lockfile on every computer.",
  "missing-lockfile": "Commit the lockfile. Without one, turbo hashes no external packages.",
  "root-dependencies": "Move the dependency into the packages that use it. Those of the root reach every task.",
  "variable": "Give it the same value everywhere. If the output does not depend on it, use `passThroughEnv`.",
  "volatile-variable": "Take it out of `env` in turbo.json, or read it when the app starts.",
  "inferred-variable": "Exclude it with `!NAME` in `env`, or give it the same value everywhere.",
  "global-variable": "Move it from `globalEnv` to `env` of the tasks that use it.",
  "global-file": "Move it from `globalDependencies` to `inputs` of the tasks that use it.",
  "global-settings": "Expected if you changed turbo.json. Prefer the settings of single tasks to global ones.",
  "task-settings": "Expected if you changed turbo.json.",
  "environment-mode": "Set `envMode` in turbo.json, and no other --env-mode on some computers.",
  "framework-inference": "Use the same --framework-inference everywhere.",
  "engines": "Expected if you changed `engines` in package.json of the root.",
  "arguments": "Pass the same arguments after `--` everywhere, or put them into the script.",
  "moved-package": "Expected once: the folder of a package is part of the hash.",
  "task-graph": "Compare runs of the same tasks and packages.",
  "version-of-turbo": "Use one version of turbo everywhere. This step of versions hashes in another way.",
  "unknown-value": "Perhaps: only names are kept. Keep a code of each value, and Larder names the variable.",
  "unknown-cause": "Nothing in the summaries explains it. Compare with a run of the same commit and turbo.",
};
// <<<end>>>

/** Why a task was built although a run before had its hash, and what to do about it. */
const REASONS = {
  not_cached: ["its cache is false, so it is never cached"],
  too_large: ["too large without preflight, so never stored", "Set preflight in turbo.json."],
  not_asked: ["turbo did not ask the cache: forced, turned off or without a token", "Leave out --force, and check that the job has TURBO_TOKEN."],
  unusable: ["Larder had it, and turbo could not use the answer", "Check the signature key and the connection."],
  at_once: ["another run built it at the same time", "Start such jobs one after the other if the build is expensive."],
  other_scope: ["only in a cache that this credential does not read", "A trusted job has to build it first."],
  hidden: ["hidden since the team was protected"],
  caching_off: ["caching was paused or off"],
  deleted: ["deleted"],
  expired: ["expired", "Ask the operator for a longer retention."],
  evicted: ["evicted, because the quota was full", "Ask the operator for a larger quota."],
  refused: ["the upload was refused", "Check the permissions of the key and the quota."],
  unknown: ["not known why"],
};

const UNUSED_ADVICE = "Check that turbo has TURBO_TEAM and TURBO_TOKEN, and that its remote cache is on.";

/** What a cause is about, such as `src/a.js and 3 more`. `name` shows a name. */
function causeSubject({ kind, subject, task, more, advice }, name) {
  const others = more ? ` and ${formats.number.format(more)} more` : "";
  const words = {
    "env-mode": "environment mode",
    "task-env-mode": ["environment mode of ", name(task)],
    framework: "framework inference",
    engines: "engines in package.json",
    "global-external": "dependencies of the root package",
    "global-internal": "workspace packages that the root package.json depends on",
    external: advice === "lockfile" ? `external dependencies of all ${more + 1} packages` : ["external dependencies of ", subject ? name(subject) : "the package", others],
    definition: [name(subject), " of ", name(task), " in turbo.json"],
    arguments: "arguments after --",
    moved: ["the folder of ", name(subject)],
    edge: "dependencies between tasks",
    value: ["perhaps the value of ", name(subject), more ? ` or ${formats.number.format(more)} more` : ""],
    unknown: "something that turbo hashes and does not report",
  }[kind];
  return words ?? [name(subject), others];
}

/** A cause in one line: file: src/a.js changed (not in git). */
function CauseText({ of }) {
  const name = (text) => html`<${Name} of=${text ?? ""} />`;
  const hints = of.hints ?? (of.hint ? [{ hint: of.hint, values: [] }] : []);
  const about = hints.map(({ hint, values }) => (HINT_WORDS[hint] ?? hint).replace("{}", values.map(visible).join(", ") || "…"));
  const what = of.values?.length ? of.values.map(visible).join(", ") : of.how;
  return html`<strong>${CAUSE_TITLES[of.kind] ?? of.kind}:</strong> ${causeSubject(of, name)} ${what}${about.length > 0 && html` <span class="soft">(${about.join("; ")})</span>`}`;
}

const TICK = "\x60";

/** A sentence with the words between backticks as code. */
const Advice = ({ text }) => text.split(TICK).map((part, index) => (index % 2 ? html`<code>${part}</code>` : part));

/** Whether a commit made the difference, as text. Bars have a pattern for it, too. */
const CLASS_WORDS = { code: "code", setup: "setup" };
const ClassTag = ({ of }) => of && html`<${Tag} kind=${of === "setup" ? "warn" : ""}>${CLASS_WORDS[of] ?? of}<//>`;
