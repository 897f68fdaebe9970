#!/bin/bash
# The first process of the guest. Its root is the host's file tree, read-only; the one writable place is
# the work folder, whose host path comes in $OUT. Runs job.sh there and leaves its exit code in job.rc.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LC_ALL=C MDADM_NO_UDEV=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs -o size=75% tmpfs /run
mount -t devtmpfs dev /dev
mkdir -p /run/out /run/mdadm /run/tmp
export TMPDIR=/run/tmp
mount -t hostfs none /run/out -o "$OUT"
cd /run/out || halt -f

# Modules that are built into some kernels are no file there.
modules=/usr/lib/uml/modules/$(uname -r)/kernel
module() { [ ! -e "$modules/$1.ko" ] || insmod "$modules/$1.ko" "${@:2}"; }
{
    module drivers/block/loop max_loop=0
    for m in drivers/md/{md-mod,dm-mod,raid0,raid1,raid10,linear} crypto/async_tx/async_tx crypto/xor \
        crypto/async_tx/async_{memcpy,xor,pq,raid6_recov} drivers/md/raid456; do
        module "$m"
    done
} >modules.log 2>&1
echo 1000000 >/proc/sys/dev/raid/speed_limit_max
echo 1000000 >/proc/sys/dev/raid/speed_limit_min
echo 3 >/proc/sys/kernel/printk

bash job.sh >job.log 2>&1
echo $? >job.rc
dmesg >dmesg.log
sync
halt -f
