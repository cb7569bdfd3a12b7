// Numbers, sizes and times as text, in the order of the user's region.

const formats = {
  number: new Intl.NumberFormat(locale()),
  tenths: new Intl.NumberFormat(locale(), { maximumFractionDigits: 1 }),
  dollars: new Intl.NumberFormat(locale(), { style: "currency", currency: "USD", maximumFractionDigits: 0 }),
  cents: new Intl.NumberFormat(locale(), { style: "currency", currency: "USD" }),
  wholePercent: new Intl.NumberFormat(locale(), { style: "percent", maximumFractionDigits: 0 }),
  percent: new Intl.NumberFormat(locale(), { style: "percent", maximumFractionDigits: 1 }),
  moment: new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "short" }),
  date: new Intl.DateTimeFormat(locale(), { dateStyle: "medium" }),
  // Usage is counted in days of UTC.
  usageDay: new Intl.DateTimeFormat(locale(), { month: "short", day: "numeric", timeZone: "UTC" }),
  time: new Intl.DateTimeFormat(locale(), { timeStyle: "short" }),
  hour: new Intl.DateTimeFormat(locale(), { hour: "numeric" }),
  list: new Intl.ListFormat(locale()),
  relative: new Intl.RelativeTimeFormat(locale(), { numeric: "auto" }),
};

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Bytes in decimal units, as the command line shows them: 1.5 GB. */
function bytesText(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** power;
  return `${value < 10 ? formats.tenths.format(value) : formats.number.format(Math.round(value))}\u00a0${units[power]}`;
}

/** Milliseconds in the two largest units, as the command line shows them: 1 min 17 s. */
function durationText(ms) {
  if (ms < 59_500) return `${formats.tenths.format(ms / SECOND)} s`;
  ms = Math.round(ms / SECOND) * SECOND;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ${Math.floor((ms % MINUTE) / SECOND)} s`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`;
  return `${formats.number.format(Math.floor(ms / DAY))} d ${Math.floor((ms % DAY) / HOUR)} h`;
}

/** A moment relative to now: 2 minutes ago, in 12 days. */
function relativeText(at) {
  const ms = at - Date.now();
  const [unit, size] = [
    ["day", DAY],
    ["hour", HOUR],
    ["minute", MINUTE],
    ["second", SECOND],
  ].find(([, size]) => Math.abs(ms) >= size) ?? ["second", SECOND];
  return formats.relative.format(Math.round(ms / size), unit);
}

function countText(count, one, several) {
  return `${formats.number.format(count)} ${count === 1 ? one : several}`;
}

const partText = (entry) => `${countText(entry.artifacts, "artifact", "artifacts")}, ${bytesText(entry.sizeBytes)}`;

/** A day of UTC some days ago, such as 2026-11-21. */
function dayBefore(days) {
  return new Date(Date.now() - days * DAY).toISOString().slice(0, 10);
}

/** A text from outside, with characters that control or reorder text shown by their code. */
function visible(text) {
  return String(text).replace(
    /[\p{Cc}\p{Bidi_Control}]/gu,
    (sign) => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
}

const CI_NAMES = {
  GITHUB_ACTIONS: "GitHub Actions",
  GITLAB: "GitLab CI",
  CIRCLE: "CircleCI",
  BUILDKITE: "Buildkite",
  BITBUCKET: "Bitbucket Pipelines",
  JENKINS: "Jenkins",
  TEAMCITY: "TeamCity",
  AZURE_PIPELINES: "Azure Pipelines",
  CODEBUILD: "AWS CodeBuild",
  other: "Other",
};

/** The name of a CI vendor. Builds without one ran on someone's computer. */
function ciText(ci) {
  return ci === null ? "Computers (no CI)" : (CI_NAMES[ci] ?? visible(ci).replaceAll("_", " "));
}

/** The build tools of the sidecar, as larder/usage/events.py lists them. Their hashes begin with the name. */
const TOOLS = ["bazel", "ccache", "gradle", "moon", "nx", "rush", "sccache"];

/** The build tool of a hash. Those of turbo have no prefix. */
const toolOf = (hash) => (hash.includes("-") ? hash.slice(0, hash.indexOf("-")) : "turbo");

const ROLES = { OWNER: "Owner", ADMIN: "Admin", MEMBER: "Member", DEVELOPER: "Developer", VIEWER: "Viewer" };

/** The roles to choose from. A developer is a member by another name, which only clients give. */
// <<<cog roles.words() >>>
const ROLE_WORDS = {
  "OWNER": "Everything, also the team's protection, its owners and its deletion.",
  "ADMIN": "Manages members, keys, CI rules and artifacts.",
  "MEMBER": "Reads and writes the cache.",
  "VIEWER": "Only reads the cache.",
};
// <<<end>>>

