#!/bin/sh
# Report the newest run of `turbo run --summarize` in this folder. Needs curl and node.
#
# TURBO_API, TURBO_TEAMID or TURBO_TEAM, and TURBO_TOKEN are those of turbo. Only the fields that Larder reads are sent: no inputs, commands
# or variables of tasks. If something fails, the reason is on standard error, and the job goes on.
#
# With LARDER_SUMMARY=true, the summary of a GitHub job gets hits, misses and time saved, also if the job has no token.
set -u

file=$(ls -t .turbo/runs/*.json 2>/dev/null | head -n 1)
hits_and_misses='
const { tasks } = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
const hits = tasks.filter((one) => one.cache.status === "HIT");
const remote = hits.filter((one) => one.cache.source === "REMOTE").length;
const misses = tasks.filter((one) => one.cache.status !== "HIT" && one.execution).length;
const seconds = Math.round(hits.reduce((sum, one) => sum + (Number(one.cache.timeSaved) || 0), 0) / 1000);
console.log(`| Hits | of these remote | Misses | Time saved |\n|---|---|---|---|`);
console.log(`| ${hits.length} | ${remote} | ${misses} | ${Math.floor(seconds / 60)} min ${seconds % 60} s |\n`);
'
if [ -n "$file" ] && [ "${LARDER_SUMMARY:-}" = true ] && [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  node -e "$hits_and_misses" "$file" >> "$GITHUB_STEP_SUMMARY" || echo "The run is not in the summary." >&2
fi

if [ -z "$file" ] || [ -z "${TURBO_API:-}" ] || [ -z "${TURBO_TOKEN:-}" ]; then
  echo "No run to report: it needs turbo run --summarize, TURBO_API and TURBO_TOKEN." >&2
  exit 0
fi

# It is part of curl's configuration.
case $TURBO_TOKEN in
  *[!A-Za-z0-9._~+/=-]*)
    echo "The run was not reported: TURBO_TOKEN has characters that no token has." >&2
    exit 0
    ;;
esac

read_by_larder='
const { id, turboVersion, execution, scm, tasks } = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
const times = (one) => one && { startTime: one.startTime, endTime: one.endTime, exitCode: one.exitCode };
const task = (one) => ({
  package: one.package,
  task: one.task,
  hash: one.hash,
  cache: { status: one.cache.status, source: one.cache.source, timeSaved: one.cache.timeSaved },
  execution: times(one.execution),
});
const commit = scm && { branch: scm.branch, sha: scm.sha };
console.log(JSON.stringify({ id, turboVersion, execution: times(execution), scm: commit, tasks: tasks.map(task) }));
'
# The token comes in a file of its own, because other processes can see the arguments of a program.
reply=$(node -e "$read_by_larder" "$file" \
  | curl -sS --max-time 30 --max-filesize 100000 -K /dev/fd/3 "${TURBO_API%/}/v1/runs?teamId=${TURBO_TEAMID:-}&slug=${TURBO_TEAM:-}" \
    -H "Content-Type: application/json" -H "x-artifact-client-ci: ${LARDER_CI:-}" --data-binary @- 3<<LINES
header = "Authorization: Bearer $TURBO_TOKEN"
LINES
)
case $reply in
  *'"recorded"'*) ;;
  *)
    # One line of printable ASCII, without what starts a command in the log of a CI.
    shown=$(printf '%s' "$reply" | LC_ALL=C tr -c ' -~' ' ' | sed 's/::*/:/g; s/##*/#/g' | cut -c 1-500)
    printf 'The run was not reported: %s\n' "$shown" >&2
    ;;
esac
