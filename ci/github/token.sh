#!/bin/sh
# Run by action.yml: get this job's id token, exchange it, and give turbo the result in the steps that follow.
#
# A job without `permissions: {id-token: write}`, such as that of a pull request from a fork, gets no id token. It builds
# without the cache, and this step says so.
set -eu

if [ -z "${ACTIONS_ID_TOKEN_REQUEST_URL:-}" ]; then
  printf '%s\n' "::notice::This job has no id token, so it builds without the cache. Jobs of forks never have one; others need permissions: {id-token: write}."
  exit 0
fi

audience=${TURBO_API%/}
# Three tries, each with a new id token, because a used one is refused.
for pause in 1 2 0; do
  if id_token=$(printf 'header = "authorization: bearer %s"\n' "$ACTIONS_ID_TOKEN_REQUEST_TOKEN" \
    | curl -sSf --max-time 30 -K - --get --data-urlencode "audience=$audience" "$ACTIONS_ID_TOKEN_REQUEST_URL" \
    | sed -n 's/.*"value": *"\([A-Za-z0-9._-]*\)".*/\1/p') \
    && token=$(printf '%s' "$id_token" | sh "$(dirname "$0")/../exchange.sh"); then
    # exchange.sh has checked all three: none has more than one line.
    printf '::add-mask::%s\n' "$token"
    printf 'token=%s\n' "$token" >> "$GITHUB_OUTPUT"
    printf '%s\n' "TURBO_API=$audience" "TURBO_TOKEN=$token" >> "$GITHUB_ENV"
    [ -z "${TURBO_TEAMID:-}" ] || printf '%s\n' "TURBO_TEAMID=$TURBO_TEAMID" >> "$GITHUB_ENV"
    [ -z "${TURBO_TEAM:-}" ] || printf '%s\n' "TURBO_TEAM=$TURBO_TEAM" >> "$GITHUB_ENV"
    exit 0
  fi
  sleep "$pause"
done
printf '%s\n' "::warning::No token for the cache, so the build does not use it. The lines above have the reason."
