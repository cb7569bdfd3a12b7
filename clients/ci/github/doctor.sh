#!/bin/sh
# Run by action.yml: check the repository and the cache with `larder doctor`. Nothing that it finds fails the job.
set -u

# The token is in the environment, so a public index is never asked for a package of Larder by its name.
if [ ! -f "${LARDER_WHEEL:-}" ]; then
  echo "::notice::larder doctor did not run: name a file of the job, such as wheel: larder_cache-1.2.3-py3-none-any.whl."
  exit 0
fi
if ! command -v uvx > /dev/null; then
  echo "::notice::larder doctor did not run: it needs uv (https://docs.astral.sh/uv/)."
  exit 0
fi
case $LARDER_WHEEL in
  /*) ;;
  *) LARDER_WHEEL=./$LARDER_WHEEL ;;
esac
uvx --from "$LARDER_WHEEL" larder doctor \
  || echo "::notice::larder doctor has found something that keeps artifacts out of the cache. The lines above have it."
exit 0
