#!/usr/bin/env bash
# Starts a stack: `up.sh [NAME..]`, all of postgres mariadb kafka connect registry unless said; connect brings kafka along.
# The stack lives in $SERVICES_RUN_DIR, a fresh folder unless set; its `env` has the addresses: set -a; . "$SERVICES_RUN_DIR/env"; set +a
# Stacks may live side by side. Prints the folder as its last line. `down.sh` stops the stack.
source "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- postgres mariadb kafka connect registry
export SERVICES_RUN_DIR="${SERVICES_RUN_DIR:-$(mktemp -d /tmp/tributary-run.XXXXXX)}"
mkdir -p "$SERVICES_RUN_DIR"; chmod 755 "$SERVICES_RUN_DIR"
SERVICES_RUN_DIR="$(cd "$SERVICES_RUN_DIR" && pwd)"
need_run_dir

begin="$(clock)"
names="$*"; [[ " $names " != *" connect "* ]] || [[ " $names " == *" kafka "* ]] || names="kafka $names"
# Starts a service that does not run yet; says its name in the file of failures if that does not work.
up() { pid_of "$1" >/dev/null || "$here/$1.sh" start || { echo "$1" >> "$run/failed"; return 1; }; }
rm -f "$run/failed"
for name in $names; do [ -x "$here/$name.sh" ] && [[ $name != @(up|down|install|selftest|dag|lib) ]] || fail "no service $name"; done
for name in $names; do
  case "$name" in
    connect) ;;
    kafka) { up kafka && if [[ " $names " == *" connect "* ]]; then up connect; fi; } & ;;   # the worker wants a broker
    *) up "$name" & ;;
  esac
done
wait
if [ -s "$run/failed" ]; then
  failed="$(tr '\n' ' ' < "$run/failed")"
  "$here/down.sh" --keep >&2
  fail "did not start: $failed; logs are kept in $run"
fi
{ echo "SERVICES_RUN_DIR=$run"; for file in "$run"/*/env; do cat "$file"; done; } > "$run/env"
printf 'up: %s in %s s\n' "$names" "$(since "$begin")" >&2
echo "$run"
