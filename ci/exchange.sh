#!/bin/sh
# Print a token for the cache, in exchange for the id token on standard input. Needs curl, and no other program.
#
# TURBO_API is the address of Larder, TURBO_TEAM the id or slug of the team. LARDER_RULE names one of several rules that
# accept the job. If the exchange fails, the reason is on standard error, and the status is 1.
set -eu

: "${TURBO_API:?is not set: the address of Larder, such as https://cache.example.com}"
: "${TURBO_TEAM:?is not set: the id or slug of the team}"

# curl reads the id token from standard input, because other processes can see the arguments of a program.
reply=$(curl -sS --max-time 30 "${TURBO_API%/}/login/oauth/token" \
  --data-urlencode grant_type=urn:ietf:params:oauth:grant-type:token-exchange \
  --data-urlencode subject_token_type=urn:ietf:params:oauth:token-type:id_token \
  --data-urlencode "team_id_or_slug=$TURBO_TEAM" \
  --data-urlencode "policy_id=${LARDER_RULE:-}" \
  --data-urlencode subject_token@-)

token=$(printf '%s' "$reply" | sed -n 's/.*"access_token": *"\([^"]*\)".*/\1/p')
if [ -z "$token" ]; then
  printf 'No token for the cache: %s\n' "$reply" >&2
  exit 1
fi
printf '%s\n' "$token"
