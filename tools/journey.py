#!/usr/bin/env python3
"""A first-time user's journey in Debian's Chromium: from a server without arrays to a mounted file system.

    tools/journey.py PROGRAM GUEST [FOLDER]

Signs in by the link that `openraid login` prints, makes an array of the drives that the console finds, copies the one line of the
array's page, and runs it. Nothing is typed but that line. The line for the packaged socket runs too, with the commands of the packaged unit in the place of
systemd. The drives are files, which a stand-in for lsblk lists. If this machine
may not load the kernel's module nbd, the line runs in a Linux guest (the program GUEST), with the same configuration, registry
and members, and a server that was started again there; in it the modules are in another folder, and there is no sudo. With FOLDER, the
screenshots are left there. Needs the Python package playwright, and nbd-client's kernel side in the guest (user-mode-linux,
qemu-utils).
"""

import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from playwright.sync_api import expect, sync_playwright

DRIVES = 4
DRIVE_BYTES = 40 << 20
WIDTH = 1280
# What runs in the guest. The host's files are there for reading: members, registry and sockets go into memory, to the same paths.
JOB = r"""
mkdir -p /run/bin /run/lock /run/copy /run/srv
cp -a {folder}/. /run/copy
mount --bind /run/copy {folder}
mount --bind /run/srv /srv
printf '#!/bin/sh\n[ -e "/sys/module/$1" ] || exec insmod "/usr/lib/uml/modules/$(uname -r)/kernel/drivers/block/$1.ko"\n' >/run/bin/modprobe
printf '#!/bin/sh\nexec "$@"\n' >/run/bin/sudo
chmod +x /run/bin/*
export PATH=/run/bin:$PATH XDG_STATE_HOME={folder}/state XDG_RUNTIME_DIR={folder}/run
mkdir -p /run/openraid-nbd
sed -i 's|nbd-unix = \[|&"/run/openraid-nbd/nbd.sock", |' {folder}/openraid.toml
{program} serve --config {folder}/openraid.toml &
{program} show {name} --wait 120 >/dev/null
set -e
{line}
grep ' /srv/{name} ext4 ' /proc/mounts
cp /usr/bin/qemu-nbd /srv/{name}/copy
sync
echo 3 >/proc/sys/vm/drop_caches
cmp /usr/bin/qemu-nbd /srv/{name}/copy
device=$(awk '$2 == "/srv/{name}" {{ print $1 }}' /proc/mounts)
umount /srv/{name}
fsck.ext4 -fn "$device"
qemu-nbd --disconnect "$device"
# The same line once more: the file system is still the one that it made.
{line}
cmp /usr/bin/qemu-nbd /srv/{name}/copy
umount /srv/{name}
qemu-nbd --disconnect "$device"
# The packaged unit: without systemd its part is done by a stand-in for systemctl.
cat >/run/bin/systemctl <<'END'
#!/bin/sh
set -e
echo "systemctl $*" >>/run/asked
[ "$1" = enable ] || exit 0
{program} attach --by-unit -- {name}
END
chmod +x /run/bin/systemctl
: >/run/fstab
mount --bind /run/fstab /etc/fstab
{unit_line}
cmp /usr/bin/qemu-nbd /srv/{name}/copy
cat /etc/fstab /run/asked
umount /srv/{name}
mount /srv/{name}
cmp /usr/bin/qemu-nbd /srv/{name}/copy
umount /srv/{name}
{program} detach --by-unit -- {name}
{program} stop --all
echo journey-ends
"""


# The same page for an array that the packaged server serves.
BY_UNIT = """async (name) => {
  const folder = document.querySelector('script[type=module]').src.replace(/main.js$/, '');
  const [{ asDisk }, { array }] = await Promise.all([import(folder + 'disk.js'), import(folder + 'api.js')]);
  const shown = asDisk({ ...array(name), addresses: [`nbd+unix:///${name}?socket=/run/openraid-nbd/nbd.sock`] }, true);
  return shown.querySelector('#disk-line').textContent;
}"""


class Server:
    """A server without arrays, on a machine with drives that nothing uses."""

    def __init__(self, program):
        self.program = program
        self.place = tempfile.TemporaryDirectory(prefix="openraid-journey-", dir="/var/tmp")
        self.folder = pathlib.Path(self.place.name)

    def __enter__(self):
        drives = []
        for nth in range(DRIVES):
            path = self.folder / f"disk{nth}"
            with open(path, "wb") as file:
                file.truncate(DRIVE_BYTES)
            drives.append({"path": str(path), "size": DRIVE_BYTES, "model": "Example 40M", "serial": f"SN{nth:04}", "type": "disk", "fstype": None,
                           "pttype": None, "mountpoints": [None], "ro": False, "rota": True})
        (self.folder / "bin").mkdir()
        (self.folder / "run").mkdir()
        listing = self.folder / "bin" / "lsblk"
        listing.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps({'blockdevices': drives})}\nEND\n")
        listing.chmod(0o755)
        config = self.folder / "openraid.toml"
        config.write_text(f'[server]\nnbd-unix = ["{self.folder}/nbd.sock"]\n[management]\nlisten = "127.0.0.1:0"\n')
        self.environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}", "XDG_STATE_HOME": f"{self.folder}/state",
                            "XDG_RUNTIME_DIR": f"{self.folder}/run"}
        self.environment.pop("OPENRAID_CONTROL", None)
        self.server = subprocess.Popen([self.program, "serve", "--json", "--config", str(config)], cwd=self.folder, env=self.environment,
                                       stdout=subprocess.PIPE, text=True)
        json.loads(self.server.stdout.readline())
        return self

    def link(self):
        done = subprocess.run([self.program, "login", "--json"], env=self.environment, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["link"]

    def stop(self):
        self.server.terminate()
        self.server.wait()

    def __exit__(self, *_):
        self.stop()
        self.place.cleanup()


def made(server, browser, out):
    """The journey in the browser. Returns the array's name, the line of its page, and the line that the page has if the server listens at the
    packaged socket."""
    page = browser.new_page(viewport={"width": WIDTH, "height": 900})
    steps = iter(range(1, 100))

    def picture(what):
        if out:
            page.wait_for_timeout(500)
            page.screenshot(path=out / f"journey-{next(steps)}-{what}.png", full_page=True)

    page.goto(server.link())
    expect(page.get_by_role("heading", name="No array is served")).to_be_visible()
    picture("first-page")
    page.get_by_role("main").get_by_role("link", name="Create an array").click()
    page.get_by_role("button", name="Use all of them").click()
    expect(page.get_by_label("Level").first).to_have_value("6")
    picture("drives")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#cli")).to_contain_text("--level 6")
    picture("preview")
    name = page.get_by_label("Name").input_value()
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    line = page.locator("#disk-line")
    expect(line).to_be_visible()
    picture("array")
    text = line.inner_text()
    unit = page.evaluate(BY_UNIT, name)
    assert "\n" not in text and "\n" not in unit, (text, unit)
    page.close()
    return name, text, unit


def mounted(server, guest, name, line, unit_line):
    """Both lines in a guest, where the array is served again."""
    job = JOB.format(folder=server.folder, program=shlex.quote(server.program), name=name, line=line, unit_line=unit_line)
    done = subprocess.run([guest, "--timeout", "600", "--", job], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and "journey-ends" in done.stdout, (done.stdout[-3000:], done.stderr[-3000:])
    asked = [f"systemctl enable --now openraid-disk@{name}.service", "systemctl daemon-reload"]
    entry = f"/dev/openraid/{name} /srv/{name} ext4 nofail,_netdev,x-systemd.requires=openraid-disk@{name}.service 0 2"
    assert [own for own in done.stdout.splitlines() if own in [entry, *asked]] == [entry, *asked], done.stdout


def main():
    program, guest = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    out = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    if out:
        out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, Server(program) as server:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        name, line, unit_line = made(server, browser, out)
        browser.close()
        print(f"journey: the array {name} is made in the browser; the line is\n  {line}")
        server.stop()
        mounted(server, guest, name, line, unit_line)
    print("journey: the line has made a file system and mounted it, twice, and a file is there again after a mount; so does the line of the package")


if __name__ == "__main__":
    main()
