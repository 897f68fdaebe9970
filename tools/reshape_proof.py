#!/usr/bin/env python3
"""Changes of shape under power cuts: the real program on drives with volatile caches, and next to Linux md.

  tools/reshape_proof.py [--openraid PROGRAM] [--part cuts|md] [--shapes TEXT] [--cuts N] [--rounds N] [--seed N] [--lying]
                         [--json FILE] [FOLDER]

Part `cuts`: openraid serves an array of NBD exports of tools/shelf.py, whose drives have volatile caches. A client writes sectors that name
themselves, with flushes, while the shape changes. At a random moment the shelf is cut and the server is killed. After the next
start each write that a flush or FUA had promised must be there, and each other one is old or new. The change goes on, with
further cuts, to its end; then the whole array is compared, and `openraid check` must find no mismatch. For each shape this is
repeated until N cuts (25) were in the change.

Part `md`: md makes an array in a guest (user-mode-linux) and the array is filled. From copies of its members md begins the change,
its kernel is killed at a part of it, and md assembles the array in a new guest and ends the change; the same with openraid and `kill -9`
on further copies. Then every sector is compared. N rounds (1).

Without --part both run, one after the other. PROGRAM is target/release/openraid unless named, FOLDER is target/reshape-proof. Members of an
array that lost a sector or did not start are kept there. Ends with 1 if openraid lost a sector, did not start or has mismatches.
The packages user-mode-linux and mdadm are needed for the part `md`.
"""

import argparse
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from host import Host, Ledger, SECTOR, stamps
from uml import Guest

TOOLS = os.path.dirname(os.path.abspath(__file__))
MEMBER_MIB = 16
DRIVES = 6
# The change takes some seconds; the resync after a cut comes before it and is mostly faster.
RATE, RESYNC_RATE = "2M", "20M"
START_S, CHANGE_S, COMMAND_S = 60, 180, 60
# The parts of the change at which md and openraid are killed; 0: as soon as something has moved.
PARTS = (0, 0.07, 0.1, 0.13, 0.16, 0.2, 0.5, 0.8)
CUTS_CHUNK, MD_CHUNK = 16, 512
MD_MIB = 32


def rate_at(part):
    """KiB of each member in a second: the first stripes move slowly, so that the kill is in them."""
    return 500 if part < 0.2 else 1500


class Shape:
    """A change: from which array, to which one, in the words of both programs."""

    def __init__(self, name, level, members, more, chunk, to):
        self.name, self.level, self.members, self.more, self.chunk, self.to = name, level, members, more, chunk, to
        # The words of `openraid reshape`, and of `mdadm --grow`, in which a chunk has KiB.
        self.words = [f"--{key}={value}" for key, value in to.items()]
        self.grow = " ".join(self.words).replace("K", "")

    def is_reached(self, array):
        """Has the array the new shape?"""
        layouts = {"rs": "right-symmetric"}
        seen = {"raid-devices": array["slots"], "level": array["level"].removeprefix("raid"), "chunk": f"{array['chunk_bytes'] >> 10}K",
                "layout": array["layout"]}
        return all(str(seen[key]) == layouts.get(value, str(value)) for key, value in self.to.items())


def all_shapes(chunk):
    """Every change that is tried, with chunks of this size in KiB."""
    return (
        Shape("RAID 5, 3 to 4 members", 5, 3, 1, chunk, {"raid-devices": 4}),
        Shape("RAID 5, 4 to 6 members", 5, 4, 2, chunk, {"raid-devices": 6}),
        Shape("RAID 6, 4 to 5 members", 6, 4, 1, chunk, {"raid-devices": 5}),
        Shape("RAID 5 of 4 to RAID 6 of 5", 5, 4, 1, chunk, {"level": 6, "raid-devices": 5}),
        Shape("RAID 5 of 4, chunks of twice the size", 5, 4, 0, chunk, {"chunk": f"{2 * chunk}K"}),
        Shape("RAID 5 of 4, left- to right-symmetric", 5, 4, 0, chunk, {"layout": "rs"}),
        Shape("RAID 10, 4 to 6 members", 10, 4, 2, chunk, {"raid-devices": 6}),
        Shape("RAID 4, 3 to 4 members", 4, 3, 1, chunk, {"raid-devices": 4}),
    )


class Refused(Exception):
    """The server did not start, did not answer or did not end the change."""


class Server:
    """The real program: an array `data`, its server, and the commands of an administrator."""

    def __init__(self, program, folder, memory):
        self.program, self.folder, self.memory, self.process = program, folder, memory, None
        self.socket = folder + "/nbd.sock"
        self.environment = {**os.environ, "OPENRAID_REGISTRY": folder + "/registry.json", "OPENRAID_CONTROL": folder + "/server",
                            "OPENRAID_CONFIG": "/dev/null"}

    def command(self, *words):
        return dict(args=[self.program, *words], env=self.environment, stdin=subprocess.DEVNULL)

    def run(self, *words, good=(0,)):
        """Runs a command, and returns what it prints."""
        try:
            done = subprocess.run(**self.command(*words), capture_output=True, text=True, timeout=COMMAND_S)
        except subprocess.TimeoutExpired as error:
            raise Refused(f"`openraid {' '.join(words)}` did not end") from error
        if done.returncode not in good:
            said = done.stdout[-300:] + done.stderr[-600:]
            raise Refused(f"`openraid {' '.join(words)}` ended with {done.returncode}: {said}")
        return done.stdout

    def forget(self):
        for name in ("registry.json", "server.log"):
            if os.path.exists(f"{self.folder}/{name}"):
                os.remove(f"{self.folder}/{name}")

    def start(self):
        with open(self.folder + "/server.log", "ab") as log:
            words = self.command("serve", "data", "--memory", self.memory, "--nbd-unix", self.socket)
            self.process = subprocess.Popen(**words, stdout=log, stderr=log, start_new_session=True)

    def ready(self, ledger=None):
        """A client of the array, as soon as there can be one and the server takes commands."""
        end = time.monotonic() + START_S
        while True:
            try:
                host = Host(self.socket, "data", ledger)
                self.run("show", "data", "--wait", str(START_S), "--json", good=(0, 1))
                return host
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise Refused(f"the array is not served: {error}\n{self.log()}") from error
            time.sleep(0.01)

    def log(self):
        with open(self.folder + "/server.log", encoding="utf-8", errors="replace") as file:
            return file.read()[-1500:]

    def show(self):
        return json.loads(self.run("show", "data", "--json", good=(0, 1)))["array"]

    def kill(self):
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def finish(self, shape, seconds=CHANGE_S):
        """Waits until the change has ended and nothing else runs."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            array = self.show()
            if array["shape"] is None and shape.is_reached(array):
                self.run("set", "data", "rebuild.rate=none")
                if array["task"] is None and array["health"] == "optimal":
                    return array
            time.sleep(0.1)
        raise Refused(f"the change did not end: {self.run('show', 'data', good=(0, 1))}\n{self.log()}")

    def check(self):
        """The mismatches that a check of the whole array finds."""
        said = self.run("check", "data", "--follow", "--json", good=(0, 3))
        return json.loads(said.strip().splitlines()[-1])["array"]["last_check_mismatches"]

    def stop(self):
        self.run("stop", "--all")
        self.process.wait(COMMAND_S)


class Cuts:
    """One shape under cuts, until there were enough of them in the change."""

    def __init__(self, server, shape, draw, lying):
        self.server, self.shape, self.draw, self.lying, self.ledger = server, shape, draw, lying, None
        self.counts = dict(shape=shape.name, changes=0, cuts=0, before_or_after=0, writes=0, promised=0, reads=0, compared=0, lost=0,
                           refused=0, errors=0, mismatches=0, dropped=0, kept=0, places=[0] * 5)
        self.notes = []

    def order(self, line):
        """One order for the shelf, and its answer."""
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(self.server.folder + "/shelf/control")
            peer.sendall(line.encode() + b"\n")
            with peer.makefile() as stream:
                answer = json.loads(stream.readline())
        if "error" in answer:
            sys.exit(f"the shelf: {answer['error']}")
        return answer

    def member(self, number):
        return f"nbd+unix:///d{number}?socket={self.server.folder}/shelf/shelf.sock"

    def create(self):
        """A full array on new drives, served; the further members are its spares."""
        self.server.forget()
        self.order("blank")
        members = [self.member(number) for number in range(self.shape.members)]
        spares = [word for number in range(self.shape.more) for word in ("--spare", self.member(self.shape.members + number))]
        bitmap = self.draw.choice(["none", "internal"])
        self.server.run("create", "data", "--level", str(self.shape.level), "--chunk", f"{self.shape.chunk}K", "--assume-clean",
                        "--bitmap", bitmap, *spares, *members)
        self.server.start()
        host = self.server.ready()
        self.ledger = Ledger(host.size // SECTOR)
        host.fill()
        self.server.run("set", "data", f"rebuild.rate={RATE}")
        if self.lying:
            self.order("lie")
        return self.again(host)

    def again(self, host):
        """A new client: it gets the size that the array has now."""
        host.socket.close()
        return self.server.ready(self.ledger)

    def begin(self):
        """Asks for the change, and does not wait for the answer."""
        words = self.server.command("reshape", "data", *self.shape.words, "--yes")
        return subprocess.Popen(**words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def cut(self, host):
        """Takes the power of the drives and of the server, in one order or the other."""
        how = self.draw.choice(["random", "random", "random", "none", "all", "prefix"])
        server_first = self.draw.random() < 0.7
        if server_first:
            self.server.kill()
        answer = self.order(f"cut {how}")
        if not server_first:
            time.sleep(self.draw.uniform(0, 0.2))
            self.server.kill()
        if host:
            host.drain()
            for name, count in host.counts.items():
                self.counts[name] += count
            self.counts["errors"] += host.errors_before
            self.lost(host.wrong, "a read under load")
        self.counts["kept"] += answer["kept"]
        self.counts["dropped"] += answer["lost"]

    def lost(self, wrong, when):
        """Counts sectors that hold what they must not, and keeps the drives."""
        if wrong:
            self.counts["lost"] += len(wrong)
            self.keep(f"{when}: {len(wrong)} sectors are wrong; (sector, may be, is): {wrong[:5]}")

    def keep(self, text):
        kept = sum(1 for name in os.listdir(self.server.folder) if name.startswith("kept-"))
        place = f"{self.server.folder}/kept-{kept + 1}"
        os.makedirs(place, exist_ok=True)
        self.order(f"save {place}")
        shutil.copy(self.server.folder + "/server.log", place)
        with open(place + "/ledger.json", "w", encoding="ascii") as file:
            json.dump(self.ledger.may, file)
        self.notes.append(f"{text} [{place}]")
        print(f"  {self.shape.name}: {self.notes[-1]}", flush=True)

    def restart(self):
        """The next start, which may be cut itself. Then a client, after it has compared everything."""
        while True:
            self.order("on")
            self.server.start()
            if self.draw.random() < 0.15:
                time.sleep(self.draw.uniform(0, 0.5))
                self.cut(None)
                self.counts["cuts"] += 1
                continue
            host = self.server.ready(self.ledger)
            self.lost(host.compare(), f"after cut {self.counts['cuts']}")
            self.counts["compared"] += len(self.ledger.may)
            return host

    def resync(self):
        """Until the data moves again, or what runs before it runs on. It returns the part of the data that has moved durably."""
        array = self.server.show()
        part = array["shape"] and array["shape"]["recorded_bytes"] / array["shape"]["total_bytes"]
        if part is not None and self.draw.random() < 0.8:
            self.server.run("set", "data", f"rebuild.rate={RESYNC_RATE}")
            while array["shape"] and (array["task"] or {}).get("kind") != "reshape":
                time.sleep(0.05)
                array = self.server.show()
            self.server.run("set", "data", f"rebuild.rate={RATE}")
        return part

    def change(self, goal):
        """One change, from a new array to its end, with cuts on the way."""
        host, is_first = self.create(), True
        while True:
            array = self.server.show()
            if self.shape.is_reached(array) and array["shape"] is None:
                break
            begun = None if array["shape"] or array["task"] else self.begin()
            moved = array["shape"]["moved_bytes"] // SECTOR if array["shape"] else 0
            if self.counts["cuts"] >= goal and not begun:
                break
            seconds = self.draw.uniform(0, 0.25) if begun and is_first else self.draw.uniform(0.02, self.draw.choice([0.5, 3]))
            is_first = False
            goes = host.load(seconds, self.draw, moved)
            host.errors_before = host.errors + (not goes)
            self.cut(host)
            if begun:
                begun.kill()
                begun.wait()
            host = self.restart()
            part = self.resync()
            self.counts["before_or_after" if part is None else "cuts"] += 1
            if part is not None:
                self.counts["places"][min(int(part * 5), 4)] += 1
        self.end(host)

    def end(self, host):
        """The change goes on to its end, and everything fits."""
        self.server.finish(self.shape)
        host = self.again(host)
        if self.shape.more and "level" not in self.shape.to and host.size <= len(self.ledger.may) * SECTOR:
            raise Refused(f"the array has still {host.size} bytes")
        self.lost(host.compare(), "at the end")
        self.counts["compared"] += len(self.ledger.may)
        found = self.server.check()
        if found:
            self.keep(f"the check found {found} mismatches")
        self.counts["mismatches"] += found
        host.socket.close()
        self.server.stop()
        self.counts["changes"] += 1

    def run(self, goal):
        """Changes until there were so many cuts in them."""
        while self.counts["cuts"] < goal and self.counts["refused"] < 3:
            try:
                self.change(goal)
            except (Refused, OSError) as error:
                self.counts["refused"] += 1
                self.keep(f"refused: {error}")
                self.server.kill()
            counts = self.counts
            print(f"  {self.shape.name}: {counts['changes']} changes, {counts['cuts']} cuts in them, {counts['writes']} writes, "
                  f"lost {counts['lost']}, refused {counts['refused']}", flush=True)
        return {**self.counts, "notes": self.notes}


def cuts(program, folder, shapes, given):
    """Part `cuts`: a row for each shape."""
    seed = given.seed
    shelf_folder = folder + "/shelf"
    os.makedirs(shelf_folder, exist_ok=True)
    words = [sys.executable, TOOLS + "/shelf.py", shelf_folder, str(DRIVES), str(MEMBER_MIB), str(seed)]
    shelf = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    server = Server(program, folder, "32M")
    try:
        shelf.stdout.readline()
        for shape in shapes:
            yield Cuts(server, shape, random.Random(f"{seed} {shape.name}"), given.lying).run(given.cuts)
    finally:
        server.kill()
        shelf.kill()
        shelf.wait()


def drives(count):
    """The names of drives in the guest."""
    return [f"/dev/ubd{letter}" for letter in "abcdefgh"[:count]]


def lost_sectors(content, size):
    """How many sectors of a full array are not as they were filled, and the first of them."""
    step, found = 2048, []
    for first in range(0, size // SECTOR, step):
        count = min(step, size // SECTOR - first)
        wanted, seen = stamps(first, count), content(first * SECTOR, count * SECTOR)
        if wanted != seen:
            found += [first + n for n in range(count) if wanted[n * SECTOR:(n + 1) * SECTOR] != seen[n * SECTOR:(n + 1) * SECTOR]]
    return found


class Comparison:
    """One shape: md and openraid begin it on copies of the same members, and are killed at the same parts."""

    def __init__(self, program, folder, shape):
        self.server, self.folder, self.shape = Server(program, folder, "160M"), folder, shape
        self.count = shape.members + shape.more
        self.size, self.running = 0, None

    def path(self, kind, number):
        return f"{self.folder}/{kind}{number}"

    def prepare(self):
        """md makes the array with its spares, and it is filled."""
        for number in range(self.count):
            with open(self.path("base", number), "wb") as file:
                file.truncate(MD_MIB << 20)
        bytes_max = self.shape.members * MD_MIB << 20
        os.makedirs(self.folder + "/guest", exist_ok=True)
        with open(self.folder + "/guest/stamps", "wb") as file:
            file.write(stamps(0, bytes_max // SECTOR))
        spares = f"--spare-devices={self.shape.more}" if self.shape.more else ""
        job = (f"create data --level={self.shape.level} --raid-devices={self.shape.members} --chunk={self.shape.chunk} --assume-clean "
               f"--bitmap=none --metadata=1.2 --data-offset=8M {spares} {' '.join(drives(self.count))}\nfill data stamps\nstop data")
        self.size = int(self.guest("base", job).wait(CHANGE_S)["data.size"])

    def guest(self, kind, job):
        self.running = Guest(self.folder + "/guest", [self.path(kind, number) for number in range(self.count)], job)
        return self.running

    def copy(self):
        for number in range(self.count):
            shutil.copy(self.path("base", number), self.path("d", number))

    def md(self, part):
        """md begins, its kernel is killed, md ends the change in another guest."""
        self.copy()
        job = BEGIN.format(members=" ".join(drives(self.count)), rate=rate_at(part), grow=self.shape.grow, part=int(part * 1000))
        guest = self.guest("d", job)
        here = guest.wait_for("here", CHANGE_S)["here"]
        guest.cut()
        examined = subprocess.run(["mdadm", "--examine", self.path("d", 0)], capture_output=True, text=True).stdout
        recorded = re.findall(r"Reshape pos'n : (\d+)", examined)
        guest = self.guest("d", END.format(members=" ".join(drives(self.count)), size=self.size))
        said = guest.wait(CHANGE_S)
        row = {"by": "md", "part": part, "at": here, "recorded_kib": recorded, "said": said.get("said", ""), "lost": None,
               "mismatches": said.get("mismatches"), "assembled": said.get("assembled") == "yes", "kernel": said.get("kernel", "")}
        if row["assembled"]:
            with open(self.folder + "/guest/content", "rb") as file:
                content = file.read()
            wrong = lost_sectors(lambda at, length: content[at:at + length], self.size)
            row.update(lost=len(wrong), first=wrong[:1])
        return row

    def openraid(self, part):
        """openraid begins, is killed, and ends the change after its next start."""
        self.copy()
        self.server.forget()
        members = [self.path("d", number) for number in range(self.count)]
        self.server.run("assemble", *members)
        self.server.start()
        self.server.ready().socket.close()
        self.server.run("set", "data", f"rebuild.rate={rate_at(part)}K")
        self.server.run("reshape", "data", *self.shape.words, "--yes")
        moving = None
        for _ in range(int(CHANGE_S / 0.01)):
            moving = self.server.show()["shape"]
            if moving is None or moving["moved_bytes"] > part * moving["total_bytes"]:
                break
            time.sleep(0.01)
        self.server.kill()
        self.server.start()
        self.server.ready().socket.close()
        self.server.run("set", "data", "rebuild.rate=none")
        self.server.finish(self.shape)
        host = self.server.ready()
        wrong = lost_sectors(lambda at, length: host.read(at // SECTOR, length // SECTOR), self.size)
        host.socket.close()
        mismatches = self.server.check()
        self.server.stop()
        at = f"{moving['moved_bytes'] >> 10}/{moving['total_bytes'] >> 10}" if moving else "over"
        return {"by": "openraid", "part": part, "at": at, "lost": len(wrong), "first": wrong[:1], "mismatches": mismatches,
                "assembled": True}

    def rows(self):
        """A row for each part of each program."""
        self.prepare()
        for part, begin in itertools.product(PARTS, (self.md, self.openraid)):
            try:
                row = begin(part)
            except (RuntimeError, Refused, OSError) as error:
                row = {"by": begin.__name__, "part": part, "at": "", "lost": None, "assembled": False, "said": str(error)}
            finally:
                self.server.kill()
                self.running.cut()
            print(f"  {self.shape.name}, {row['by']} killed at {part:.0%} ({row['at']}): lost {row['lost']} sectors; "
                  f"{row.get('said', '')}", flush=True)
            yield {"shape": self.shape.name, "sectors": self.size // SECTOR, **row}


# md assembles the members and begins; the job says when the part is reached, or that the change was over before.
BEGIN = """
mdadm --assemble /dev/md0 --run {members} </dev/null
set +e
trap - ERR
md=/sys/block/md0/md
echo {rate} >/proc/sys/dev/raid/speed_limit_max
echo 100 >/proc/sys/dev/raid/speed_limit_min
slow() {{ echo 100 >$md/sync_speed_min; echo {rate} >$md/sync_speed_max; }} 2>/dev/null
(while :; do slow; pause 0.02; done) &
mdadm --grow /dev/md0 {grow} </dev/null >grow.txt 2>&1
begun=$?
cat grow.txt
begin=$SECONDS
while :; do
    done= total=
    while read -r line; do
        [[ $line =~ reshape\\ *=.*\\(([0-9]+)/([0-9]+)\\) ]] && done=${{BASH_REMATCH[1]}} total=${{BASH_REMATCH[2]}}
    done </proc/mdstat
    if [ "$done" ] && [ "$done" -gt $((total * {part} / 1000)) ]; then say here "$done/$total"; break; fi
    if [ $begun != 0 ]; then say here "not begun: $(tr '\\n' ' ' <grow.txt)"; break; fi
    if [ ! "$done" ] && [ $((SECONDS - begin)) -gt 5 ]; then say here over; break; fi
    pause 0.01
done
sleep 1000
"""
# md assembles what is left and ends the change.
END = """
set +e
trap - ERR
md=/sys/block/md0/md
mdadm --assemble /dev/md0 --run {members} </dev/null >assemble.txt 2>&1
say said "$(tr '\\n' ' ' <assemble.txt)"
state=none
read -r state <$md/array_state
case $state in none | clear | inactive) say assembled no; exit 0 ;; esac
say assembled yes
quiet=0
while [ $quiet -lt 10 ]; do
    action=idle position=none
    read -r action <$md/sync_action
    read -r position <$md/reshape_position
    if [ "$action" = idle ]; then quiet=$((quiet + 1)); else quiet=0; fi
    pause 0.1
done
say position "$position"
echo 3 >/proc/sys/vm/drop_caches
dd if=/dev/md0 of=content bs=1M iflag=count_bytes count={size} status=none
echo check >$md/sync_action
pause 0.3
action=check
while [ "$action" != idle ]; do read -r action <$md/sync_action; pause 0.1; done
say mismatches "$(cat $md/mismatch_cnt)"
say kernel "$(dmesg | grep -iE 'error|fail|corrupt|lost|refus|beyond' | grep -v mmapper | tr '\\n' ' ')"
mdadm --stop /dev/md0
exit 0
"""


def compare(program, folder, shapes, rounds):
    """Part `md`: a row for each shape, part and program."""
    for _, shape in itertools.product(range(rounds), shapes):
        yield from Comparison(program, folder, shape).rows()


def print_cuts(rows):
    """The table of part `cuts`."""
    keys = {"changes": "changes", "cuts": "cuts in them", "writes": "writes", "promised": "sectors promised",
            "compared": "sectors compared", "lost": "lost", "refused": "refused", "mismatches": "mismatches"}
    print(f"\n| Change | {' | '.join(keys.values())} |\n{'|---' * (len(keys) + 1)}|")
    for row in rows:
        print(f"| {row['shape']} | {' | '.join(f'{row[key]:,}' for key in keys)} |")
    print(f"| all | {' | '.join(f'{sum(row[key] for row in rows):,}' for key in keys)} |")
    places = [sum(row["places"][fifth] for row in rows) for fifth in range(5)]
    print(f"\nCuts in each fifth of the change, by the recorded position: {places}", flush=True)


def print_comparison(rows):
    """The table of part `md`."""
    print("\n| Change | sectors | cuts of each | md lost data in | sectors lost by md, cut by cut | by openraid |\n" + "|---" * 6 + "|")
    for name in dict.fromkeys(row["shape"] for row in rows):
        md, ours = ([row for row in rows if row["shape"] == name and row["by"] == by] for by in ("md", "openraid"))
        losses = [("no array" if row["lost"] is None else f"{row['lost']:,}") for row in md]
        print(f"| {name} | {md[0]['sectors']:,} | {len(md)} | {sum(1 for row in md if row['lost'] != 0)} | {'; '.join(losses)} | "
              f"{sum(row['lost'] or 0 for row in ours):,} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--openraid", default="target/release/openraid", help="the program")
    parser.add_argument("--part", choices=("cuts", "md"))
    parser.add_argument("--shapes", default="", help="only shapes whose name has this")
    parser.add_argument("--cuts", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lying", action="store_true", help="a control: the drives of a full array ignore flushes, and data must be lost")
    parser.add_argument("--json", help="the rows as a document")
    parser.add_argument("folder", nargs="?", default="target/reshape-proof")
    given = parser.parse_args()
    program, folder = os.path.abspath(given.openraid), os.path.abspath(given.folder)
    if not os.access(program, os.X_OK):
        sys.exit(f"there is no {program}; make it with: cargo build --release -p openraid")
    os.makedirs(folder, exist_ok=True)
    # mdadm is not in the path of every user.
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    small, large = ([shape for shape in all_shapes(chunk) if given.shapes in shape.name] for chunk in (CUTS_CHUNK, MD_CHUNK))
    rows = {"cuts": [], "md": []}
    begin = time.monotonic()
    try:
        if given.part != "md":
            rows["cuts"].extend(cuts(program, folder, small, given))
        if given.part != "cuts":
            rows["md"].extend(compare(program, folder, large, given.rounds))
    finally:
        if rows["cuts"]:
            print_cuts(rows["cuts"])
        if rows["md"]:
            print_comparison(rows["md"])
        if given.json:
            with open(given.json, "w", encoding="ascii") as file:
                json.dump({"seed": given.seed, "seconds": round(time.monotonic() - begin), **rows}, file, indent=1)
    bad = [row for row in rows["cuts"] if row["lost"] or row["refused"] or row["mismatches"] or row["errors"]]
    bad += [row for row in rows["md"] if row["by"] == "openraid" and (row["lost"] != 0 or row["mismatches"])]
    print(f"{round(time.monotonic() - begin)} s; {len(bad)} rows of openraid are bad")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
