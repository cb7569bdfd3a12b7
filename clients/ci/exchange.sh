#!/bin/sh
# Print a token for the cache, in exchange for the id token on standard input. Needs curl, and no other program but those
# of every system.
#
# TURBO_API is the address of Larder, TURBO_TEAMID the id of the team. In its place, or as well, TURBO_TEAM can be the slug.
# LARDER_RULE names one of several rules that accept the job. If the exchange fails, the reason is on standard error, and the status is 1.
#
# Nothing that the server sends is printed unchecked: the log of a CI can have commands, and a token becomes a variable.
set -eu
LC_ALL=C
export LC_ALL

: "${TURBO_API:?is not set: the address of Larder, such as https://cache.example.com}"
: "${TURBO_TEAMID:-${TURBO_TEAM:?is not set, nor is TURBO_TEAMID: the id of the team}}"

case $TURBO_API in
  *[!!-~]*) api=no ;;
  http://* | https://*) api=yes ;;
  *) api=no ;;
esac
case ${TURBO_TEAMID:-}${TURBO_TEAM:-}${LARDER_RULE:-} in *[!A-Za-z0-9_-]*) names=no ;; *) names=yes ;; esac
if [ "$api$names" != yesyes ]; then
  printf 'No token for the cache: TURBO_API must be an address, TURBO_TEAMID and LARDER_RULE ids, TURBO_TEAM a slug.\n' >&2
  exit 1
fi

# curl reads the id token from standard input, because other processes can see the arguments of a program.
reply=$(curl -sS --max-time 30 --max-filesize 100000 "${TURBO_API%/}/login/oauth/token" \
  --data-urlencode grant_type=urn:ietf:params:oauth:grant-type:token-exchange \
  --data-urlencode subject_token_type=urn:ietf:params:oauth:token-type:id_token \
  --data-urlencode "team_id=${TURBO_TEAMID:-}" \
  --data-urlencode "team_id_or_slug=${TURBO_TEAM:-}" \
  --data-urlencode "policy_id=${LARDER_RULE:-}" \
  --data-urlencode subject_token@-)

# The first one.
token=${reply#*'"access_token":'}
token=${token#*'"'}
token=${token%%'"'*}
case $token in *[!A-Za-z0-9_-]*) token= ;; esac
if [ "${#token}" -lt 64 ] || [ "${#token}" -gt 256 ]; then
  # One line of printable ASCII, without what starts a command in the log of a CI.
  shown=$(printf '%s' "$reply" | tr -c ' -~' ' ' | sed 's/::*/:/g; s/##*/#/g' | cut -c 1-500)
  printf 'No token for the cache: %s\n' "$shown" >&2
  exit 1
fi
printf '%s\n' "$token"
