// The step of action.yml: exchange the id token of the job for a token, and check the repository if the job asks for it.
import { spawnSync } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const { env } = process;
const input = (name) => (env[`INPUT_${name.toUpperCase()}`] ?? "").trim();

const asked = { TURBO_API: input("api"), TURBO_TEAMID: input("team_id"), TURBO_TEAM: input("team"), LARDER_RULE: input("rule"), LARDER_SUMMARY: input("summary") };
const { status } = spawnSync("sh", [join(here, "token.sh")], { env: { ...env, ...asked }, stdio: "inherit" });

// token.sh has checked that the token has one line of few characters.
const token = readFileSync(env.GITHUB_OUTPUT, "utf8").match(/^token=(.*)$/m)?.[1] ?? "";
appendFileSync(env.GITHUB_STATE, `startedAt=${Date.now()}\ntoken=${token}\n`);
if (input("report") !== "false") appendFileSync(env.GITHUB_ENV, "TURBO_RUN_SUMMARY=true\n");

if (input("doctor") === "true") {
  const variables = { TURBO_API: asked.TURBO_API, TURBO_TEAMID: asked.TURBO_TEAMID, TURBO_TEAM: asked.TURBO_TEAM, TURBO_TOKEN: token };
  const known = Object.fromEntries(Object.entries(variables).filter(([, value]) => value));
  spawnSync("sh", [join(here, "doctor.sh")], { env: { ...env, ...(token && known), LARDER_WHEEL: input("wheel") }, stdio: "inherit" });
}
process.exit(status ?? 1);
