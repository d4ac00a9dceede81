#!/usr/bin/env bash
# Starts a stack: `up.sh [NAME..]`, all of postgres mariadb kafka connect registry unless said; connect brings kafka along.
# The stack lives in $TRIBUTARY_RUN_DIR, a fresh folder unless set; its `env` has the addresses: set -a; . "$TRIBUTARY_RUN_DIR/env"; set +a
# Stacks may live side by side. Prints the folder as its last line. `down.sh` stops the stack.
source "$(dirname "$0")/lib.sh"

[ $# -gt 0 ] || set -- postgres mariadb kafka connect registry
export TRIBUTARY_RUN_DIR="${TRIBUTARY_RUN_DIR:-$(mktemp -d /tmp/tributary-run.XXXXXX)}"
mkdir -p "$TRIBUTARY_RUN_DIR"; chmod 755 "$TRIBUTARY_RUN_DIR"
TRIBUTARY_RUN_DIR="$(cd "$TRIBUTARY_RUN_DIR" && pwd)"
need_run_dir

begin="$(clock)"; names=(); starting=()
for name in "$@"; do
  [ -x "$here/$name.sh" ] || fail "no service $name"
  # The worker is started at once and looks for the broker itself, so that both load at the same time.
  if [ "$name" = connect ] && [[ " $* " != *" kafka "* ]] && ! pid_of kafka >/dev/null; then names+=(kafka); fi
  names+=("$name")
done
for name in "${names[@]}"; do
  ! pid_of "$name" >/dev/null || continue
  port "$name" >/dev/null
  "$here/$name.sh" start & starting+=("$!:$name")
done
failed=()
for entry in "${starting[@]}"; do wait "${entry%%:*}" || failed+=("${entry#*:}"); done
if [ ${#failed[@]} -gt 0 ]; then
  "$here/down.sh" --keep >&2
  fail "did not start: ${failed[*]}; logs are kept in $run"
fi
{ echo "TRIBUTARY_RUN_DIR=$run"; for file in "$run"/*/env; do cat "$file"; done; } > "$run/env"
printf 'up: %s in %s s\n' "${names[*]}" "$(since "$begin")" >&2
echo "$run"
