# shellcheck shell=bash
# Shared by the scripts beside it: run folder, free ports, processes that are started, waited for, paused and stopped by pid.
# A stack lives in $SERVICES_RUN_DIR: one folder a service (pid, log, port files, env, data), and `env` with all addresses.

set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
services_dir="${SERVICES_DIR:-$HOME/.cache/tributary-services}"
reserved_ports=/tmp/tributary-ports

fail() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# The version pinned for NAME.
version() { sed -n "s/^$1=//p" "$here/versions"; }

# Seconds since the epoch, with hundredths; and the difference to an earlier one.
clock() { local now=$EPOCHREALTIME; printf '%s' "${now%????}"; }
since() { awk -v a="$1" -v b="$(clock)" 'BEGIN { printf "%.1f", b - a }'; }

need_run_dir() {
  [ -n "${SERVICES_RUN_DIR:-}" ] || fail "SERVICES_RUN_DIR is not set: it names the stack's folder (up.sh prints it)"
  run="$SERVICES_RUN_DIR"
}

# The port this stack uses under LABEL: chosen at the first call, the same after a restart. Ports lie below the kernel's range for
# outgoing connections, so that none is taken while its server is down; a link in a shared folder keeps other stacks off it.
port() {
  local file="$run/ports/$1" chosen holder
  if [ ! -s "$file" ]; then
    mkdir -p "$run/ports"; mkdir -p -m 1777 "$reserved_ports"
    while :; do
      chosen=$((20000 + RANDOM % 12000))
      holder="$(readlink "$reserved_ports/$chosen" || true)"
      [ -n "$holder" ] && [ ! -d "$holder" ] && rm -f "$reserved_ports/$chosen"
      if ! (exec 3<>"/dev/tcp/127.0.0.1/$chosen") 2>/dev/null && ln -s "$run" "$reserved_ports/$chosen" 2>/dev/null; then break; fi
    done
    echo "$chosen" > "$file"
  fi
  cat "$file"
}

release_ports() {
  local file
  for file in "$run"/ports/*; do [ ! -f "$file" ] || rm -f "$reserved_ports/$(cat "$file")"; done
}

# Runs a command as an unprivileged user when we are root (the database servers refuse root), else as ourselves.
as_user() {
  local user="$1"; shift
  if [ "$(id -u)" = 0 ]; then setpriv --reuid="$user" --regid="$user" --init-groups -- "$@"; else "$@"; fi
}

# When the process was started, in clock ticks since boot: tells it from a later one with the same pid.
started_at() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# The pid of NAME, if the process we started still lives.
pid_of() {
  local pid ticks
  [ -s "$run/$1/pid" ] && read -r pid ticks < "$run/$1/pid" || return 1
  [ "$(started_at "$pid")" = "$ticks" ] && [ "$(sed 's/.*) //' "/proc/$pid/stat" | cut -c1)" != Z ] && echo "$pid"
}

# PID and all its descendants, parents first.
family() { local child; echo "$1"; for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do family "$child"; done; }

signal_family() { local pid; for pid in $(family "$2"); do kill "-$1" "$pid" 2>/dev/null || true; done; }

# Starts `AS_USER CMD..` as NAME in a session of its own; its output goes to $run/NAME/log. AS_USER is `-` for ourselves.
start() {
  local name="$1" user="$2"; shift 2
  ! pid_of "$name" >/dev/null || fail "$name runs already"
  mkdir -p "$run/$name"
  if [ "$user" = - ] || [ "$(id -u)" != 0 ]; then
    setsid "$@" >>"$run/$name/log" 2>&1 </dev/null &
  else
    setsid setpriv --reuid="$user" --regid="$user" --init-groups -- "$@" >>"$run/$name/log" 2>&1 </dev/null &
  fi
  echo "$! $(started_at "$!")" > "$run/$name/pid"
  disown
}

# Seconds that a service may take to answer. Generous: it only bounds a hang, and a machine that compiles beside may be slow.
start_limit="${SERVICES_START_SECONDS:-180}"

# Waits until CMD.. succeeds; gives up after SECONDS, or at once when NAME has died. Shows the end of the log then.
wait_until() {
  local name="$1" limit="$2" end; shift 2
  end=$((SECONDS + limit))
  until "$@" >/dev/null 2>&1; do
    if ! pid_of "$name" >/dev/null; then say_log "$name"; fail "$name died while starting"; fi
    if [ "$SECONDS" -ge "$end" ]; then say_log "$name"; fail "$name did not answer within $limit s"; fi
    sleep 0.2
  done
}
say_log() { { echo "--- end of $run/$1/log"; tail -n 30 "$run/$1/log"; echo "---"; } >&2; }
tcp_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1"); }
http_ok() { curl -fsS -m 5 -o /dev/null "$1"; }
wait_tcp() { wait_until "$1" "$3" tcp_open "$2"; }
wait_http() { wait_until "$1" "$3" http_ok "$2"; }

# Stops NAME: SIGNAL (TERM unless said), after SECONDS (30) KILL, to it and its children. Returns when all are gone.
stop() {
  local name="$1" signal="${2:-TERM}" limit="${3:-${SERVICES_STOP_SECONDS:-30}}" pid all end
  pid="$(pid_of "$name")" || { rm -f "$run/$name/pid"; return 0; }
  all="$(family "$pid")"
  kill "-$signal" "$pid" 2>/dev/null || true
  signal_family CONT "$pid"
  end=$((SECONDS + limit))
  while alive "$all"; do
    if [ "$SECONDS" -ge "$end" ]; then kill -KILL $all 2>/dev/null || true; fi
    sleep 0.1
  done
  rm -f "$run/$name/pid"
}
alive() { local pid; for pid in $1; do [ ! -d "/proc/$pid" ] || [ "$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -c1)" = Z ] || return 0; done; return 1; }

kill_hard() { stop "$1" KILL; }
pause() { signal_family STOP "$(pid_of "$1" || fail "$1 does not run")"; }
resume() { signal_family CONT "$(pid_of "$1" || fail "$1 does not run")"; }
status() {
  local pid
  if pid="$(pid_of "$1")"; then
    printf '%s running pid %s, %s MB\n' "$1" "$pid" "$(memory_mb "$pid")"
  else printf '%s stopped\n' "$1"; return 3; fi
}
# Proportional memory of a process and its children, so that pages shared among them count once.
memory_mb() { local pid; for pid in $(family "$1"); do cat "/proc/$pid/smaps_rollup" 2>/dev/null; done | awk '/^Pss:/ { s += $2 } END { printf "%d", s / 1024 }'; }

# Writes what clients need to reach NAME; `env` of the run is all of them together.
write_env() { cat > "$run/$1/env"; }

# What our Java servers share, for NAME with at most HEAP: one collector thread, the quick compiler alone (it halves the CPU time of a
# start; a benchmark asks for the other one by -XX:TieredStopAtLevel=4), no files in the temporary folder; and the classes that install.sh
# stored ready to use, where it did (half of the CPU time again).
java_options() {
  local classes="$services_dir/jars/$1/classes.jsa"
  echo "-Xmx$2 -Xms64m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Djava.net.preferIPv4Stack=true" \
    "-Dlog4j2.configurationFile=$here/log4j2.properties" "$([ ! -s "$classes" ] || echo "-XX:SharedArchiveFile=$classes -Xlog:cds=off")"
}

# The verbs that every service script has; NAME is the service. The script defines start_NAME, and stop_NAME if TERM is not its way.
verbs() {
  local name="$1" verb="${2:-}"
  case "$verb" in
    start|stop|restart|kill|pause|resume|status) need_run_dir ;;
    *) fail "usage: $(basename "$0") start|stop|restart|kill|pause|resume|status, with SERVICES_RUN_DIR set" ;;
  esac
  mkdir -p "$run"; chmod 755 "$run"
  case "$verb" in
    start) "start_$name" ;;
    stop) if declare -F "stop_$name" >/dev/null; then "stop_$name"; else stop "$name"; fi ;;
    restart) "$0" stop; "$0" start ;;
    kill) kill_hard "$name" ;;
    *) "$verb" "$name" ;;
  esac
}
