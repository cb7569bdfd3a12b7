#!/bin/sh
# Run by action.yml: get this job's id token, exchange it, and give turbo the result in the steps that follow.
#
# A job without `permissions: {id-token: write}`, such as that of a pull request from a fork, gets no id token. It builds
# without the cache, and this step says so.
set -eu

# Write lines to the summary of the job, if the input `summary` asks for one.
summarize() {
  if [ "${LARDER_SUMMARY:-}" = true ] && [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    printf '%s\n' '### Larder' '' "$@" '' >> "$GITHUB_STEP_SUMMARY"
  fi
}

# ci/report-run.sh adds what the build takes from the cache.
[ "${LARDER_SUMMARY:-}" != true ] || printf 'LARDER_SUMMARY=true\n' >> "$GITHUB_ENV"

if [ -z "${ACTIONS_ID_TOKEN_REQUEST_URL:-}" ]; then
  printf '%s\n' "::notice::This job has no id token, so it builds without the cache. Jobs of forks never have one; others need permissions: {id-token: write}."
  summarize "This job has no id token, so it builds without the cache. Jobs of forks never have one; others need \`permissions: {id-token: write}\`."
  exit 0
fi

reasons=$(mktemp)
trap 'rm -f "$reasons"' EXIT
audience=${TURBO_API%/}
# Three tries, each with a new id token, because a used one is refused.
for pause in 1 2 0; do
  if id_token=$(printf 'header = "authorization: bearer %s"\n' "$ACTIONS_ID_TOKEN_REQUEST_TOKEN" \
    | curl -sSf --max-time 30 -K - --get --data-urlencode "audience=$audience" "$ACTIONS_ID_TOKEN_REQUEST_URL" 2> "$reasons" \
    | sed -n 's/.*"value": *"\([A-Za-z0-9._-]*\)".*/\1/p') \
    && token=$(printf '%s' "$id_token" | sh "$(dirname "$0")/../exchange.sh" 2>> "$reasons"); then
    # exchange.sh has checked all three: none has more than one line.
    printf '::add-mask::%s\n' "$token"
    printf 'token=%s\n' "$token" >> "$GITHUB_OUTPUT"
    printf '%s\n' "TURBO_API=$audience" "TURBO_TOKEN=$token" >> "$GITHUB_ENV"
    [ -z "${TURBO_TEAMID:-}" ] || printf '%s\n' "TURBO_TEAMID=$TURBO_TEAMID" >> "$GITHUB_ENV"
    [ -z "${TURBO_TEAM:-}" ] || printf '%s\n' "TURBO_TEAM=$TURBO_TEAM" >> "$GITHUB_ENV"
    summarize "This job uses the cache of the team \`${TURBO_TEAM:-$TURBO_TEAMID}\`."
    exit 0
  fi
  cat "$reasons" >&2
  sleep "$pause"
done
printf '%s\n' "::warning::No token for the cache, so the build does not use it. The lines above have the reason."
# Printable ASCII, indented by four spaces: code, whatever it says.
summarize "No token for the cache, so the build does not use it:" '' \
  "$(tail -n 1 "$reasons" | LC_ALL=C tr -c ' -~\n' ' ' | cut -c 1-500 | sed 's/^/    /')"
