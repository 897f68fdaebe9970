#!/usr/bin/env python3
"""A real machine: Debian 12 with systemd, udev, mdadm, a stock kernel and six SCSI drives, under QEMU without KVM.

  tools/machine.py [PACKAGE [FOLDER]]   PACKAGE is target/package/openraid_*.deb unless named; FOLDER is target/machine

As root. Builds the guest once (debootstrap), installs the package in it, and goes through boots: with mdadm installed, with
the drives in other order, with one and two drives missing. After each boot either the array is served, or every face says
that it is not. Prints a table, and ends with 1 if a row failed. Needs debootstrap, e2fsprogs and qemu-system-x86; a boot
takes one to three minutes.
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


def build_disk(folder, root, package):
    """The system disk: the bare root, with the package and a root shell on the serial console."""
    system = folder + "/system"
    shutil.rmtree(system, ignore_errors=True)
    shell("cp", "-a", root, system)
    shutil.copy(package, system + "/var/tmp/openraid.deb")
    shell("mount", "-t", "proc", "proc", system + "/proc")
    try:
        shell("chroot", system, "dpkg", "-i", "/var/tmp/openraid.deb")
        shell("chroot", system, "passwd", "-d", "root")
    finally:
        shell("umount", system + "/proc")
    files = {
        "/etc/hostname": "judge\n",
        "/etc/fstab": "/dev/vda / ext4 defaults 0 1\n",
        "/etc/systemd/system/serial-getty@ttyS0.service.d/shell.conf": GETTY,
    }
    for name, text in files.items():
        os.makedirs(os.path.dirname(system + name), exist_ok=True)
        with open(system + name, "w", encoding="ascii") as file:
            file.write(text)
    disk = folder + "/system.img"
    shell("rm", "-f", disk)
    shell("truncate", "-s", "3G", disk)
    shell("mkfs.ext4", "-q", "-d", system, disk)


class Machine:
    """The guest: it is started with some drives, takes commands on its console, and loses and gets drives."""

    def __init__(self, folder):
        self.folder = folder
        self.process = self.console = None
        self.said = b""
        self.marks = itertools.count(1)

    def path(self, name):
        return f"{self.folder}/{name}"

    def kernel(self):
        """Kernel and initramfs, as they are on the system disk now."""
        listed = shell("debugfs", "-R", "ls -p /boot", self.path("system.img"))
        for kind in ("vmlinuz", "initrd.img"):
            name = re.search(rf"/({kind}-[^/]+)/", listed)[1]
            shell("debugfs", "-R", f"dump /boot/{name} {self.path(kind)}", self.path("system.img"))

    def drive(self, number):
        place = self.path(f"drive{number}.img")
        if not os.path.exists(place):
            shell("truncate", "-s", str(DRIVE_BYTES), place)
        return place

    def start(self, drives):
        """Boots with these drives, in this order, until the console answers."""
        self.kernel()
        words = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", "1024", "-display", "none",
                 "-nodefaults", "-kernel", self.path("vmlinuz"), "-initrd", self.path("initrd.img"), "-append",
                 "root=/dev/vda rw console=ttyS0 net.ifnames=0 systemd.show_status=0 no_timer_check",
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
        """Puts it in again."""
        self.monitor(f"drive_add 0 file={self.drive(number)},format=raw,if=none,id=d{number},cache=unsafe")
        self.monitor(f"device_add scsi-hd,drive=d{number},serial=SER{number},id=h{number},bus=bus.0")

    def power_off(self):
        """Shuts the guest down as an administrator would."""
        self.console.sendall(b"systemctl poweroff\n")
        try:
            self.process.wait(300)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def health(machine):
    """What `list` ends with, the array's health or why there is none, and whether md has anything."""
    code, _ = machine.run("openraid list")
    _, text = machine.run("openraid show data --json")
    _, md = machine.run("cat /proc/mdstat")
    found = re.search(r'"health":\s*"(\w+)"', text)
    return code, found[1] if found else "not served", "md" if re.search(r"^md\d+ :", md, re.M) else "no md"


def first_boot(machine):
    """The array is made as an administrator makes it, and its initramfs follows by itself."""
    machine.start(range(DRIVES))
    members = " ".join(f"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_SER{number}" for number in range(DRIVES))
    # Names by serial number depend on the version of udev; the serial number does not.
    _, names = machine.run("ls /dev/disk/by-id")
    if "SER0" in names:
        members = " ".join("/dev/disk/by-id/" + next(name for name in names.split() if name.endswith(f"SER{number}"))
                           for number in range(DRIVES))
    code, text = machine.run(f"openraid create data --level 6 --assume-clean {members}")
    if code:
        sys.exit(f"create ended with {code}: {text}")
    machine.run("openraid assemble data")
    machine.run("until grep -q ID_FS_UUID /var/lib/openraid/initramfs.rules; do sleep 2; done")
    machine.run("while systemctl is-active -q openraid-initramfs.service || "
                "[ $(systemctl show -P ActiveState openraid-initramfs.service) = activating ]; do sleep 2; done")
    seen = health(machine)
    machine.run("systemctl stop openraid; sync")
    machine.power_off()
    return seen


def boots(machine):
    """Rows: what was done, what is wanted, what was seen."""
    all_of = list(range(DRIVES))
    yield "first boot, array made", (0, "optimal", "no md"), first_boot(machine)
    cases = [
        ("boot with mdadm installed", all_of, (0, "optimal", "no md")),
        ("drives in other order", all_of[::-1], (0, "optimal", "no md")),
        ("one drive missing", all_of[1:], (2, "degraded", "no md")),
        ("all drives again", all_of, None),
    ]
    for title, drives, wanted in cases:
        machine.start(drives)
        machine.run("systemctl is-system-running --wait >/dev/null; sleep 5")
        seen = health(machine)
        yield title, wanted, seen
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
    failed = False
    for title, wanted, seen in boots(machine):
        right = wanted is None or seen == wanted
        failed |= not right
        print(f"{title:32} {'ok' if right else 'FAILED':7} list ends with {seen[0]}, {seen[1]}, {seen[2]}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
