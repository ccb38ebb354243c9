# Keeps a job running on a node after the connection is gone, and finds it again.
#
# Sent as standard input of a command on the leash:
#     sh -s -- start NAME LOG 'LINE'     starts LINE in its own session; output goes to LOG
#     sh -s -- status NAME [TAIL_LINES]  what became of it; TAIL_LINES last lines of its log
#     sh -s -- stop NAME [GRACE_S]       TERM, the grace (10), KILL, for its whole session
#
# The job keeps a folder ${RECOVER_JOBS:-$HOME/.recover/jobs}/NAME with pid, start (clock ticks
# since boot), boot (boot id), log (path), line, rc (once it has ended). A pid alone is no proof:
# it may belong to another process by now, so all three are compared.
#
# Answers in KEY=VALUE lines; exit status:
#   0  start: state=started pid= start= boot= log= folder=
#      status: state=running (pid...), state=ended rc=, or state=stopped (by stop)
#      stop: state=stopped, or what it was already
#   3  status, stop: state=lost: it began, left no rc and is not there (killed, or the node booted)
#   4  status, stop: state=unknown: no job of this name was ever started here
#   5  start: state=running pid= ...: a job of this name still runs; nothing was started
#   6  start: state=failed reason=;  stop: state=left pids=: KILL did not end it
# An empty LOG means FOLDER/out. A log is appended to, never emptied. The folder of an earlier job
# of the same name is kept as NAME.1.

what=$1 name=$2
jobs=${RECOVER_JOBS:-$HOME/.recover/jobs}
job=$jobs/$name

fail() {
  echo "state=failed"
  echo "reason=$*"
  exit 6
}

case $name in
  '' | .* | */* | *[!A-Za-z0-9._@:+-]*) fail "not a name for a job: $name" ;;
esac

boot_id() {
  cat /proc/sys/kernel/random/boot_id 2>/dev/null || sysctl -n kern.boottime 2>/dev/null | tr -d ' '
}

# State and birth of a process: "S 12345"; nothing when there is none.
birth() {
  [ -n "$1" ] || return 1
  if [ -r /proc/self/stat ]; then
    s=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    set -- ${s##*) }
    echo "$1 ${20}"
  else
    ps -o state= -o lstart= -p "$1" 2>/dev/null | tr -s ' ' '_' | sed 's/^\(.\)[^_]*_/\1 /' | grep .
  fi
}

# Members of the job's session that are not dead.
members() {
  if [ -r /proc/self/stat ]; then
    for d in /proc/[0-9]*; do
      s=$(cat "$d/stat" 2>/dev/null) || continue
      set -- ${s##*) }
      [ "$4" = "$pid" ] && [ "$1" != Z ] && [ "$1" != X ] && echo "${d#/proc/}"
    done
  else
    ps -A -o pid= -o pgid= -o state= 2>/dev/null | awk -v g="$pid" '$2 == g && $3 !~ /^Z/ {print $1}'
  fi
}

load() {
  pid=$(cat "$job/pid" 2>/dev/null)
  start=$(cat "$job/start" 2>/dev/null)
  boot=$(cat "$job/boot" 2>/dev/null)
  log=$(cat "$job/log" 2>/dev/null)
}

# Whether the process that we started is there: same boot, same pid, same birth, not a zombie.
runs() {
  [ -n "$pid" ] && [ "$boot" = "$(boot_id)" ] || return 1
  now=$(birth "$pid") || return 1
  [ "${now#? }" = "$start" ] && [ "${now%% *}" != Z ]
}

tell() {
  printf 'state=%s\npid=%s\nstart=%s\nboot=%s\nlog=%s\nfolder=%s\n' "$1" "$pid" "$start" "$boot" "$log" "$job"
}

start_job() {
  log=$1 line=$2
  mkdir -p "$jobs" 2>/dev/null || fail "cannot make $jobs"
  # A folder is made by one at a time, so it is the lock against a second start.
  lock=$jobs/.$name.lock
  tries=0
  until mkdir "$lock" 2>/dev/null; do
    owner=$(cat "$lock/pid" 2>/dev/null)
    if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; then rm -rf "$lock"; continue; fi
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] || fail "another start of $name has held $lock for 5 s"
    sleep 0.1 2>/dev/null || sleep 1
  done
  echo $$ >"$lock/pid"
  trap 'rm -rf "$lock"' EXIT
  load
  if runs; then
    tell running
    exit 5
  fi
  asked=$1
  log=${asked:-$job/out}
  if [ -d "$job" ]; then
    rm -rf "$job.1"
    mv "$job" "$job.1" || fail "cannot set $job aside"
  fi
  mkdir -m 700 "$job" 2>/dev/null || fail "cannot make $job"
  printf '%s\n' "$line" >"$job/line" || fail "cannot write in $job: is the disk full?"
  printf '%s\n' "$log" >"$job/log"
  boot=$(boot_id)
  printf '%s\n' "$boot" >"$job/boot"
  # The log may be on another file system: say so now, not in a job that dies without a word.
  ( : >>"$log" ) 2>/dev/null || fail "cannot write the log $log"
  run_detached
  tries=0
  until [ -s "$job/start" ] || [ -s "$job/rc" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || fail "it did not come up within 10 s; see $log"
    sleep 0.1 2>/dev/null || sleep 1
  done
  load
  tell started
}

# The leash ends what bears its mark or shares its session: the job gets neither.
run_detached() {
  for mark in $(env | sed -n 's/^\(RECOVER_LEASH_[0-9a-f]*\)=.*/\1/p'); do unset "$mark"; done
  own=
  command -v setsid >/dev/null 2>&1 && own=setsid
  keeper='
    trap "" HUP
    printf "%s\n" $$ >"$1/pid"
    if [ -r /proc/self/stat ]; then
      s=$(cat /proc/$$/stat); set -- "$1" "$2" ${s##*) }; b=${22}
    else
      b=$(ps -o state= -o lstart= -p $$ | tr -s " " "_" | sed "s/^.[^_]*_//")
    fi
    printf "%s\n" "$b" >"$1/start.new" && mv "$1/start.new" "$1/start"
    /bin/sh -c "$2" sh
    printf "%s\n" $? >"$1/rc.new" && mv "$1/rc.new" "$1/rc"
  '
  job_line=$line job_folder=$job
  ( exec $own /bin/sh -c "$keeper" recover-job "$job_folder" "$job_line" ) </dev/null >>"$log" 2>&1 &
}

status_of() {
  [ -d "$job" ] || { echo "state=unknown"; exit 4; }
  load
  if [ -s "$job/rc" ]; then
    tell ended
    printf 'rc=%s\n' "$(cat "$job/rc")"
    code=0
  elif runs; then
    tell running
    code=0
  elif [ -e "$job/stopped" ]; then
    tell stopped
    code=0
  else
    tell lost
    [ "$boot" = "$(boot_id)" ] && echo "reason=killed" || echo "reason=rebooted"
    code=3
  fi
  [ -z "$1" ] || { echo "tail="; tail -n "$1" "$log" 2>/dev/null; }
  exit "$code"
}

# No session's number is given away while a member lives; so when the pid is another process now,
# nobody of ours is left.
ours_is_gone() {
  [ "$boot" = "$(boot_id)" ] && [ -n "$pid" ] || return 0
  now=$(birth "$pid") && [ "${now#? }" != "$start" ] && return 0
  [ -z "$(members)" ]
}

stop_job() {
  [ -d "$job" ] || { echo "state=unknown"; exit 4; }
  load
  if ours_is_gone; then status_of ""; fi
  kill -s TERM $(members) 2>/dev/null
  left=$((${1:-10} * 10))
  while [ "$left" -gt 0 ] && [ -n "$(members)" ]; do
    sleep 0.1 2>/dev/null || sleep 1
    left=$((left - 1))
  done
  tries=0
  while [ -n "$(members)" ] && [ "$tries" -lt 20 ]; do
    kill -s KILL $(members) 2>/dev/null
    sleep 0.1 2>/dev/null || sleep 1
    tries=$((tries + 1))
  done
  pids=$(members | tr '\n' ' ')
  if [ -n "$pids" ]; then
    tell left
    echo "pids=$pids"
    exit 6
  fi
  : >"$job/stopped"
  tell stopped
  exit 0
}

case $what in
  start) start_job "$3" "$4" ;;
  status) status_of "$3" ;;
  stop) stop_job "$3" ;;
  *) fail "usage: start NAME LOG LINE | status NAME [LINES] | stop NAME [GRACE_S]" ;;
esac
