#!/bin/sh
# pid 1 of one testbed host: makes its root out of the machine's, starts sshd, stays.
#     host_init.sh NAME FOLDER
# FOLDER holds `disk` (kept over power cuts), `root` (an empty folder to mount on), and perhaps
# `data.img` (its own ext4 disk, mounted on /data). Runs in its own mount, uts, ipc, pid and time
# namespaces; the network namespace was entered before.
set -e
name=$1 folder=$2 root=$2/root
hostname "$name"
mount -t overlay "$name" -o "lowerdir=/,upperdir=$folder/disk/upper,workdir=$folder/disk/work" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755,size=1m dev dev
for d in null zero full random urandom tty; do
  : >"dev/$d"
  mount --bind "/dev/$d" "dev/$d"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=1777,size=64m shm dev/shm
mount -t tmpfs -o mode=755,size=16m run run
mount -t tmpfs -o mode=1777,size=64m tmp tmp
mkdir -p run/sshd data
if [ -e "$folder/data.img" ]; then mount -o loop "$folder/data.img" data; fi
# Every boot has its own id; the kernel's is the machine's.
cat /proc/sys/kernel/random/uuid >run/boot_id
mount --bind run/boot_id proc/sys/kernel/random/boot_id
mkdir -p .old
pivot_root . .old
umount -l /.old
/usr/sbin/sshd -D -f /etc/ssh/testbed_config -e &
exec </dev/null >/dev/null 2>&1
while :; do sleep 3600 & wait; done
