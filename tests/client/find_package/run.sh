#!/usr/bin/env bash
# Installs a build into a fresh prefix, builds the example against it with
# find_package, and runs it with the installed daemon.
#
#   run.sh BUILD-DIR SOURCE-DIR GENERATOR
set -euo pipefail
build=$1 source=$2 generator=$3
work=$(mktemp -d)
export KILN_SOCKET=$work/kilnd.sock KILN_CACHE_DIR=$work/cache
export XDG_STATE_HOME=$work/state PATH=$work/prefix/bin:$PATH
clean_up() {
  local pid
  pid=$(cat "$work/kilnd.sock.lock" 2>/dev/null) && kill "$pid" || true
  rm -rf "$work"
}
trap clean_up EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
cmake -S "$(dirname "$0")" -B "$work/build" -G "$generator" \
  -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DKILN_EXAMPLE="$source/examples/client/example.cc" >/dev/null
cmake --build "$work/build"
"$work/build/example" | tee "$work/out"
grep -qF 'y[0,0,4,4] = 14 ' "$work/out"
"$work/prefix/bin/kiln" --no-start info
