"""A stock kernel of Debian under QEMU without KVM, with an initramfs of this machine's programs: the guest of tools/attach and its like.

Needs the packages qemu-system-x86, busybox-static, cpio and kmod."""

import dataclasses
import glob
import os
import re
import shutil
import subprocess
import sys

from guest import shell

FOLDER = "target/attach"
BOOT_SECONDS_MAX = 300
# The TSC of an emulated processor is calibrated wrongly on a busy machine, and so would be each pause.
APPEND = ("console=ttyS0 no_timer_check clocksource=acpi_pm lpj=4000000 random.trust_cpu=on mitigations=off nowatchdog quiet panic=-1 "
          "net.ifnames=0")
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev; mount -t tmpfs -o size=80% t /run; mount -t tmpfs t /tmp
mkdir -p /dev/shm; ip link set lo up; modprobe ext4; modprobe crc32c_generic
bash /job; echo "ENDED $?"
sync; poweroff -f
"""


def kernel(folder):
    """The package of the kernel: the file or the package that KERNEL names, or Debian's newest."""
    named = os.environ.get("KERNEL", "linux-image-cloud-amd64")
    if os.path.exists(named):
        return os.path.abspath(named)
    # The name without a version is a package that depends on the newest one.
    found = re.search(r"Depends: (linux-image-\S+)", shell("apt-cache", "depends", named))
    name = found[1] if found else named
    if not glob.glob(f"{folder}/{name}_*.deb"):
        shell("apt-get", "download", name, cwd=folder)
    return glob.glob(f"{folder}/{name}_*.deb")[0]


def add(root, program):
    """A program of this machine, and its libraries."""
    place = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not place:
        sys.exit(f"{program} is not installed; the head of this file has the packages")
    shutil.copy(os.path.realpath(place), f"{root}/usr/bin/{os.path.basename(program)}")
    add_libraries(root, place)


def add_libraries(root, place):
    """What the dynamic linker loads for a file."""
    listed = subprocess.run(["ldd", place], capture_output=True, text=True, check=False).stdout
    for library in re.findall(r"(/\S+) \(0x", listed):
        os.makedirs(root + os.path.dirname(library), exist_ok=True)
        shutil.copy(library, root + library)


@dataclasses.dataclass
class Contents:
    """What an initramfs has: the program openraid, the shell's job, the kernel's modules, programs of this machine, and files of it by their patterns."""

    program: str
    job: str
    modules: str
    tools: str
    patterns: tuple = ()


def initramfs(folder, name, contents):
    """Kernel and initramfs of this name, in the folder. Returns the places of both."""
    package, unpacked, root = kernel(folder), f"{folder}/kernel-{name}", f"{folder}/root-{name}"
    for place in (unpacked, root):
        shutil.rmtree(place, ignore_errors=True)
    shell("dpkg-deb", "-x", package, unpacked)
    version = os.listdir(f"{unpacked}/lib/modules")[0]
    shell("depmod", "-b", unpacked, version)
    for place in ("bin", "sbin", "usr/bin", "usr/sbin", "proc", "sys", "dev", "run", "tmp", "mnt", "etc", f"lib/modules/{version}"):
        os.makedirs(f"{root}/{place}", exist_ok=True)
    for module in contents.modules.split():
        listed = subprocess.run(["modprobe", "-d", unpacked, "-S", version, "--show-depends", module], capture_output=True, text=True, check=False)
        for place in re.findall(r"(?m)^insmod (\S+)", listed.stdout):
            target = root + place.removeprefix(unpacked)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(place, target)
    for place in glob.glob(f"{unpacked}/lib/modules/{version}/modules.*"):
        shutil.copy(place, f"{root}/lib/modules/{version}")
    shell("depmod", "-b", root, version)
    shutil.copy(shutil.which("busybox") or sys.exit("busybox-static is not installed"), f"{root}/bin/busybox")
    for tool in contents.tools.split():
        add(root, tool)
    for place in (place for pattern in contents.patterns for place in glob.glob(pattern)):
        os.makedirs(root + os.path.dirname(place), exist_ok=True)
        shutil.copy(place, root + place)
        add_libraries(root, place)
    add(root, contents.program)
    os.rename(f"{root}/usr/bin/{os.path.basename(contents.program)}", f"{root}/usr/bin/openraid")
    os.symlink("/proc/mounts", f"{root}/etc/mtab")
    files = {"etc/machine-id": "0123456789abcdef0123456789abcdef\n", "etc/passwd": "root:x:0:0::/:/bin/sh\n", "init": INIT, "job": contents.job}
    for place, text in files.items():
        with open(f"{root}/{place}", "w", encoding="ascii") as file:
            file.write(text)
    os.chmod(f"{root}/init", 0o755)
    packed = f"{folder}/initrd-{name}"
    shell("sh", "-c", f"find . | cpio -o -H newc --quiet | gzip -1 >'{packed}'", cwd=root)
    return f"{unpacked}/boot/vmlinuz-{version}", packed


def read(log):
    """What the guest has printed."""
    if not os.path.exists(log):
        return ""
    with open(log, encoding="utf-8", errors="replace") as file:
        return file.read().replace("\r", "")


def pauses(text):
    """Of the longest requests, as many as there were kills: the shortest of the longest tenth, of the longer half, and of nine tenths, in ms."""
    found = re.search(r"(?m)^PAUSES ([\d ]+)$", text)
    longest = [int(word) for word in found[1].split()] if found else []
    return [longest[len(longest) * part // 10] for part in (1, 5, 9)] if longest else []


def command(log, places, more):
    """The words that boot a kernel and initramfs with further arguments of QEMU. The console goes to the log, without what an older guest has said."""
    if os.path.exists(log):
        os.remove(log)
    image, packed = places
    return ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-nodefaults", "-no-reboot", "-display", "none",
            "-serial", f"file:{log}", "-kernel", image, "-initrd", packed, "-append", APPEND, *more]
