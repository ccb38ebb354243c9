# Runs one command on a node and leaves nothing of it behind. POSIX sh: dash, bash, busybox.
#
# The controller sends this text, joined to one line, as the first line of standard input of
#     exec /bin/sh -c 'IFS= read -r l && eval "$l"' recover-leash
# (so that no login shell has to quote it, and nothing of the command shows in the shell's own
# arguments), and after it:
#     MARK LIMIT_S GRACE_S ENV_LINES COMMAND_LINES INPUT_BYTES ANNOUNCE
#     ENV_LINES lines of `export NAME=VALUE`, COMMAND_LINES lines of the command,
#     INPUT_BYTES bytes: the standard input of the command.
# Then the controller holds standard input open for as long as the command may live.
#
# The command runs in its own session with RECOVER_LEASH_<MARK> in its environment. A watcher
# holds standard input under the limit; when that ends (closed, limit, connection gone) it TERMs
# what is ours, waits the grace, and KILLs: what bears the mark, what shares a session with it,
# what descends from it. So an own setsid, nohup, `&` or an ignored TERM do not get away.
# A command that ends by itself ends the watcher; its exit status is ours.
#
# Where the header is `keep NAME`, the shell is kept and takes many commands in turn, each
#     MARK LIMIT_S GRACE_S ENV_LINES COMMAND_LINES KEY      (no input, no sudo), and its lines.
# One reader and one keeper watch over all of them. After a command both streams end in
# `recover-leash:KEY end`, on standard error with its exit status, and with `left` where something
# that it left behind holds the output: then the shell ends, so that nobody can mix words into
# what the next command prints. A `MARK` alone is answered with `here`.
#
# On standard error, between line ends, `recover-leash:MARK WORDS`:
#     started            when asked to announce (below sudo)
#     never REASON       nothing was started
#     missing PARTS      of setsid, timeout, proc: what the node lacks; the rest still holds
#     cut LEFT           the watcher ended the command; LEFT are pids that KILL did not end
#     lacks PARTS        to NAME: no shell can be kept here; nothing was started
#
# `#: once` and `#: kept` begin what only the one or the other needs, `#: both` the rest.
#
# The joined line has no line ends: write no `;;` and no continuation at the end of a line.

rl_nl=${IFS#??}
rl_say() {
  printf '\nrecover-leash:%s %s\n' "$rl_mark" "$*" >&4
}
rl_never() {
  rl_say never "$*"
  exit 69
}
rl_lines() {
  rl_text=
  rl_n=$1
  while [ "$rl_n" -gt 0 ]; do
    IFS= read -r rl_l || rl_never "its text was cut short"
    rl_text=$rl_text$rl_l$rl_nl
    rl_n=$((rl_n - 1))
  done
}
#: once
# The input goes through a file: a connection lost half way must not run half a script.
rl_input() {
  for rl_d in /dev/shm "${TMPDIR:-/tmp}" /tmp "$HOME" .; do
    rl_f=$rl_d/.recover-input.$rl_mark
    ( umask 077; set -C; : >"$rl_f" ) && break
    rl_f=
  done
  [ -n "$rl_f" ] || rl_never "no writable folder for its input (/dev/shm, /tmp, HOME)"
  head -c "$1" <&0 >"$rl_f"
  exec 5<"$rl_f"
  rl_n=$(wc -c <"$rl_f")
  rm -f "$rl_f"
  [ "$rl_n" -eq "$1" ] || rl_never "$rl_n of $1 bytes of its input arrived in $rl_d"
}
#: both
# State, parent, group, session and birth (clock ticks since boot) of a process.
rl_stat() {
  rl_s=
  while IFS= read -r rl_l; do rl_s=$rl_s$rl_l; done <"/proc/$1/stat" || return 1
  set -- ${rl_s##*) }
  [ $# -ge 20 ] || return 1
  rl_state=$1 rl_parent=$2 rl_group=$3 rl_session=$4 rl_birth=${20}
}
rl_in() {
  case " $2 " in *" $1 "*) return 0;; *) return 1;; esac
}
# Processes that are younger than the leash, as PID:PARENT:SESSION, and their environments. A name
# may hold any text, line ends too: the number is the file's, the rest what follows the last `)`.
rl_list() {
  rl_all= rl_files=
  if [ -z "$rl_proc" ]; then
    rl_all=$(ps -A -o pid= -o ppid= -o pgid= | while read -r rl_p rl_a rl_b; do printf ' %s:%s:%s' "$rl_p" "$rl_a" "$rl_b"; done)
    return
  fi
  for rl_x in $(LC_ALL=C grep -sH . /proc/[0-9]*/stat | LC_ALL=C sed -n 's|^/proc/\([0-9]*\)/stat:.*) \([^ZX]\) \([0-9]*\) [0-9]* \([0-9]*\) \([-0-9]* \)\{15\}\([0-9]*\) .*|\6:\1:\3:\4|p'); do
    [ "${rl_x%%:*}" -ge "$rl_born" ] || continue
    rl_x=${rl_x#*:}
    rl_all="$rl_all $rl_x"
    rl_files="$rl_files /proc/${rl_x%%:*}/environ"
  done
}
rl_add() {
  rl_ours="$rl_ours $1"
  [ "$2" = "$rl_home" ] || rl_in "$2" "$rl_sessions" || rl_sessions="$rl_sessions $2"
  rl_more=1
}
# What is ours now. The sessions are remembered: their marked members may be gone by then.
rl_find() {
  rl_list
  rl_ours= rl_more=1
  rl_marked=" $(grep -lsF "RECOVER_LEASH_$rl_mark=" /dev/null $rl_files | tr '\n' ' ')"
  while [ -n "$rl_more" ]; do
    rl_more=
    for rl_x in $rl_all; do
      rl_p=${rl_x%%:*} rl_b=${rl_x##*:} rl_a=${rl_x#*:}
      rl_a=${rl_a%%:*}
      rl_in "$rl_p" "$rl_ours $$ $rl_self" && continue
      if rl_in "/proc/$rl_p/environ" "$rl_marked" || rl_in "$rl_a" "$rl_ours" || rl_in "$rl_b" "$rl_sessions"; then rl_add "$rl_p" "$rl_b"; continue; fi
      [ -z "$rl_proc" ] && [ "$rl_a" = "$$" ] && rl_add "$rl_p" "$rl_b"
    done
  done
  [ -n "$rl_ours" ]
}
# Uptime in hundredths of a second: rounds take as long as the node is busy.
rl_clock() {
  rl_now=0.00
  read -r rl_now rl_l </proc/uptime
  rl_cs=${rl_now#*.}
  rl_cs=$((${rl_now%.*} * 100 + ${rl_cs#0}))
}
# So many rounds at most, and so many hundredths of a second.
rl_wait() {
  rl_n=$1
  rl_clock
  rl_late=$((rl_cs + $2))
  while [ "$rl_n" -gt 0 ] && [ "$rl_cs" -le "$rl_late" ]; do
    rl_find || return 0
    sleep 0.1 || sleep 1
    rl_n=$((rl_n - 1))
    rl_clock
  done
  return 1
}
rl_end() {
  if [ -n "$rl_proc" ]; then
    read -r rl_self rl_l </proc/self/stat
    rl_stat "$rl_self"
    rl_born=$rl_birth rl_home=$rl_session
  else
    rl_self=$(sh -c 'echo $PPID')
    rl_home=$(ps -o pgid= -p "$rl_self" | tr -d ' ')
  fi
  rl_find && kill -s TERM $rl_ours && kill -s CONT $rl_ours
  rl_wait $((rl_grace * 10)) $((rl_grace * 100)) && return
  for rl_round in 1 2 3; do
    kill -s KILL $rl_ours
    rl_wait 5 100 && return
  done
}
rl_parts() {
  rl_setsid= rl_proc= rl_missing=
  for rl_d in /usr/bin /bin /usr/local/bin; do [ -x "$rl_d/setsid" ] && rl_setsid=$rl_d/setsid && break; done
  [ -n "$rl_setsid" ] || rl_missing=setsid
  if [ -r /proc/self/stat ] && command -v sed >/dev/null && command -v grep >/dev/null; then rl_proc=1; else rl_missing="$rl_missing proc"; fi
}
#: once
rl_watch() {
  rl_over=1
  if [ -n "$rl_timeout" ]; then timeout "$rl_limit" cat <&3 4>&- 5<&-; rl_over=$?; fi
  # An old busybox wants another spelling: 1, 125. Then there is only the controller's limit.
  [ "$rl_over" -ne 1 ] && [ "$rl_over" -ne 125 ] || cat <&3 4>&- 5<&-
  trap '' USR1
  rl_end
  rl_say cut $rl_ours
}

exec 4>&2 2>/dev/null 5</dev/null
IFS=' ' read -r rl_mark rl_limit rl_grace rl_e rl_c rl_b rl_loud || exit 69
rl_lines "$rl_e"
rl_env=$rl_text
rl_lines "$rl_c"
rl_line=$rl_text
[ "$rl_b" -eq 0 ] || rl_input "$rl_b"
exec 3<&0 </dev/null
rl_parts
rl_timeout=
if command -v timeout >/dev/null; then rl_timeout=1; else rl_missing="$rl_missing timeout"; fi
[ -z "$rl_missing" ] || rl_say missing $rl_missing
[ "$rl_loud" -eq 0 ] || rl_say started
rl_watch >/dev/null &
rl_w=$!
# In the foreground: a background job would be born ignoring INT and QUIT.
( eval "$rl_env"; export "RECOVER_LEASH_$rl_mark=1"; exec $rl_setsid /bin/sh -c "$rl_line" sh ) <&5 2>&4 3<&- 4>&- 5<&-
rl_status=$?
kill -s USR1 "$rl_w"
wait "$rl_w"
exit "$rl_status"
#: kept
# A kept shell: READER passes lines on to MAIN, which runs the commands; both write to the pipe 6,
# where KEEPER learns what runs (`run MARK UNTIL GRACE`, `done`), that our input ended (`eof`), that
# a timer is due (`tick`) and that MAIN is through (`over`). Nobody needs to be interrupted.
rl_fit() {
  rl_parts
  { read -r rl_now rl_l </proc/uptime && read -r rl_l rl_l rl_l rl_l rl_from </proc/loadavg; } || rl_missing="$rl_missing uptime"
  rl_stat "$$" && [ "$rl_group" = "$$" ] || rl_missing="$rl_missing group"
  rl_here=$rl_session
  [ /proc/$$ -ef /proc/$$ ] || rl_missing="$rl_missing ef"
  [ -z "$rl_missing" ]
}
rl_kept() {
  exec 6<>/proc/self/fd/0
  rl_keeper <&6 >/dev/null 3<&- 5>&- &
  rl_reader <&3 4>&- 5>&- | rl_main
  printf 'over\n' >&6
  wait
}
rl_reader() {
  while IFS= read -r rl_l; do printf '%s\n' "$rl_l"; done
  printf 'eof\n' >&6
}
rl_main() {
  exec 3<&-
  while IFS=' ' read -r rl_mark rl_limit rl_grace rl_e rl_c rl_key; do
    if [ -z "$rl_limit" ]; then
      rl_say here
      continue
    fi
    rl_lines "$rl_e"
    rl_env=$rl_text
    rl_lines "$rl_c"
    rl_line=$rl_text
    read -r rl_now rl_l </proc/uptime
    rl_until=$((${rl_now%.*} + rl_limit + 1))
    read -r rl_l rl_l rl_l rl_l rl_from </proc/loadavg
    printf 'run %s %s %s\n' "$rl_mark" "$rl_until" "$rl_grace" >&6
    ( eval "$rl_env"; export "RECOVER_LEASH_$rl_mark=1"; exec $rl_setsid /bin/sh -c "$rl_line" sh ) </dev/null >&5 2>&4 4>&- 5>&- 6<&-
    rl_status=$?
    printf 'done\n' >&6
    read -r rl_now rl_l </proc/uptime
    [ "${rl_now%.*}" -lt "$rl_until" ] || break
    rl_left=
    rl_holder && rl_left=left
    printf '\nrecover-leash:%s end\n' "$rl_key" >&5
    printf '\nrecover-leash:%s end %s %s\n' "$rl_key" "$rl_status" "$rl_left" >&4
    [ -z "$rl_left" ] || break
  done
  printf 'over\n' >&6
}
# Does something that the command left behind hold its output? All of that descends from orphans,
# and an orphan is a child of the reaper (pid 1, or a subreaper above sshd) that is younger than
# the command. Where nobody lists the reaper's children, every process number given out since is
# asked. Again for what came meanwhile: a holder may have had children and be gone.
rl_holder() {
  for rl_round in 1 2 3 4 5 6; do
    read -r rl_l rl_l rl_l rl_l rl_last </proc/loadavg
    [ "$rl_last" -ne "$rl_from" ] || return 1
    [ "$rl_last" -gt "$rl_from" ] || return 0
    rl_again=
    rl_young
    [ "$rl_kids" != - ] || return 0
    for rl_p in $rl_kids; do
      [ "$rl_p" -gt "$rl_from" ] || continue
      rl_holds "$rl_p" && return 0
    done
    [ -n "$rl_again" ] || return 1
  done
}
rl_young() {
  rl_kids=
  [ -n "$rl_reaper" ] || rl_reaper=$( ( rl_orphan & ) )
  if [ -r "/proc/$rl_reaper/task/$rl_reaper/children" ]; then
    for rl_f in "/proc/$rl_reaper/task"/*/children; do
      rl_l=
      read -r rl_l <"$rl_f"
      rl_kids="$rl_kids $rl_l"
    done
    return
  fi
  if [ $((rl_last - rl_from)) -gt 4000 ]; then rl_kids=-; return; fi
  rl_p=$((rl_from + 1))
  while [ "$rl_p" -le "$rl_last" ]; do
    [ -e "/proc/$rl_p" ] && rl_kids="$rl_kids $rl_p"
    rl_p=$((rl_p + 1))
  done
}
rl_orphan() {
  read -r rl_self rl_l </proc/self/stat
  for rl_round in 1 2 3 4 5 6 7 8 9 10 11 12; do
    rl_stat "$rl_self"
    rl_p=$rl_parent
    rl_stat "$rl_p" && [ "$rl_session" != "$rl_here" ] && break
    rl_p=none
  done
  printf '%s' "$rl_p"
}
rl_holds() {
  if rl_stat "$1"; then :; else
    rl_again=1
    return 1
  fi
  [ "$rl_state" != Z ] && [ "$rl_session" != "$rl_here" ] || return 1
  if [ -O "/proc/$1/fd" ] && [ -r "/proc/$1/fd" ]; then :; else
    [ "$rl_session" -gt "$rl_from" ]
    return
  fi
  for rl_f in "/proc/$1/fd"/*; do
    { [ "$rl_f" -ef /proc/self/fd/5 ] || [ "$rl_f" -ef /proc/self/fd/4 ]; } && return 0
  done
  return 1
}
# Nobody may be there any more to read what was cut; the timer has to be ended all the same.
rl_keeper() {
  trap '' PIPE
  rl_mark=- rl_over= rl_due=0
  while read -r rl_what rl_b rl_until_ rl_c; do
    if [ "$rl_what" = over ]; then break; fi
    rl_heed
  done
  trap '' TERM
  kill -s TERM -- "-$$"
}
rl_heed() {
  if [ "$rl_what" = run ]; then
    rl_mark=$rl_b rl_until=$rl_until_ rl_grace=$rl_c
    [ "$rl_due" -ne 0 ] && [ "$rl_due" -le "$rl_until" ] || rl_arm
  fi
  [ "$rl_what" != done ] || rl_mark=-
  [ "$rl_what" != eof ] || rl_over=1
  if [ "$rl_what" = tick ]; then
    read -r rl_now rl_l </proc/uptime
    rl_now=${rl_now%.*}
    [ "$rl_now" -lt "$rl_due" ] || rl_due=0
    if [ "$rl_mark" != - ]; then
      if [ "$rl_now" -ge "$rl_until" ]; then rl_over=1; else [ "$rl_due" -ne 0 ] || rl_arm; fi
    fi
  fi
  [ -z "$rl_over" ] || [ "$rl_mark" = - ] || rl_cut
}
rl_arm() {
  rl_due=$rl_until
  read -r rl_now rl_l </proc/uptime
  ( sleep $((rl_until - ${rl_now%.*})); printf 'tick\n' >&6 ) 4>&- &
}
# The command may be about to start: so until MAIN says that it has ended.
rl_cut() {
  rl_cutting=$rl_mark rl_tries=0
  while [ "$rl_mark" != - ] && [ "$rl_tries" -lt 20 ]; do
    rl_end
    rl_tries=$((rl_tries + 1))
    [ -z "$rl_ours" ] || rl_tries=20
    printf 'sync\n' >&6
    while read -r rl_what rl_l && [ "$rl_what" != sync ]; do
      [ "$rl_what" != done ] || rl_mark=-
      [ "$rl_what" != over ] || printf 'over\n' >&6
    done
    [ "$rl_mark" = - ] || sleep 0.1 || sleep 1
  done
  rl_mark=$rl_cutting
  rl_say cut $rl_ours
  rl_mark=-
}
exec 3<&0 4>&2 5>&1 2>/dev/null
IFS=' ' read -r rl_l rl_mark || exit 69
if rl_fit; then : | rl_kept; else rl_say lacks $rl_missing; fi
