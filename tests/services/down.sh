#!/usr/bin/env bash
# Stops the stack in $SERVICES_RUN_DIR (or the folder given) and removes its folder; with --keep the logs and data stay.
source "$(dirname "$0")/lib.sh"

keep=
for argument in "$@"; do
  case "$argument" in --keep) keep=yes ;; -*) fail "usage: down.sh [--keep] [RUN_DIR]" ;; *) export SERVICES_RUN_DIR="$argument" ;; esac
done
need_run_dir
[ -d "$run" ] || exit 0
stop_all() {
  local name waiting=()
  for name in "$@"; do
    [ -f "$run/$name/pid" ] || continue
    "$here/$name.sh" stop & waiting+=($!)
  done
  for name in "${waiting[@]}"; do wait "$name"; done
}
stop_all connect registry          # clients of the others first, so that they leave in order
stop_all kafka postgres mariadb
release_ports
[ -n "$keep" ] || rm -rf "$run"
