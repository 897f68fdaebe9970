"""The guest of tools/machine.py: how its root and its disk are made, and how it is driven under QEMU without KVM."""

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
# And an hour.
DAY_SECONDS = 25 * 3600
BOOT_SECONDS_MAX = 1200
COMMAND_SECONDS_MAX = 1800
PACKAGES = ("linux-image-amd64 systemd-sysv udev mdadm nbd-client e2fsprogs kmod curl iproute2 "
            "smartmontools procps initramfs-tools dracut-core zstd qemu-utils python3")
# Drivers of the guest's devices, for a small initramfs.
MODULES = "virtio_pci virtio_blk virtio_scsi sd_mod ext4 md_mod raid456"
DRACUT_MODULES = "base bash udev-rules rootfs-block fs-lib kernel-modules mdraid openraid"
NO_INITRAMFS = "/etc/initramfs-tools/update-initramfs.conf"
# What only costs time here. The initramfs is made outside.
MASKED = ("apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer "
          "systemd-networkd.service openraid-initramfs.service")
# An emulated processor is slow, and so are drives on it.
PATIENT = "OPENRAID_OPEN_SECONDS=300"
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


def write(name, text):
    """Writes a file, and makes its folder."""
    os.makedirs(os.path.dirname(name), exist_ok=True)
    with open(name, "w", encoding="ascii") as file:
        file.write(text)


def inside(system, *words):
    """Runs a program in the root of the guest, on this machine."""
    shell("mount", "-t", "proc", "proc", system + "/proc")
    try:
        return shell("chroot", system, *words, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    finally:
        shell("umount", system + "/proc")


def lower(package, place):
    """The package with a lower version: what an upgrade begins from."""
    tree = place + ".tree"
    shutil.rmtree(tree, ignore_errors=True)
    shell("dpkg-deb", "-R", package, tree)
    with open(tree + "/DEBIAN/control", encoding="utf-8") as file:
        text = re.sub(r"(?m)^Version: .*", r"\g<0>~before", file.read())
    with open(tree + "/DEBIAN/control", "w", encoding="utf-8") as file:
        file.write(text)
    shell("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, place)
    shutil.rmtree(tree)


def build_disk(folder, root, package, before):
    """The system disk: the bare root with the package before, the package to which it is upgraded, and a root shell on the console."""
    system = folder + "/system"
    shutil.rmtree(system, ignore_errors=True)
    shell("cp", "-a", root, system)
    lower(before, system + "/var/tmp/before.deb")
    # The processor of the guest is slow: what is unpacked there is not compressed with xz.
    shell("dpkg-deb", "-R", package, system + "/var/tmp/tree")
    shell("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", system + "/var/tmp/tree", system + "/var/tmp/openraid.deb")
    shutil.rmtree(system + "/var/tmp/tree")
    shutil.copy(os.path.dirname(os.path.abspath(__file__)) + "/interfaces.py", system + "/usr/local/bin/interfaces")
    files = {
        "/etc/hostname": "judge\n",
        "/etc/fstab": "/dev/vda / ext4 defaults 0 0\n",
        "/etc/systemd/system/serial-getty@ttyS0.service.d/shell.conf": GETTY,
        "/etc/systemd/system.conf.d/slow.conf": "[Manager]\nDefaultTimeoutStartSec=20min\nDefaultDeviceTimeoutSec=20min\n",
        "/etc/systemd/system/openraid.service.d/slow.conf": f"[Service]\nEnvironment={PATIENT}\nWatchdogSec=0\n",
        "/etc/initramfs-tools/modules": "\n".join(MODULES.split()) + "\n",
        "/etc/initramfs-tools/conf.d/small": "MODULES=list\nCOMPRESS=gzip\n",
    }
    for name, text in files.items():
        write(system + name, text)
    for unit in MASKED.split():
        os.symlink("/dev/null", f"{system}/etc/systemd/system/{unit}")
    inside(system, "dpkg", "-i", "/var/tmp/before.deb")
    inside(system, "passwd", "-d", "root")
    keep_kernel(folder, "md")
    # The trigger of the package makes the initramfs: here it is made outside.
    write(system + NO_INITRAMFS, "update_initramfs=no\n")
    disk = folder + "/system.img"
    shell("rm", "-f", disk)
    shell("truncate", "-s", "3G", disk)
    shell("mkfs.ext4", "-q", "-d", system, disk)
    write(system + NO_INITRAMFS, "update_initramfs=yes\n")
    inside(system, "dpkg", "-i", "/var/tmp/openraid.deb")


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


def make_dracut(folder, left_out):
    """An initramfs of dracut for every machine, in which md takes what it finds; one module of those is left out."""
    system = folder + "/system"
    modules = [own for own in DRACUT_MODULES.split() if own != left_out]
    kernel = os.path.basename(glob.glob(system + "/boot/vmlinuz-*")[0]).removeprefix("vmlinuz-")
    inside(system, "dracut", "--force", "--no-hostonly", "--gzip", "--modules", " ".join(modules), "--drivers", MODULES, "--kernel-cmdline",
           "rd.auto=1", "/boot/initrd-dracut", kernel)
    shutil.copy(system + "/boot/initrd-dracut", folder + "/initrd-dracut")


class Machine:
    """The guest: it is started with some drives, takes commands on its console, and loses and gets drives."""

    def __init__(self, folder):
        self.folder = folder
        self.process = self.console = None
        self.said = b""
        self.marks = itertools.count(1)
        self.boots = 0

    def path(self, name):
        return f"{self.folder}/{name}"

    def drive(self, number):
        place = self.path(f"drive{number}.img")
        if not os.path.exists(place):
            shell("truncate", "-s", str(DRIVE_BYTES), place)
        return place

    def start(self, drives, initramfs="own", clock=None):
        """Boots with these drives, in this order, until the console answers. Each boot is a day after the one before: a drive that
        comes back too often within a day stays out."""
        clock = clock or time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + self.boots * DAY_SECONDS))
        words = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", "1024", "-display", "none", "-no-reboot",
                 "-nodefaults", "-kernel", self.path("vmlinuz"), "-initrd", self.path(f"initrd-{initramfs}"), "-append",
                 "root=/dev/vda rw console=ttyS0 net.ifnames=0 systemd.show_status=0 no_timer_check mitigations=off fsck.mode=skip",
                 "-drive", f"file={self.path('system.img')},format=raw,if=virtio,cache=unsafe",
                 "-device", "virtio-scsi-pci,id=bus", "-rtc", f"base={clock}",
                 "-serial", f"unix:{self.path('console')},server=on,wait=off,logfile={self.path('console.log')}",
                 "-qmp", f"unix:{self.path('monitor')},server=on,wait=off"]
        for number in drives:
            words += ["-drive", f"file={self.drive(number)},format=raw,if=none,id=d{number},cache=unsafe",
                      "-device", f"scsi-hd,drive=d{number},serial=SER{number},id=h{number},bus=bus.0"]
        self.process = subprocess.Popen(words)
        self.boots += 1
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
        self.run("until systemctl is-active openraid >/dev/null || systemctl is-failed openraid >/dev/null; do sleep 1; done")

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

    def put(self, number, medium=None):
        """Puts it in again, or for the first time. Another medium in its place has its serial number."""
        # The old medium goes some time after its device.
        self.monitor(f"drive_del d{number}")
        self.monitor(f"drive_add 0 file={medium or self.drive(number)},format=raw,if=none,id=d{number},cache=unsafe")
        self.monitor(f"device_add scsi-hd,drive=d{number},serial=SER{number},id=h{number},bus=bus.0")

    def power_off(self):
        """Shuts the guest down in order: the service, then the file system. The rest of a shutdown takes minutes here."""
        self.run("systemctl stop openraid-disk@data openraid.socket openraid; sync")
        self.console.sendall(b"echo u >/proc/sysrq-trigger; sleep 2; echo b >/proc/sysrq-trigger\n")
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def end(self):
        """Takes the power away, if the guest still runs."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
