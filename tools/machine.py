#!/usr/bin/env python3
"""A real machine: Debian 12 with systemd, udev, mdadm, a stock kernel and six SCSI drives, under QEMU without KVM.

  tools/machine.py [PACKAGE [FOLDER]]   PACKAGE is target/package/openraid_*.deb unless named; FOLDER is target/machine

As root. Builds the guest once (debootstrap), installs the package in it, and goes through boots: with mdadm installed, with
the drives in other order, with one and two drives missing, with all of them late, and with md's rules alone in the initramfs.
After each boot either the array is served, or every face says that it is not. Then each drive is pulled and put in again,
idle and under load. Prints a table, and ends with 1 if a row failed. Needs debootstrap, e2fsprogs and qemu-system-x86; a boot
takes one to three minutes, all of it an hour. ROWS=boots or ROWS=pulls takes a part.

The initramfs is made in the root on this machine, by the package's own program: in the guest that takes many minutes.
"""

import glob
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

DRIVES = 6
DRIVE_BYTES = 256 << 20
BOOT_SECONDS_MAX = 1200
COMMAND_SECONDS_MAX = 1800
PACKAGES = ("linux-image-amd64 systemd-sysv udev mdadm nbd-client e2fsprogs kmod curl python3-minimal iproute2 "
            "smartmontools procps initramfs-tools zstd")
# The console is a root shell. A line that is printed in colour, or asks, would hide the end of a command.
# Drivers of the guest's devices, for a small initramfs.
MODULES = "virtio_pci virtio_blk virtio_scsi sd_mod ext4 md_mod raid456"
# What only costs time here. The initramfs is made outside.
MASKED = ("apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer "
          "systemd-networkd.service openraid-initramfs.service")
# An emulated processor is slow, and so are drives on it.
PATIENT = "OPENRAID_OPEN_SECONDS=300"
GETTY = "[Service]\nExecStart=\nExecStart=-/sbin/agetty --autologin root --noclear --keep-baud 115200 %I dumb\n"


def shell(*words, **options):
    """Runs a program to its end; a failure ends everything, with what it printed."""
    done = subprocess.run(words, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def sources():
    """The mirror of Debian 12 that this machine uses, or none: debootstrap then takes Debian's own."""
    listed = shell("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages")
    found = [line.split()[0] for line in listed.splitlines() if line.split()[1:] == ["bookworm"]]
    return found[:1]


def build_root(root):
    """A bare Debian with what a server has, and the settings by which this machine reaches its mirror."""
    shell("debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", root, *sources())
    for place in ("/etc/apt", "/etc/ssl/certs", "/usr/share/keyrings"):
        shell("cp", "-a", f"{place}/.", root + place)
    shell("cp", "-L", "/etc/resolv.conf", root + "/etc/")
    shell("mount", "-t", "proc", "proc", root + "/proc")
    try:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        shell("chroot", root, "apt-get", "update", "-q")
        shell("chroot", root, "apt-get", "install", "-y", "-q", "--no-install-recommends", *PACKAGES.split(), env=quiet)
    finally:
        shell("umount", root + "/proc")


def inside(system, *words):
    """Runs a program in the root of the guest, on this machine."""
    shell("mount", "-t", "proc", "proc", system + "/proc")
    try:
        return shell("chroot", system, *words, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    finally:
        shell("umount", system + "/proc")


def build_disk(folder, root, package):
    """The system disk: the bare root, with the package and a root shell on the serial console."""
    system = folder + "/system"
    shutil.rmtree(system, ignore_errors=True)
    shell("cp", "-a", root, system)
    shutil.copy(package, system + "/var/tmp/openraid.deb")
    files = {
        "/etc/hostname": "judge\n",
        "/etc/fstab": "/dev/vda / ext4 defaults 0 0\n",
        "/etc/systemd/system/serial-getty@ttyS0.service.d/shell.conf": GETTY,
        "/etc/systemd/system/openraid.service.d/slow.conf": f"[Service]\nEnvironment={PATIENT}\nWatchdogSec=0\n",
        "/etc/initramfs-tools/modules": "\n".join(MODULES.split()) + "\n",
        "/etc/initramfs-tools/conf.d/small": "MODULES=list\nCOMPRESS=gzip\n",
    }
    for name, text in files.items():
        os.makedirs(os.path.dirname(system + name), exist_ok=True)
        with open(system + name, "w", encoding="ascii") as file:
            file.write(text)
    for unit in MASKED.split():
        os.symlink("/dev/null", f"{system}/etc/systemd/system/{unit}")
    inside(system, "dpkg", "-i", "/var/tmp/openraid.deb")
    inside(system, "passwd", "-d", "root")
    disk = folder + "/system.img"
    shell("rm", "-f", disk)
    shell("truncate", "-s", "3G", disk)
    shell("mkfs.ext4", "-q", "-d", system, disk)
    keep_kernel(folder, "md")


def keep_kernel(folder, name):
    """Kernel and initramfs of the root, for boots that ask for them by this name."""
    shutil.copy(glob.glob(folder + "/system/boot/vmlinuz-*")[0], folder + "/vmlinuz")
    shutil.copy(glob.glob(folder + "/system/boot/initrd.img-*")[0], f"{folder}/initrd-{name}")


def renew_initramfs(folder):
    """What openraid-initramfs.service does in the guest after the registry has changed."""
    system, kept = folder + "/system", "/var/lib/openraid"
    os.makedirs(system + kept, exist_ok=True)
    subprocess.run(["e2fsck", "-p", "-E", "journal_only", folder + "/system.img"], check=False, capture_output=True)
    shell("debugfs", "-R", f"dump {kept}/registry.json {system}{kept}/registry.json", folder + "/system.img")
    inside(system, "/usr/lib/openraid/renew-initramfs")
    with open(f"{system}{kept}/initramfs.rules", encoding="ascii") as rules:
        if "ID_FS_UUID" not in rules.read():
            sys.exit("the rules of the initramfs name no array")
    keep_kernel(folder, "own")


class Machine:
    """The guest: it is started with some drives, takes commands on its console, and loses and gets drives."""

    def __init__(self, folder):
        self.folder = folder
        self.process = self.console = None
        self.said = b""
        self.marks = itertools.count(1)

    def path(self, name):
        return f"{self.folder}/{name}"

    def drive(self, number):
        place = self.path(f"drive{number}.img")
        if not os.path.exists(place):
            shell("truncate", "-s", str(DRIVE_BYTES), place)
        return place

    def start(self, drives, initramfs="own"):
        """Boots with these drives, in this order, until the console answers."""
        words = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", "1024", "-display", "none", "-no-reboot",
                 "-nodefaults", "-kernel", self.path("vmlinuz"), "-initrd", self.path(f"initrd-{initramfs}"), "-append",
                 "root=/dev/vda rw console=ttyS0 net.ifnames=0 systemd.show_status=0 no_timer_check mitigations=off fsck.mode=skip",
                 "-drive", f"file={self.path('system.img')},format=raw,if=virtio,cache=unsafe",
                 "-device", "virtio-scsi-pci,id=bus",
                 "-serial", f"unix:{self.path('console')},server=on,wait=off,logfile={self.path('console.log')}",
                 "-qmp", f"unix:{self.path('monitor')},server=on,wait=off"]
        for number in drives:
            words += ["-drive", f"file={self.drive(number)},format=raw,if=none,id=d{number},cache=unsafe",
                      "-device", f"scsi-hd,drive=d{number},serial=SER{number},id=h{number},bus=bus.0"]
        self.process = subprocess.Popen(words)
        self.console = socket.socket(socket.AF_UNIX)
        for _ in range(100):
            try:
                self.console.connect(self.path("console"))
                break
            except OSError:
                time.sleep(0.1)
        self.console.settimeout(5)
        self.said = b""
        end = time.time() + BOOT_SECONDS_MAX
        while not self.run("true", 20, patient=True)[0] == 0:
            if time.time() > end:
                sys.exit(f"the guest does not answer; its console: {self.path('console.log')}")
        self.run(f"export {PATIENT}; stty columns 1000")

    def run(self, command, seconds=COMMAND_SECONDS_MAX, patient=False):
        """Exit code and output of a command; None if it does not end in time."""
        mark = f"end-{next(self.marks)}-{os.getpid()}"
        begin = len(self.said)
        # In the echo of the line the mark is in two parts.
        self.console.sendall(f"{command}\necho {mark[:4]}''{mark[4:]} $?\n".encode())
        end = time.time() + seconds
        while time.time() < end:
            try:
                self.said += self.console.recv(1 << 16)
            except TimeoutError:
                continue
            if found := re.search(rf"{mark} (\d+)\r?\n".encode(), self.said[begin:]):
                text = self.said[begin:begin + found.start()].decode(errors="replace").replace("\r", "")
                return int(found[1]), "\n".join(line for line in text.splitlines() if mark[4:] not in line)
        if patient:
            return None, ""
        sys.exit(f"in the guest `{command}` did not end in {seconds} s; console: {self.path('console.log')}")

    def monitor(self, line):
        """One line for QEMU's monitor."""
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(self.path("monitor"))
            with peer.makefile("rw") as stream:
                stream.readline()
                orders = (("qmp_capabilities", {}), ("human-monitor-command", {"command-line": line}))
                for order, arguments in orders:
                    stream.write(json.dumps({"execute": order, "arguments": arguments}) + "\n")
                    stream.flush()
                    while "event" in json.loads(stream.readline()):
                        pass

    def pull(self, number):
        """Takes a drive out of the running machine."""
        self.monitor(f"device_del h{number}")

    def put(self, number):
        """Puts it in again, or for the first time."""
        # The old medium goes some time after its device.
        self.monitor(f"drive_del d{number}")
        self.monitor(f"drive_add 0 file={self.drive(number)},format=raw,if=none,id=d{number},cache=unsafe")
        self.monitor(f"device_add scsi-hd,drive=d{number},serial=SER{number},id=h{number},bus=bus.0")

    def power_off(self):
        """Shuts the guest down in order: the service, then the file system. The rest of a shutdown takes minutes here."""
        self.run("systemctl stop openraid; sync")
        self.console.sendall(b"echo u >/proc/sysrq-trigger; sleep 2; echo b >/proc/sysrq-trigger\n")
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def health(machine):
    """What `list` ends with, the array's health or why there is none, whether md has anything, what the service says."""
    code, _ = machine.run("openraid list")
    _, text = machine.run("openraid show data --json")
    _, md = machine.run("cat /proc/mdstat")
    _, unit = machine.run("systemctl show -P StatusText openraid")
    found = re.search(r'"health":\s*"(\w+)"', text)
    md = "md" if re.search(r"^md\d+ :", md, re.M) else "no md"
    return code, found[1] if found else "not served", md, unit.strip().splitlines()[-1]


FINE = (0, "optimal", "no md", "1 array served, all optimal")
DEGRADED = (2, "degraded", "no md", "1 array served; data DEGRADED")


def wait_for(machine, wanted):
    """Waits until the array has this health, and no task."""
    condition = f"grep -q '\"health\": *\"{wanted}\"'"
    code, _ = machine.run("n=0; until openraid show data --json | tr -d '\\n' | " + condition +
                          "; do n=$((n + 1)); [ $n -lt 120 ] || break; sleep 1; done; [ $n -lt 120 ]")
    return code == 0


def first_boot(machine):
    """The array is made as an administrator makes it. Its initramfs follows."""
    machine.start(range(DRIVES), "md")
    _, names = machine.run("ls /dev/disk/by-id")
    members = " ".join("/dev/disk/by-id/" + next(name for name in names.split() if name.endswith(f"SER{number}"))
                       for number in range(DRIVES))
    code, text = machine.run(f"openraid create data --level 6 --bitmap internal --assume-clean {members}")
    if code:
        sys.exit(f"create ended with {code}: {text}")
    machine.run("openraid assemble data")
    seen = health(machine)
    # What an administrator sees on a machine without trouble: no alarm, and a service that is not confined too much.
    _, log = machine.run("journalctl -b -u openraid -p warning --no-pager -q")
    print(log, flush=True)
    machine.power_off()
    renew_initramfs(machine.folder)
    return seen


def late(machine):
    """All drives come when the machine is up: first every face says that the array is not there, then it is served."""
    machine.start([])
    machine.run("systemctl is-system-running --wait >/dev/null")
    before = health(machine)
    _, alarms = machine.run("openraid alarms")
    for number in range(DRIVES):
        machine.put(number)
    wait_for(machine, "optimal")
    seen = health(machine)
    _, after = machine.run("openraid alarms --json | grep -c '\"until_seconds\": *null'")
    machine.power_off()
    is_told = before[1:] == ("offline", "no md", "0 arrays served; data OFFLINE") and before[0] and "data" in alarms
    return seen if is_told else (*before, alarms.strip(), after)


def boots(machine):
    """Rows: what was done, what is wanted, what was seen."""
    every = list(range(DRIVES))
    cases = [
        ("boot with mdadm installed", every, "own", FINE),
        ("the initramfs gives them to md", every, "md", FINE),
        ("drives in other order", every[::-1], "own", FINE),
        ("one drive missing", every[1:], "own", DEGRADED),
        ("two drives missing", every[2:], "own", DEGRADED),
        ("all drives again", every, "own", FINE),
    ]
    for title, drives, initramfs, wanted in cases:
        machine.start(drives, initramfs)
        machine.run("systemctl is-system-running --wait >/dev/null")
        wait_for(machine, wanted[1])
        seen = health(machine)
        if initramfs == "md" and machine.run("openraid events | grep -q 'md had the members of array data'")[0]:
            seen = (*seen, "md never had them")
        yield title, wanted, seen
        machine.power_off()
    yield "all drives late", FINE, late(machine)


def pulls(machine):
    """The same for drives that are pulled while the machine runs."""
    machine.start(range(DRIVES))
    machine.run("systemctl start openraid-disk@data")
    for load in (False, True):
        if load:
            machine.run("(while :; do dd if=/dev/urandom of=/dev/openraid/data bs=64k count=32 oflag=direct; done) "
                        ">/dev/null 2>&1 & echo $! >/run/load")
        how = "under load" if load else "idle"
        for number in range(DRIVES):
            machine.pull(number)
            gone = wait_for(machine, "degraded")
            _, events = machine.run("openraid events | grep SER | tail -3")
            yield f"drive {number} is pulled {how}", (True, True), (gone, "it vanished" in events)
            machine.put(number)
            back = wait_for(machine, "optimal")
            yield f"drive {number} is back", (True, FINE), (back, health(machine))
        if load:
            machine.run("kill $(cat /run/load); sleep 3")
    code, text = machine.run("openraid check data --follow")
    yield "all rows fit", 0, code if not code else (code, text)
    machine.power_off()


def main():
    if os.geteuid():
        sys.exit("tools/machine.py needs root: it makes a root file system and changes into it")
    package = (sys.argv[1:2] or sorted(glob.glob("target/package/openraid_*.deb")) or [None])[0]
    if package is None:
        sys.exit("there is no package; make one with: make package")
    folder = os.path.abspath((sys.argv[2:3] or ["target/machine"])[0])
    os.makedirs(folder, exist_ok=True)
    root = folder + "/root"
    if not os.path.exists(root + "/boot/vmlinuz") and not glob.glob(root + "/boot/vmlinuz-*"):
        shutil.rmtree(root, ignore_errors=True)
        build_root(root)
    build_disk(folder, root, package)
    for number in range(DRIVES):
        shell("rm", "-f", f"{folder}/drive{number}.img")
    machine = Machine(folder)
    rows = os.environ.get("ROWS", "boots pulls")
    failed = False
    parts = [[("first boot, array made", FINE, first_boot(machine))]]
    parts += [part(machine) for part in (boots, pulls) if part.__name__ in rows]
    for title, wanted, seen in itertools.chain(*parts):
        right = seen == wanted
        failed |= not right
        print(f"{title:32} {'ok' if right else 'FAILED':7} {seen}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
