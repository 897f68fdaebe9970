//! `openraid attach` and `detach`: the kernel's own clients, in a Linux guest that has the drivers nbd, fuse and loop, and not NVMe/TCP.
//! The server runs in the guest too.

use crate::support::console::page;
use crate::support::Lab;

use super::disk::in_guest;

/// Words for the jobs: `refused CODE WORDS COMMAND...`, the number of devices of NBD that are connected, the process of the keeper.
const WORDS: &str = r#"
refused() {
    local wanted=$1 words=$2 code=0
    shift 2
    "$@" >/run/said 2>&1 || code=$?
    [ "$code" = "$wanted" ] && grep -qF "$words" /run/said || { echo "$* ended with $code: $(cat /run/said)"; false; }
}
connected() { { ls -d /sys/block/nbd*/pid 2>/dev/null || true; } | wc -l; }
keeper() { pgrep -f 'attach --keep' | head -1 || true; }
kept() { "$openraid" attach --json | grep -c '"kept":true' || true; }
reach() { local n=0; until "$@"; do n=$((n + 1)); [ "$n" -lt 200 ] || { echo "never: $*"; false; }; pause 0.3; done; }
none_kept() { [ -z "$(keeper)" ]; }
is_kept() { [ "$(kept)" = 1 ]; }
"#;

fn guest(job: &str) -> Option<String> {
    in_guest(&format!("{WORDS}\n{job}"))
}

#[test]
fn a_disk_by_nbd_outlives_kills_of_the_server_and_of_its_keeper() {
    let kills = if std::env::var_os("OPENRAID_SOAK").is_some() { 40 } else { 5 };
    let job = r#"
modprobe nbd
"$openraid" attach data >/run/said
grep -x 'data is /dev/openraid/data (/dev/nbd0), by nbd' /run/said
grep '^not by nvme-tcp: the server offers no NVMe/TCP' /run/said
[ "$(readlink -f /dev/openraid/data)" = /dev/nbd0 ]
[ "$(blockdev --getss /dev/nbd0)" = 512 ]
uuid=$("$openraid" show data --json | sed 's/.*"uuid":"\([0-9a-f:]*\)".*/\1/')
for name in data "$uuid"; do "$openraid" attach "$name" | grep -x 'data is /dev/openraid/data already (/dev/nbd0), by nbd'; done
refused 65 'attached by nbd already, not by fuse' "$openraid" attach data --via fuse
[ "$(connected)" = 1 ]
reach is_kept
mkfs.ext4 -q /dev/openraid/data
mount /dev/openraid/data /mnt
refused 65 'mounted on /mnt (umount /mnt); end that first' "$openraid" detach data
"$openraid" attach | grep 'mounted on /mnt'
for kill in $(seq KILLS); do
    (while [ ! -e /run/enough ]; do cp /sbin/mdadm "/mnt/$kill"; sync -f /mnt; pause 0.1; done) & writer=$!
    pause 0.4
    if [ $((kill % 2)) = 0 ]; then
        # A new keeper has no copy of the socket.
        kill -9 "$(keeper)"
        "$openraid" attach data >/dev/null
        reach is_kept
    fi
    kill -9 "$server"
    wait "$server" || true
    pause 0.3
    serve
    touch /run/enough
    wait "$writer"
    rm /run/enough
    echo "killed $kill"
done
echo 3 >/proc/sys/vm/drop_caches
for kill in $(seq KILLS); do cmp /sbin/mdadm "/mnt/$kill"; done
if dmesg | grep -E 'I/O error|Buffer I/O|EXT4-fs error'; then false; fi
[ "$(connected)" = 1 ]
umount /mnt
"$openraid" detach data | grep -x 'data is detached from /dev/nbd0'
reach none_kept
[ "$(connected)" = 0 ]
[ ! -e /dev/openraid/data ]
[ -z "$(ls /run/openraid-disk | grep -v lock || true)" ]
refused 65 'data is not attached; `openraid attach` lists the attached arrays' "$openraid" detach data
"$openraid" attach | grep 'no array is attached'
halt
"#;
    let Some(printed) = guest(&job.replace("KILLS", &kills.to_string())) else { return };
    assert_eq!(printed.lines().filter(|line| line.starts_with("killed ")).count(), kills, "{printed}");
}

#[test]
fn the_keeper_of_a_unit_takes_over_follows_a_rename_and_ends_with_the_disk() {
    guest(
        r#"
modprobe nbd
"$openraid" attach --by-unit -- data
none_kept
"$openraid" attach --keep -- data & reach is_kept
"$openraid" attach --keep -- data & pause 0.3
[ "$(connected)" = 1 ]
dd if=/dev/urandom of=/run/some bs=1M count=4 status=none
dd if=/run/some of=/dev/nbd0 bs=1M oflag=direct status=none
# The second one waits for the end of the first.
kill -9 "$(keeper)"
reach is_kept
"$openraid" rename data other
kill "$server"
wait "$server"
"$openraid" serve other --nbd-unix /run/tour/data.sock & server=$!
"$openraid" show other --wait 120 >/dev/null
dd if=/dev/nbd0 iflag=direct bs=1M count=4 status=none | cmp - /run/some
"$openraid" attach other | grep already
# The server is away, and the disk is detached all the same.
kill -9 "$server"
wait "$server" || true
"$openraid" attach other | grep already
"$openraid" detach other
reach none_kept
[ "$(connected)" = 0 ]
"$openraid" detach --by-unit -- other
"$openraid" attach --keep -- other | grep 'nothing to keep'
"#,
    );
}

#[test]
fn a_disk_of_the_former_package_is_left_until_it_is_detached_and_never_doubled() {
    guest(
        r#"
modprobe nbd
mkdir -p /run/openraid-disk /dev/openraid
old() {
    qemu-nbd --fork --socket=/run/tour/between.sock --connect=/dev/nbd0 --cache=none --discard=unmap --image-opts \
        "driver=nbd,server.type=unix,server.path=/run/tour/data.sock,export=data,reconnect-delay=300"
    reach [ -e /sys/block/nbd0/pid ]
}
# As its script left it: the file with the name, and the link.
echo data >/run/openraid-disk/nbd0
old
ln -s ../nbd0 /dev/openraid/data
mkfs.ext4 -q /dev/openraid/data
mount /dev/openraid/data /mnt
cp /sbin/mdadm /mnt/before
uuid=$("$openraid" show data --json | sed 's/.*"uuid":"\([0-9a-f:]*\)".*/\1/')
for name in data "$uuid"; do
    "$openraid" attach --by-unit -- "$name" |
        grep -x 'data is /dev/openraid/data already (/dev/nbd0), by qemu-nbd, which stays until it is detached'
done
"$openraid" attach --keep -- data | grep 'needs no keeper'
[ "$(connected)" = 1 ]
refused 65 'mounted on /mnt' "$openraid" detach --by-unit -- data
cmp /sbin/mdadm /mnt/before
umount /mnt
"$openraid" detach data
[ "$(connected)" = 0 ]
[ ! -e /dev/openraid/data ]
[ ! -e /run/openraid-disk/nbd0 ]
"$openraid" attach data | grep 'by nbd$'
mount /dev/openraid/data /mnt
cmp /sbin/mdadm /mnt/before
umount /mnt
"$openraid" detach data
# It dies under the mount: another disk is not made next to it.
echo data >/run/openraid-disk/nbd0
old
mount /dev/nbd0 /mnt
pkill -9 -x qemu-nbd
reach refused 65 'which is dead, and it is in use: mounted on /mnt' "$openraid" attach data
umount -l /mnt
reach "$openraid" attach data
"$openraid" detach data
# By hand, without any record.
old
"$openraid" attach data | grep 'by qemu-nbd'
[ "$(connected)" = 1 ]
"$openraid" detach data
[ "$(connected)" = 0 ]
halt
"#,
    );
}

#[test]
fn without_the_module_a_loop_device_is_the_disk_and_it_outlives_the_server() {
    guest(
        r#"
insmod "/usr/lib/uml/modules/$(uname -r)/kernel/fs/fuse/fuse.ko"
"$openraid" attach data >/run/said
grep -x 'data is /dev/openraid/data (/dev/loop[0-9]*), by fuse' /run/said
grep -x 'not by nbd: this kernel has no module nbd' /run/said
mkfs.ext4 -q /dev/openraid/data
mount /dev/openraid/data /mnt
kill -9 "$server"
wait "$server" || true
(cp /sbin/mdadm /mnt/copy; sync -f /mnt) & writer=$!
pause 0.5
serve
wait "$writer"
echo 3 >/proc/sys/vm/drop_caches
cmp /sbin/mdadm /mnt/copy
refused 65 'mounted on /mnt' "$openraid" detach data
"$openraid" attach data | grep already
# Without its program the disk is dead, and in the way as long as it is mounted.
pkill -9 -x nbdfuse
reach refused 65 'which is dead, and it is in use: mounted on /mnt' "$openraid" attach data
umount -l /mnt
reach "$openraid" attach data
mount /dev/openraid/data /mnt
cmp /sbin/mdadm /mnt/copy
umount /mnt
"$openraid" detach data
[ -z "$(losetup --list --noheadings | grep openraid || true)" ]
[ -z "$(ls /run/openraid-disk | grep -v lock || true)" ]
halt
"#,
    );
}

#[test]
fn what_cannot_be_attached_is_refused_with_what_helps() {
    guest(
        r#"
refused 74 'not by nbd: this kernel has no module nbd' "$openraid" attach data
refused 74 'not by fuse: this kernel has no module fuse' "$openraid" attach data
refused 74 'data is not attached:' "$openraid" attach data --via nvme-tcp
modprobe nbd
refused 65 'no array named "nobody" is served or remembered' "$openraid" attach nobody
refused 65 'no array named "nobody" is served or remembered' "$openraid" detach nobody
refused 65 'systemd does not run here' "$openraid" attach data --unit
refused 74 'only root may attach and detach' setpriv --reuid 65534 --clear-groups "$openraid" attach data
refused 74 'only root may attach and detach' setpriv --reuid 65534 --clear-groups "$openraid" detach data
setpriv --reuid 65534 --clear-groups "$openraid" attach | grep 'no array is attached'
halt
refused 4 'data is not served; start it with `openraid serve data`' "$openraid" attach data
"$openraid" serve data --nbd 127.0.0.1:0 --read-only & server=$!
"$openraid" show data --wait 120 >/dev/null
"$openraid" attach data | grep -x 'data is /dev/openraid/data (/dev/nbd0), by nbd; the server refuses writes: it is read-only'
[ "$(blockdev --getro /dev/nbd0)" = 1 ]
"$openraid" detach data
halt
serve
"$openraid" fail data "$PWD/d1"
"$openraid" attach data >/run/said 2>&1
grep 'data is degraded: `openraid show data` says what helps' /run/said
dd if=/dev/nbd0 of=/dev/null bs=1M count=1 iflag=direct status=none
exec 7</dev/nbd0
refused 65 "data is in use (/dev/nbd0): process" "$openraid" detach data
exec 7<&-
# Another member goes away, which the next read shows.
truncate -s 0 d2
dd if=/dev/nbd0 of=/dev/null bs=1M count=1 iflag=direct status=none || true
has_failed() { { "$openraid" show data --json || true; } | grep -q '"health":"failed"'; }
reach has_failed
"$openraid" detach data
refused 2 'data has failed, so a disk of it would too' "$openraid" attach data
"$openraid" stop --all
# Names that need quotes, and two that become one link.
name='it'"'"'s a "b" 50%,c'
truncate -s 40M m0 m1
one=$(losetup --find --show m0)
two=$(losetup --find --show m1)
mdadm --create /dev/md9 --run --name="$name" --metadata=1.2 --assume-clean --level=1 --raid-devices=2 "$one" "$two"
mdadm --stop /dev/md9
losetup --detach-all
"$openraid" assemble "$PWD/m0" "$PWD/m1"
"$openraid" serve "$name" --nbd-unix /run/tour/data.sock & server=$!
"$openraid" show "$name" --wait 120 >/dev/null
"$openraid" attach "$name" | grep -F '/dev/openraid/it_s_a__b__50__c (/dev/nbd0)'
[ "$(readlink -f /dev/openraid/it_s_a__b__50__c)" = /dev/nbd0 ]
"$openraid" detach "$name"
halt
"#,
    );
}

#[test]
fn what_killed_programs_have_left_is_cleaned_up() {
    guest(
        r#"
modprobe nbd
insmod "/usr/lib/uml/modules/$(uname -r)/kernel/fs/fuse/fuse.ko"
mkdir -p /run/openraid-disk /dev/openraid
# Records of devices that were never connected, by this version and the former one.
echo data >/run/openraid-disk/nbd3
echo '{"way":"nbd","names":["data"],"uuid":null,"address":"x"}' >/run/openraid-disk/nbd3.json
echo data >/run/openraid-disk/nbd4
ln -s ../nbd3 /dev/openraid/data
"$openraid" attach data | grep '(/dev/nbd0)'
[ "$(ls /run/openraid-disk/nbd? | wc -l)" = 1 ]
# Killed before the link and the keeper.
reach is_kept
kill -9 "$(keeper)"
reach none_kept
rm /dev/openraid/data
"$openraid" attach data | grep already
reach is_kept
[ "$(readlink -f /dev/openraid/data)" = /dev/nbd0 ]
"$openraid" detach data
# Killed between nbdfuse and the record of its loop device.
mkdir -p /run/openraid-disk/fuse-data
nbdfuse /run/openraid-disk/fuse-data/disk 'nbd+unix:///data?socket=/run/tour/data.sock' &
reach [ -e /run/openraid-disk/fuse-data/disk ]
losetup --find /run/openraid-disk/fuse-data/disk
"$openraid" attach data | grep 'by nbd$'
[ ! -e /run/openraid-disk/fuse-data ]
[ -z "$(losetup --list --noheadings | grep openraid || true)" ]
# Many at a time make one disk.
"$openraid" detach data
for n in 1 2 3 4 5; do "$openraid" attach data >/run/said$n & all="${all:-} $!"; done
for one in $all; do wait "$one"; done
[ "$(connected)" = 1 ]
[ "$(cat /run/said? | grep -c already)" = 4 ]
"$openraid" detach data
halt
"#,
    );
}

#[test]
fn lines_that_make_no_sense_end_as_usage_without_root_and_without_a_server() {
    let lab = Lab::new("attach-usage");
    for line in
        ["attach data --via iscsi", "attach --unit", "attach --via nbd", "attach data --unit --via nbd", "detach"]
    {
        lab.line(line).expect(64);
    }
    lab.line("mount data").refused(64, &["openraid attach ARRAY"]);
    lab.line("unmount data").refused(64, &["openraid detach ARRAY"]);
    lab.line("attach --help").expect(0).says(&["openraid attach data --unit", "nvme-tcp, nbd, fuse"]);
}

#[test]
fn the_units_attach_before_and_detach_after_what_uses_the_disk() {
    let (disk, keeper) =
        (page("packaging/disk/openraid-disk@.service"), page("packaging/disk/openraid-disk-keeper@.service"));
    let has = |unit: &str, line: &str| assert!(unit.lines().any(|other| other == line), "{line:?} is not in {unit}");
    for line in
        ["After=openraid.socket openraid.service", "Before=remote-fs.target", "KillMode=process", "RemainAfterExit=yes"]
    {
        has(&disk, line);
    }
    // The keeper is restarted, and nothing that a mount requires: systemd would restart the mount.
    has(&keeper, "Restart=on-failure");
    assert!(!disk.contains("Restart="));
    has(&disk, "Wants=openraid.service openraid-disk-keeper@%i.service");
    has(&keeper, "PartOf=openraid-disk@%i.service");
    let verbs =
        ["ExecStart=:/usr/bin/openraid attach --by-unit -- %I", "ExecStop=:/usr/bin/openraid detach --by-unit -- %I"];
    verbs.iter().for_each(|line| has(&disk, line));
    has(&keeper, "ExecStart=:/usr/bin/openraid attach --keep -- %I");
    let lab = Lab::new("attach-units");
    for line in ["attach --by-unit --help -- x", "detach --by-unit --help -- x", "attach --keep --help -- x"] {
        lab.line(line).expect(0);
    }
}
