#!/bin/sh
# Report runs of `turbo run --summarize`: the files that are named, or the newest one in this folder. Needs curl and node.
#
# TURBO_API, TURBO_TEAMID or TURBO_TEAM, and TURBO_TOKEN are those of turbo. run-report.mjs says what is sent, and what
# LARDER_INPUTS changes. If something fails, the reason is on standard error, and the job goes on.
#
# With LARDER_SUMMARY=true, the summary of a GitHub job gets hits, misses and time saved, also if the job has no token, and
# why tasks missed. LARDER_MARKDOWN names a file that gets the same in every CI.
set -u

here=$(dirname "$0")
ci=${LARDER_CI:-}
for known in GITHUB_ACTIONS:GITHUB_ACTIONS GITLAB_CI:GITLAB CIRCLECI:CIRCLE BUILDKITE:BUILDKITE \
  BITBUCKET_BUILD_NUMBER:BITBUCKET TF_BUILD:AZURE_PIPELINES JENKINS_URL:JENKINS; do
  eval "[ -z \"\${${known%%:*}:-}\" ]" || ci=${ci:-${known#*:}}
done
[ "$#" -gt 0 ] || set -- "$(ls -t .turbo/runs/*.json 2>/dev/null | head -n 1)"
markdown=${LARDER_MARKDOWN:-}
if [ -z "$markdown" ] && [ "${LARDER_SUMMARY:-}" = true ]; then markdown=${GITHUB_STEP_SUMMARY:-}; fi

# One line of printable ASCII, without what starts a command in the log of a CI.
plain() {
  printf '%s' "$1" | LC_ALL=C tr -c ' -~' ' ' | sed 's/::*/:/g; s/##*/#/g' | cut -c 1-500
}

reply=$(mktemp)
body=$(mktemp)
trap 'rm -f "$reply" "$body"' EXIT
for file; do
  if [ -n "$file" ] && ! node "$here/run-report.mjs" report "$file" > "$body" 2>/dev/null; then
    echo "The run was not reported: its file is damaged." >&2
    continue
  fi
  if [ -n "$file" ] && [ -n "$markdown" ]; then node "$here/run-report.mjs" hits "$file" >> "$markdown"; fi
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
  # The token comes in a file of its own, because other processes can see the arguments of a program.
  curl -sS --max-time 30 --max-filesize 1000000 -K /dev/fd/3 -o "$reply" \
    "${TURBO_API%/}/v1/runs?teamId=${TURBO_TEAMID:-}&slug=${TURBO_TEAM:-}" \
    -H "Content-Type: application/octet-stream" -H "x-artifact-client-ci: $ci" \
    --data-binary "@$body" 3<<LINES
header = "Authorization: Bearer $TURBO_TOKEN"
LINES
  if ! grep -q '"recorded"' "$reply"; then
    printf 'The run was not reported: %s\n' "$(plain "$(cat "$reply")")" >&2
  elif [ -n "$markdown" ]; then
    node "$here/run-report.mjs" causes "$reply" >> "$markdown" 2>/dev/null || echo "The causes are not in the summary." >&2
  fi
done
