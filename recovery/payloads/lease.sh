# Takes this node's lease for one controller, or says which other controller has it.
#     LEASE_DO     take or give
#     LEASE_ID     the controller: nobody else bears it; a run of its own it may replace
#     LEASE_RUN, LEASE_WHO   for the other one to read
#     LEASE_S      for how long, by the node's own clock
#     LEASE_PORT   sshd's port: several nodes of a test share one file system
#     LEASE_FORCE  not empty: whoever has it loses it
# Exit status 0: taken; 3: held, with `held RUN SECONDS WHO`; 4: nowhere to write.
# Written before it looks: of two that come at once, none may overlook the other. /run is
# root's alone; all three folders are asked, for the other may be another user.
umask 022
name=recover.lease.$LEASE_PORT
own=$name.$LEASE_ID
if [ "$LEASE_DO" = give ]; then
  rm -f "/run/$own" "/dev/shm/$own" "/tmp/$own"
  exit 0
fi
read -r boot </proc/sys/kernel/random/boot_id
read -r up rest </proc/uptime
up=${up%.*}
set -C
for d in /run /dev/shm /tmp; do
  [ -w "$d" ] && rm -f "$d/.$own" && printf '%s %s %s %s\n' "$boot" "$((up + LEASE_S))" "$LEASE_RUN" "$LEASE_WHO" >"$d/.$own" && mv -f "$d/.$own" "$d/$own" && break
  d=
done 2>/dev/null
[ -n "$d" ] || exit 4
for f in "/run/$name".* "/dev/shm/$name".* "/tmp/$name".*; do
  [ -r "$f" ] && [ "${f##*/}" != "$own" ] || continue
  read -r its_boot until run who <"$f" || continue
  # By a reboot or by its time it is over.
  if [ "$its_boot" != "$boot" ] || [ "$until" -le "$up" ] || [ -n "$LEASE_FORCE" ]; then
    rm -f "$f"
    continue
  fi
  rm -f "$d/$own"
  echo "held $run $((until - up)) $who"
  exit 3
done
