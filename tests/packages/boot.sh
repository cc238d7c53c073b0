#!/bin/sh
# The first process of a machine made of namespaces: lays out its files and becomes systemd. Started by boot.py, in mount,
# pid, network, IPC, host name and cgroup namespaces of its own. Nothing that happens in there is written outside of $1, a
# folder in memory; the kernel's settings are read-only, and the rights to change the machine itself are given up.
#
#   boot.sh FOLDER PROGRAM [PATH...]    PROGRAM is systemd; each PATH is shown read-only at its own place
set -eu
space=$1
systemd=$2
shift 2
root=$space/root

mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$space"
mkdir "$space/upper" "$space/work" "$root"
mount -t overlay -o "lowerdir=/,upperdir=$space/upper,workdir=$space/work" overlay "$root"
# What this machine would mount or start is not for that one; nor does it forbid to start services.
: >"$root/etc/fstab"
rm -f "$root/etc/crypttab" "$root/usr/sbin/policy-rc.d"
# man-db's own switch for reading every page at each installation.
rm -f "$root/var/lib/man-db/auto-update"

mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for node in null zero full random urandom tty; do
    : >"$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
: >"$root/dev/console"
mount --bind /dev/null "$root/dev/console"
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for path in "$@"; do
    mkdir -p "$root$path"
    mount --bind "$path" "$root$path"
    mount -o remount,bind,ro "$root$path"
done

cd "$root"
mkdir -p old
pivot_root . old
umount -l /old
rmdir /old
cd /
export container=lockward-test
exec setpriv --bounding-set=-sys_module,-sys_time,-sys_boot,-sys_rawio,-syslog \
    "$systemd" --system --unit=basic.target --log-target=journal --show-status=no
