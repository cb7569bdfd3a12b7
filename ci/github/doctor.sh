#!/bin/sh
# Run by action.yml: check the repository and the cache with `larder doctor`. Nothing that it finds fails the job.
set -u

case ${LARDER_VERSION:-} in
  '' | *[!0-9.]*)
    echo "::notice::larder doctor did not run: name the version of larder-cache, such as version: 1.2.3."
    exit 0
    ;;
esac
if ! command -v uvx > /dev/null; then
  echo "::notice::larder doctor did not run: it needs uv (https://docs.astral.sh/uv/)."
  exit 0
fi
uvx "larder-cache@$LARDER_VERSION" doctor \
  || echo "::notice::larder doctor has found something that keeps artifacts out of the cache. The lines above have it."
exit 0
