#!/usr/bin/env python3
"""A real machine: Debian 12 with systemd, udev, mdadm, a stock kernel and six SCSI drives, under QEMU without KVM.

  tools/machine.py [PACKAGE [FOLDER]]   PACKAGE is target/package/openraid_*.deb unless named; FOLDER is target/machine

As root. Builds the guest once (debootstrap), installs the package before in it (BEFORE=FILE names it; otherwise it is PACKAGE with a
lower version), makes an array, upgrades under the running server, and goes through boots: with mdadm installed, with md's rules
alone in the initramfs, with the drives in other order, with one and two drives missing, with all of them late, with a clock that was
set back, and with an initramfs of dracut. After each boot either the array is served, or every interface says that it is not
(tools/interfaces.py). Then each drive is pulled and put in again, idle and under load, the server is killed under a mounted file system,
drives and events do what they should not, and the package is removed and purged. Prints a table, and ends with 1 if a row failed.
Needs debootstrap, e2fsprogs and qemu-system-x86; a boot takes one to three minutes, all of it two hours. The parts are first, boots,
absent, dracut, pulls, kills, odd, removal, levels; PARTS="boots pulls" takes some of them, and without "first" it goes on with the guest of an
earlier run.

The initramfs is made in the root on this machine, by the package's own program: in the guest that takes many minutes.
"""

import glob
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import sys
import time

from guest import DRIVES, Machine, build_disk, build_root, make_dracut, renew_initramfs, shell

KILLS = 20
EVERY = list(range(DRIVES))
FINE = {"list": 0, "show": "optimal", "api": "optimal", "console": "optimal", "redfish": "OK", "metrics": "optimal",
        "alarms": [], "unit": "1 array served, all optimal", "md": "no md"}
DEGRADED = {"list": 1, "show": "degraded", "api": "degraded", "console": "degraded", "redfish": "Warning", "metrics": "degraded",
            "alarms": ["DegradedArray"], "unit": "1 array served; data degraded", "md": "no md"}
# A member that is not there at the start is an alarm of its own until it comes.
INCOMPLETE = {**DEGRADED, "alarms": ["DegradedArray", "StartProblem"]}
# A drive that vanished is a failed member until it is back or another one takes its place.
PULLED = {**DEGRADED, "alarms": ["DegradedArray", "Fail"]}
STAYS_OUT = {**DEGRADED, "alarms": ["DegradedArray", "Fail", "MemberStaysOut"]}
OFFLINE = {"list": 2, "show": "offline", "api": "offline", "console": "offline", "redfish": "Critical", "metrics": "offline",
           "alarms": ["DeviceDisappeared", "StartProblem"], "unit": "0 arrays served; data OFFLINE", "md": "no md"}


def interfaces(machine):
    """What tools/interfaces.py prints in the guest."""
    _, text = machine.run("python3 /usr/local/bin/interfaces")
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"interfaces": text}


def wait_for(machine, *words, seconds=180):
    """Waits until `show` has each of these words. It says how many seconds that took, by the guest's clock; none: it did not."""
    tests = " && ".join(f"echo \"$said\" | grep -q '{word}'" for word in words)
    _, text = machine.run(f"begin=$(date +%s); until said=$(openraid show data --json | tr -d ' \\n'); {tests}; do "
                          f"[ $(($(date +%s) - begin)) -lt {seconds} ] || break; sleep 1; done; "
                          f"{tests} && echo took $(($(date +%s) - begin))")
    took = [line.split()[1] for line in text.splitlines() if line.startswith("took ") and line.split()[1].isdigit()]
    return int(took[-1]) if took else None


def optimal(machine):
    """All members are there, and nothing is left to be written to them."""
    return wait_for(machine, '"health":"optimal"', '"task":null') is not None


def surviving(machine, count):
    """The array has come to rest, and survives the loss of so much more."""
    return wait_for(machine, f'"survives":{count},', '"task":null') is not None


def member(number):
    """The name of a drive in the guest."""
    return f"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SER{number}"


def create(machine, level, more="--assume-clean"):
    """The array `data` of all drives, served. Drives that are all zeroes fit together."""
    members = " ".join(member(number) for number in EVERY)
    code, text = machine.run(f"openraid create data --level {level} --bitmap internal {more} {members}")
    if code:
        sys.exit(f"create ended with {code}: {text}")
    machine.run("openraid assemble data")


def first(machine):
    """The array is made as an administrator makes it, by the version before. Then the package is upgraded."""
    machine.start(EVERY, "md")
    create(machine, 6)
    yield "the array is made by the version before", True, optimal(machine)
    has_disk = machine.run("[ -e '/usr/lib/systemd/system/openraid-disk@.service' ]")[0] == 0
    yield from upgrade(machine) if has_disk else upgrade_without_disk(machine)
    yield "upgrade: every interface", FINE, interfaces(machine)
    yield from renewal(machine)
    yield from sockets(machine)
    # What an administrator sees on a machine without trouble: no alarm, and a service that is not confined too much.
    _, log = machine.run("journalctl -b -u openraid -p warning --no-pager -q")
    print(log, flush=True)
    machine.power_off()
    renew_initramfs(machine.folder)


def sockets(machine):
    """A restart and a crash of the service leave the socket of hosts open. A stop ends it, so that no host starts the service again."""
    inode, units = "stat -c %i /run/openraid-nbd/nbd.sock", "openraid.service openraid.socket openraid-hosts.target"
    active = f"[ \"$(systemctl is-active {units} | uniq)\" = active ]"
    machine.run(f"systemctl stop openraid-disk@data; systemctl restart openraid; {inode} >/run/socket")
    for what, command in (("restart", "systemctl restart openraid"), ("kill", "systemctl kill -s KILL openraid; sleep 1")):
        code, text = machine.run(f"{command}; openraid show data --wait 60; {inode} | cmp - /run/socket && {active}")
        yield f"a {what} keeps the socket of hosts", 0, code if not code else text
    code, text = machine.run(f"systemctl stop openraid; sleep 1; ! systemctl is-active {units} && [ ! -e /run/openraid-nbd/nbd.sock ]")
    yield "a stop ends the socket of hosts", 0, code if not code else text
    code, text = machine.run(f"systemctl start openraid && {active} && openraid show data --wait 60")
    yield "a start opens the socket of hosts", 0, code if not code else text


def renewal(machine):
    """The arrays have changed: the package's units make the initramfs, and again if that failed. A stand-in is asked instead of
    what makes it, which would take many minutes here."""
    stand_in, unit, made = "/usr/local/sbin/update-initramfs", "openraid-initramfs.service", "/var/lib/openraid/initramfs.rules"
    machine.run(f"systemctl unmask {unit}; printf '#!/bin/sh\\necho \"$*\" >>/run/asked; [ -e /run/room ]\\n' >{stand_in}; "
                f"chmod +x {stand_in}; rm -f {made}; systemctl restart openraid-initramfs.path")
    for room, asked in ((False, "1"), (True, "2"), (True, "2")):
        machine.run(f"{'touch /run/room; ' if room else ''}openraid set data rebuild.rate=3{asked}M; sleep 5; "
                    f"while [ $(systemctl show -P ActiveState {unit}) = activating ]; do sleep 1; done")
        _, text = machine.run("wc -l </run/asked")
        is_made = machine.run(f"[ -e {made} ]")[0] == 0
        yield f"the initramfs, {'with' if room else 'without'} room on /boot", (asked, room), (text.split()[-1], is_made)
    machine.run(f"openraid set data rebuild.rate=200M; rm {stand_in}; systemctl mask {unit}")


def devices(machine):
    """The number of devices that the kernel has connected."""
    return machine.run("ls -d /sys/block/nbd*/pid | wc -l")[1].split()[-1]


def upgrade(machine):
    """The new package comes while the server runs and a host writes. The old server goes on until it is restarted, and the disk that
    the old package has made until it is detached."""
    machine.run("systemctl start openraid-disk@data; modprobe nbd")
    machine.run("mkfs.ext4 -q -F /dev/openraid/data && mount /dev/openraid/data /mnt")
    begin_load(machine, "/mnt/load")
    machine.run("systemctl show -P MainPID openraid >/run/before")
    code, text = machine.run("dpkg -i /var/tmp/openraid.deb </dev/null")
    same = machine.run("systemctl show -P MainPID openraid | cmp - /run/before")[0] == 0
    goes = is_loaded(machine)
    if code or not same or not goes:
        print(text, machine.run("journalctl -b -u openraid -u openraid-disk@data --no-pager -q | tail -60")[1], flush=True)
    yield "upgrade: the old server goes on", (0, True, True), (code if not code else text, same, goes)
    code, text = machine.run("systemctl restart openraid")
    yield "upgrade: restart, the host goes on", (0, True, True), (code if not code else text, optimal(machine), is_loaded(machine))
    # A stop of the unit is refused under the mount, and a start finds the disk: there is no second one.
    machine.run("systemctl restart openraid-disk@data")
    code, text = machine.run("openraid attach data | grep already")
    yield "upgrade: the disk stays, and is the only one", (0, "1", True), (code if not code else text, devices(machine), is_loaded(machine))
    end_load(machine)
    code, text = machine.run("umount /mnt && systemctl restart openraid-disk@data && openraid attach data | grep 'by nbd$' && "
                             "fsck.ext4 -fn /dev/openraid/data && ! pgrep -x qemu-nbd")
    yield "upgrade: then it is attached again, and whole", (0, "1"), (code if not code else text, devices(machine))
    yield from keepers(machine)


def keepers(machine):
    """The keeper is killed under a mount that requires the disk. systemd starts it again, and nothing else."""
    entry = "/dev/openraid/data /mnt ext4 nofail,_netdev,x-systemd.requires=openraid-disk@data.service 0 2"
    machine.run(f"echo '{entry}' >>/etc/fstab; systemctl daemon-reload; mount /mnt")
    begin_load(machine, "/mnt/load")
    unit = "openraid-disk-keeper@data"
    code, text = machine.run(f"old=$(systemctl show -P MainPID {unit}); [ $old != 0 ] && kill -9 $old; n=0; until new=$(systemctl show -P MainPID {unit}); "
                             "[ $new != 0 ] && [ $new != $old ]; do n=$((n + 1)); [ $n -lt 60 ] || break; sleep 1; done; [ $n -lt 60 ]")
    yield "a killed keeper is started again", (0, "1", True), (code if not code else text, devices(machine), is_loaded(machine))
    code, text = machine.run("kill -9 $(systemctl show -P MainPID openraid); sleep 1; openraid show data --wait 300")
    yield "and the server is killed after it", (0, "1", True), (code if not code else text, devices(machine), is_loaded(machine))
    end_load(machine)
    code, text = machine.run("systemctl stop openraid-disk@data; ! mountpoint -q /mnt && [ ! -e /dev/openraid/data ] && "
                             f"! systemctl is-active openraid-disk@data {unit}")
    yield "a stop unmounts first, and detaches", (0, "0"), (code if not code else text, devices(machine))
    machine.run("sed -i '/openraid/d' /etc/fstab; systemctl daemon-reload; systemctl start openraid-disk@data")


def upgrade_without_disk(machine):
    """The same from a package that has no disk for the host: what the administrator has set, the state and the data are kept."""
    machine.run("cd /etc/openraid; sed -i -e 's/^# \\(nbd-unix = .*sock\\)/\\1/' -e '/management/,/listen/s/^# //' openraid.toml; "
                "mkdir -p /run/openraid-nbd; sha256sum /etc/openraid/openraid.toml >/run/sums; systemctl restart openraid; "
                "openraid set data rebuild.rate=33M; cd")
    optimal(machine)
    address = "'nbd+unix:///data?socket=/run/openraid-nbd/nbd.sock'"
    wrote, _ = machine.run(f"qemu-io -f raw -c 'write -P 0xa5 0 16M' -c flush {address}")
    machine.run("systemctl show -P MainPID openraid >/run/before")
    code, text = machine.run("dpkg -i --force-confold /var/tmp/openraid.deb </dev/null")
    same = machine.run("systemctl show -P MainPID openraid | cmp - /run/before")[0] == 0
    yield "upgrade: the old server goes on", (0, True), (code if not code else text, same)
    code, text = machine.run("systemctl restart openraid")
    yield "upgrade: restart", (0, True), (code if not code else text, optimal(machine))
    kept = {
        "the data": f"qemu-io -f raw -r -c 'read -P 0xa5 0 16M' {address} | grep 'read 16777216'",
        "the configuration": "sha256sum --check /run/sums",
        "a setting": "openraid show data --json | grep '\"rebuild_rate\":34603008'",
        "the units": "systemctl is-enabled openraid.socket openraid.service openraid-initramfs.path",
    }
    for what, command in kept.items():
        code, text = machine.run(command)
        yield f"upgrade keeps {what}", (0, 0), (wrote, code if not code else text)
    code, text = machine.run("systemctl start openraid-disk@data; head -c 16M /dev/openraid/data | tr -d '\\245' | wc -c | grep -x 0")
    yield "upgrade: the new disk has the data", 0, code if not code else text


def begin_load(machine, target="/dev/openraid/data"):
    """A host writes, and stops at an error."""
    machine.run("[ -b /dev/openraid/data ] || echo NO DISK")
    machine.run(f"(while dd if=/dev/urandom of={target} bs=64k count=32 oflag=direct; do date >/run/wrote; done) "
                ">/dev/null 2>&1 & echo $! >/run/load")


def is_loaded(machine):
    """Has the host of `begin_load` written to a block device without an error, and does it go on?"""
    code, _ = machine.run("[ -b /dev/openraid/data ] && rm -f /run/wrote && n=0 && until [ -e /run/wrote ]; do n=$((n + 1)); "
                          "[ $n -lt 120 ] || break; sleep 1; done; [ -e /run/wrote ] && kill -0 $(cat /run/load)")
    return code == 0


def end_load(machine):
    machine.run("kill $(cat /run/load); sleep 3")


def late(machine, order):
    """Drives come when the machine is up: first every interface says that the array is not there, then it is served."""
    machine.start([])
    before = interfaces(machine)
    if before != OFFLINE:
        return before
    for number in order:
        machine.put(number)
    return interfaces(machine) if optimal(machine) else {"late": "not served", **interfaces(machine)}


def boot(machine, title, drives, initramfs="own", clock=None):
    """One boot, and its row."""
    machine.start(drives, initramfs, clock)
    survives = len(drives) - 4
    at_rest = surviving(machine, survives)
    seen = interfaces(machine)
    if not at_rest:
        seen["at rest"] = machine.run("openraid show data")[1]
    if initramfs.endswith("md") and machine.run("openraid events | grep -q 'md had the members of array data'")[0]:
        seen["md"] = "md never had them"
    yield title, FINE if survives == 2 else INCOMPLETE, seen
    machine.power_off()


def boots(machine):
    """Rounds of seven boots: rows with what was done, what is wanted, what was seen."""
    for out, order in (((0, 1), EVERY[::-1]), ((2, 3), [3, 0, 5, 1, 4, 2]), ((5, 4), [2, 5, 0, 3, 1, 4])):
        yield from boot(machine, "boot with mdadm installed", EVERY)
        yield from boot(machine, "the initramfs gives them to md", EVERY, "md")
        yield from boot(machine, f"drives in the order {order}", order)
        yield from boot(machine, f"drive {out[0]} missing", [own for own in EVERY if own != out[0]])
        yield from boot(machine, f"drives {out} missing", [own for own in EVERY if own not in out])
        yield from boot(machine, "all drives again", EVERY)
        yield f"all drives late, in the order {order}", FINE, late(machine, order)
        machine.power_off()


def absent(machine):
    """Boots with too few drives, which come late, and with a clock that was set back."""
    machine.start(EVERY[:3])
    yield "three drives missing", OFFLINE, interfaces(machine)
    for number in EVERY[3:]:
        machine.put(number)
    optimal(machine)
    yield "the three come late", FINE, interfaces(machine)
    machine.power_off()
    yield from boot(machine, "the clock was set back at boot", EVERY, clock="2020-01-01T00:00:00")


def dracut(machine):
    """Boots with an initramfs of dracut: with md's module, without it, and with md's module alone, which gives the members to md."""
    for title, name, left_out in (("dracut with md's module", "own", ""), ("dracut without md's module", "own", "mdraid"),
                                  ("dracut gives them to md", "md", "openraid")):
        make_dracut(machine.folder, left_out)
        shutil.copy(machine.path("initrd-dracut"), machine.path(f"initrd-dracut-{name}"))
        yield from boot(machine, title, EVERY, f"dracut-{name}")


def pulls(machine):
    """The same for drives that are pulled while the machine runs."""
    machine.start(EVERY)
    machine.run("systemctl start openraid-disk@data")
    for load in (False, True):
        if load:
            begin_load(machine)
        how = "under load" if load else "idle"
        for number in EVERY:
            vanished = f"openraid events | grep 'SER{number}' | grep -c 'it vanished'"
            before = int(machine.run(vanished)[1].split()[-1])
            machine.pull(number)
            gone = wait_for(machine, '"health":"degraded"')
            print(f"  seen as degraded within {gone} s", flush=True)
            events = int(machine.run(vanished)[1].split()[-1]) - before
            yield f"drive {number} is pulled {how}", (True, True, PULLED), (gone is not None, events > 0, interfaces(machine))
            machine.put(number)
            back = optimal(machine)
            yield f"drive {number} is back, {how}", (True, FINE), (back, interfaces(machine))
        if load:
            yield "the host has seen no error", True, is_loaded(machine)
            end_load(machine)
    code, text = machine.run("openraid check data --follow")
    yield "all rows fit", 0, code if not code else (code, text)
    machine.power_off()


WRITER = ("n=0; while [ ! -e /run/enough ]; do n=$((n + 1)); seq $n $((n + 20000)) >/mnt/$n && sync -d /mnt/$n || exit; "
          "echo $n >>/run/kept; sleep 0.2; done")


def kills(machine):
    """The server is killed under a mounted file system that is written. What was synced is there, and no request failed."""
    machine.start(EVERY)
    machine.run("systemctl start openraid-disk@data; mkfs.ext4 -q -F /dev/openraid/data; mount /dev/openraid/data /mnt")
    machine.run(f"rm -f /run/kept; ({WRITER}; echo ended >/run/ended) >/dev/null 2>&1 &")
    for number in range(1, KILLS + 1):
        machine.run("until [ -s /run/kept ]; do sleep 1; done")
        _, before = machine.run("wc -l </run/kept")
        code, _ = machine.run("old=$(systemctl show -P MainPID openraid); kill -9 $old; n=0; until new=$(systemctl show -P MainPID openraid); "
                              "[ $new != 0 ] && [ $new != $old ] && systemctl is-active openraid >/dev/null; do n=$((n + 1)); "
                              "[ $n -lt 300 ] || break; sleep 1; done; [ $n -lt 300 ]")
        back = optimal(machine)
        goes, _ = machine.run(f"n=0; until [ $(wc -l </run/kept) -gt {int(before.split()[-1])} ]; do n=$((n + 1)); [ $n -lt 300 ] || "
                              "break; sleep 1; done; [ $n -lt 300 ] && [ ! -e /run/ended ]")
        yield f"kill {number} under a mounted file system", (0, True, 0), (code, back, goes)
    yield "after the kills", FINE, interfaces(machine)
    machine.run("touch /run/enough; until [ -e /run/ended ]; do sleep 1; done; umount /mnt; echo 3 >/proc/sys/vm/drop_caches")
    code, text = machine.run("fsck.ext4 -fn /dev/openraid/data && mount -o ro /dev/openraid/data /mnt")
    yield "the file system is whole", 0, code if not code else text
    code, text = machine.run("for n in $(cat /run/kept); do seq $n $((n + 20000)) | cmp - /mnt/$n || echo lost $n; done; wc -l </run/kept")
    yield "what was synced is there", False, "lost" in text.replace("echo lost", "") and text
    code, text = machine.run("umount /mnt; openraid check data --follow")
    yield "all rows fit", 0, code if not code else text
    machine.power_off()


def next_day(machine):
    """Members that came back have not done so today."""
    machine.run("date -s '+25 hours'")


def odd(machine):
    """A drive comes back smaller, another one is in its place, one comes and goes, and one vanishes while it is added."""
    machine.start(EVERY)
    yield from loose(machine)
    for what, size in (("smaller", 128 << 20), ("blank", 0)):
        medium = machine.path("odd.img")
        shell("cp", machine.drive(5), medium)
        shell("truncate", "-s", str(size), medium)
        shell("truncate", "-s", str(size or os.path.getsize(machine.drive(5))), medium)
        machine.pull(5)
        wait_for(machine, '"health":"degraded"')
        machine.put(5, medium)
        machine.run("n=0; until openraid alarms | grep -q MemberStaysOut; do n=$((n + 1)); [ $n -lt 90 ] || break; sleep 1; done")
        seen = interfaces(machine)
        _, text = machine.run("openraid alarms --array data")
        print(text, flush=True)
        yield f"a drive comes back {what}", STAYS_OUT, seen
        machine.pull(5)
        time.sleep(5)
        machine.put(5)
        back = optimal(machine)
        yield "the right one is back", (True, FINE), (back, interfaces(machine))
    yield from unheard(machine)
    yield from quoted(machine)
    for number, pause in enumerate((0, 1, 3), DRIVES):
        next_day(machine)
        machine.pull(5)
        wait_for(machine, '"health":"degraded"')
        machine.put(number)
        machine.run(f"until [ -e {member(number)} ]; do sleep 1; done")
        machine.run(f"(openraid add data {member(number)} --yes; echo ended $?) >/run/added 2>&1 &")
        time.sleep(pause)
        machine.pull(number)
        machine.run("n=0; until grep -q ended /run/added; do n=$((n + 1)); [ $n -lt 120 ] || break; sleep 1; done")
        print(machine.run("cat /run/added")[1], flush=True)
        code, _ = machine.run("grep -q ended /run/added && ! journalctl -b -u openraid | grep -q panicked")
        machine.put(5)
        back = optimal(machine)
        # It may have been a member for a moment: then it is missed until it is removed, and its place is that of drive 5 again.
        removed, text = machine.run(f"! openraid show data | grep -q SER{number} || openraid remove data {member(number)}")
        yield f"a drive vanishes {pause} s after `add`", (0, True, 0), (code, back, removed if not removed else text)
        shell("rm", "-f", machine.drive(number))
    yield "after all of it", FINE, interfaces(machine)
    machine.power_off()


def unheard(machine):
    """Events are lost, late and doubled: the server is stopped until its queue has overflowed, udev makes names seconds later, and each
    drive is announced again and again."""
    flood = "for n in $(seq 2000); do echo change >/sys/class/mem/null/uevent; done"
    # The queue of a socket that nothing reads overflows, and the kernel counts what it drops from then on.
    dropped = "awk '$2 == 15 && $9 > 0' /proc/net/netlink | wc -l"
    before = machine.run(dropped)[1].split()[-1]
    machine.run(f"kill -STOP $(systemctl show -P MainPID openraid); {flood}; udevadm settle")
    machine.pull(3)
    machine.run("until [ $(ls -d /sys/block/sd? | wc -l) = 5 ]; do sleep 1; done; udevadm settle")
    after = machine.run(dropped)[1].split()[-1]
    machine.run("kill -CONT $(systemctl show -P MainPID openraid)")
    gone = wait_for(machine, '"health":"degraded"')
    yield "a drive is pulled, and its event is lost", (True, True, PULLED), (before < after, gone is not None, interfaces(machine))
    machine.run("udevadm settle; udevadm control --stop-exec-queue")
    machine.put(3)
    machine.run("until [ $(ls -d /sys/block/sd? | wc -l) = 6 ]; do sleep 1; done; sleep 5; udevadm control --start-exec-queue")
    back = optimal(machine)
    yield "it is back, and its names are late", (True, FINE), (back, interfaces(machine))
    before = machine.run("openraid events | grep -cE 'Fail|MemberReturned'")[1].split()[-1]
    machine.run("for action in add add change remove remove add; do udevadm trigger --settle --action=$action --subsystem-match=block; done")
    after = machine.run("openraid events | grep -cE 'Fail|MemberReturned'")[1].split()[-1]
    yield "every drive is announced again and again", (True, before, FINE), (optimal(machine), after, interfaces(machine))


def quoted(machine):
    """An array that md has named so that units, links, shells and options quote its name: it is a disk, also over a restart."""
    given = "it's a \"b\" 50%,c"
    name, disk = shlex.quote(given), "/dev/openraid/" + re.sub(r"[^A-Za-z0-9#+\-.:=@_]", "_", given)
    code, text = machine.run(
        "cd /srv && truncate -s 64M m0 m1 && udevadm control --stop-exec-queue && a=$(losetup -f --show m0) && b=$(losetup -f --show m1) && "
        f"MDADM_NO_UDEV=1 mdadm --create /dev/md126 --run --name={name} --metadata=1.2 --assume-clean --level=1 --raid-devices=2 $a $b && "
        "mdadm --stop /dev/md126; losetup -d $a; losetup -d $b; udevadm control --start-exec-queue; udevadm settle; "
        "openraid assemble /srv/m0 /srv/m1")
    yield "an array whose name needs quoting", 0, code if not code else text
    machine.run(f"unit=$(systemd-escape --template=openraid-disk@.service -- {name})")
    code, text = machine.run(f"systemctl start -- \"$unit\" && mkfs.ext4 -q {disk} && mount {disk} /mnt && seq 30000 >/mnt/seq && sync && "
                             "systemctl restart openraid && echo 3 >/proc/sys/vm/drop_caches && seq 30000 | cmp - /mnt/seq")
    yield "its disk, and a restart", 0, code if not code else text
    code, text = machine.run(f"umount /mnt; systemctl stop -- \"$unit\" && [ ! -e {disk} ] && openraid stop -- {name} && "
                             f"openraid forget -- {name} && rm /srv/m0 /srv/m1")
    yield "its end", (0, True), (code if not code else text, optimal(machine))


def loose(machine):
    """A drive that leaves a fourth time within a day stays out, until the commands of its alarms add it."""
    for _ in range(4):
        machine.pull(4)
        wait_for(machine, '"health":"degraded"')
        machine.put(4)
        machine.run("n=0; until openraid alarms | grep -q MemberStaysOut || openraid show data --json | tr -d ' ' | grep -q '\"optimal\"'; "
                    "do n=$((n + 1)); [ $n -lt 90 ] || break; sleep 1; done")
    yield "a drive comes back a fourth time", STAYS_OUT, interfaces(machine)
    code, text = machine.run(f"openraid remove data {member(4)} && openraid add data {member(4)} --yes")
    yield "the commands of its alarms add it", (0, True), (code if not code else text, optimal(machine))


def removal(machine):
    """The package goes. What it leaves is what is promised, and md reads the same data."""
    machine.start(EVERY)
    machine.run("systemctl start openraid-disk@data")
    _, digest = machine.run("dd if=/dev/openraid/data bs=1M count=64 iflag=direct 2>/dev/null | sha256sum")
    machine.run("systemctl stop openraid-disk@data")
    code, text = machine.run("dpkg -r openraid")
    yield "removal", 0, code if not code else text
    checks = {
        "no server runs": "! pgrep -x openraid",
        "no unit has failed": "! systemctl --failed --plain --no-legend | grep openraid",
        "no unit, no rule, no program": "! ls /usr/bin/openraid /usr/lib/systemd/system/openraid* /usr/lib/udev/rules.d/6?-openraid*",
        "the configuration stays": "[ -e /etc/openraid/openraid.toml ]",
        "the members are clean": "for d in /dev/sd?; do mdadm --examine $d | grep -q 'State : clean' || echo dirty; done | grep -c dirty | grep -x 0",
    }
    for title, command in checks.items():
        code, text = machine.run(command)
        yield f"removed: {title}", 0, code if not code else text
    _, text = machine.run("cat /proc/mdstat; mdadm --stop --scan; mdadm --assemble --readonly /dev/md/data /dev/sd?; "
                          "udevadm settle --timeout=600")
    _, other = machine.run("dd if=/dev/md/data bs=1M count=64 iflag=direct 2>/dev/null | sha256sum; mdadm --stop /dev/md/data")
    sums = [next((line for line in own.splitlines() if line.endswith("  -")), "none") for own in (digest, other)]
    yield "removed: md reads the same data", sums[0], sums[1] if sums[1] != "none" else text
    code, text = machine.run("dpkg -P openraid")
    yield "purge", 0, code if not code else text
    code, text = machine.run("[ ! -e /etc/openraid/openraid.toml ] && [ -s /var/lib/openraid/registry.json ] && "
                             "! ls /etc/systemd/system/multi-user.target.wants/openraid*")
    yield "purged: state and members stay", 0, code if not code else text
    code, text = machine.run("dpkg -i /var/tmp/openraid.deb && systemctl start openraid")
    optimal(machine)
    yield "installed again", FINE, interfaces(machine)
    machine.power_off()


def levels(machine):
    """Drives of other levels are pulled and put in again. The data that was written while one was out is there."""
    machine.start(EVERY)
    for level in (5, 10):
        machine.run("openraid stop data; openraid forget data")
        members = " ".join(member(number) for number in EVERY)
        machine.run(f"openraid wipe-metadata {members} --yes")
        create(machine, level, "--yes --overwrite")
        optimal(machine)
        machine.run("systemctl start openraid-disk@data")
        for number in EVERY:
            next_day(machine)
            machine.pull(number)
            gone = wait_for(machine, '"health":"degraded"')
            wrote, _ = machine.run(f"seq {number} 3000000 | head -c 8M >/run/text; dd if=/run/text of=/dev/openraid/data bs=1M oflag=direct")
            yield f"level {level}: drive {number} is pulled", (True, 0, PULLED), (gone is not None, wrote, interfaces(machine))
            machine.put(number)
            back = optimal(machine)
            same, _ = machine.run("dd if=/dev/openraid/data bs=1M count=8 iflag=direct | cmp - /run/text")
            yield f"level {level}: drive {number} is back", (True, 0, FINE), (back, same, interfaces(machine))
        code, text = machine.run("openraid check data --follow")
        yield f"level {level}: all rows fit", 0, code if not code else text
        machine.run("systemctl stop openraid-disk@data")
    machine.power_off()


def said(wanted, seen):
    """What differs from what is wanted, or the whole if it has no parts."""
    if isinstance(wanted, tuple):
        return [said(*pair) for pair in zip(wanted, seen)]
    if isinstance(wanted, dict):
        return {name: value for name, value in seen.items() if wanted.get(name) != value} or wanted["show"]
    return seen


def prepare(folder):
    """The packages, the root and the disk of the guest."""
    package = (sys.argv[1:2] or sorted(glob.glob("target/package/openraid_*.deb")) or [None])[0]
    if package is None:
        sys.exit("there is no package; make one with: make package")
    os.makedirs(folder, exist_ok=True)
    root = folder + "/root"
    if not os.path.exists(root + "/usr/bin/dracut") or not glob.glob(root + "/boot/vmlinuz-*"):
        shutil.rmtree(root, ignore_errors=True)
        build_root(root)
    build_disk(folder, root, package, os.environ.get("BEFORE", package))
    for drive in glob.glob(folder + "/drive*.img"):
        os.remove(drive)


PARTS = (first, boots, absent, dracut, pulls, kills, odd, removal, levels)


def main():
    if os.geteuid():
        sys.exit("tools/machine.py needs root: it makes a root file system and changes into it")
    folder = os.path.abspath((sys.argv[2:3] or ["target/machine"])[0])
    parts = os.environ.get("PARTS", " ".join(part.__name__ for part in PARTS)).split()
    unknown = set(parts) - {part.__name__ for part in PARTS}
    if unknown or not parts:
        sys.exit(f"PARTS has {' '.join(unknown) or 'nothing'}: the parts are {' '.join(part.__name__ for part in PARTS)}")
    if "first" in parts:
        prepare(folder)
    machine = Machine(folder)
    # The guest ends with this program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    rows = failed = 0
    begin = time.time()
    try:
        for title, wanted, seen in itertools.chain.from_iterable(part(machine) for part in PARTS if part.__name__ in parts):
            right = seen == wanted
            rows, failed = rows + 1, failed + (not right)
            print(f"{title:42} {'ok' if right else 'FAILED':7} {said(wanted, seen)}  [{time.time() - begin:.0f} s]", flush=True)
    finally:
        machine.end()
    print(f"{rows} rows, {failed} failed; {machine.boots} boots")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
