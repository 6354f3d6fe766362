#!/usr/bin/env bash
# Runs node-authorizer with the words of ARGS, which are separated by spaces or lines. No shell reads
# them: quotes, variables and patterns have no meaning. With BASELINE, that file is given as --baseline.
# With OUTPUT, the result goes to that file.
# The exit status is that of node-authorizer.
set -euo pipefail

read -r -d '' -a words <<<"$ARGS" || true # read fails at the end of its input
if [[ ${#words[@]} -eq 0 ]]; then
  exit 0 # the action only installs
fi
if [[ -n ${BASELINE:-} ]]; then
  words+=("--baseline=$BASELINE")
fi
if [[ -n ${OUTPUT:-} ]]; then
  exec node-authorizer "${words[@]}" >"$OUTPUT"
fi
exec node-authorizer "${words[@]}"
