#!/usr/bin/env python3
"""A shelf of drives with volatile write caches: the exports d0, d1, ... of an NBD server on a unix socket.

  tools/shelf.py FOLDER COUNT MIB [SEED]

A write is durable after a flush of its drive, or with FUA. A cut ends all connections, and keeps of each sector of 512 bytes any of the
versions since the last flush, or the one before: writes are lost, reordered and torn. The shelf is off until it is switched on
again. FOLDER/shelf.sock is the server; FOLDER/control takes lines, one answer each: `cut HOW`, `on`, `blank` (new drives in all slots),
`lie` (from now on no flush is carried out, and FUA is ignored) and `save FOLDER` (the drives as they are durable now, and as the last cut
left them). HOW is `random`, `none` (the caches are lost whole), `all`, or `prefix` (the writes up to a moment).
"""

import asyncio
import json
import os
import random
import struct
import sys

SECTOR = 512
OPTION_MAGIC, REPLY_MAGIC, REQUEST_MAGIC = b"IHAVEOPT", 0x3E889045565A9, 0x25609513
# It has flags, flush and FUA, and a flush counts for all connections.
FLAGS = 1 | 4 | 8 | 256
OPTION_EXPORT_NAME, OPTION_ABORT, OPTION_INFO, OPTION_GO = 1, 2, 6, 7
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
NO_SPACE, INVALID = 28, 22


class Drive:
    """One drive: what is read, what is durable, and the writes since the last flush."""

    def __init__(self, size):
        self.now, self.durable, self.at_cut = bytearray(size), bytearray(size), b""
        self.pending = []

    def write(self, offset, data, is_durable):
        end = offset + len(data)
        self.now[offset:end] = data
        if is_durable:
            self.durable[offset:end] = data
        self.pending.append((offset, data, is_durable))

    def flush(self):
        # Durable writes too: an older write of the same place must not come after them.
        for offset, data, _ in self.pending:
            self.durable[offset:offset + len(data)] = data
        self.pending.clear()

    def cut(self, how, draw):
        """Takes the power away. It says how many sectors kept a version of the cache, and how many none."""
        all_versions, kept = versions_of(self.pending), 0
        chosen = all_versions
        if how == "prefix":
            # The durable writes after the moment count too: what is older than they are is gone.
            moment = draw.randrange(len(self.pending) + 1)
            chosen = versions_of(self.pending[:moment] + [write for write in self.pending[moment:] if write[2]])
        for offset, versions in chosen.items():
            count = {"none": 0, "random": draw.randrange(len(versions) + 1)}.get(how, len(versions))
            if count:
                self.durable[offset:offset + SECTOR] = versions[count - 1]
                kept += 1
        self.pending.clear()
        self.now, self.at_cut = bytearray(self.durable), bytes(self.durable)
        return kept, len(all_versions) - kept


def versions_of(writes):
    """The versions of each sector that these writes left in the cache, the oldest first."""
    found = {}
    for offset, data, is_durable in writes:
        for at in range(0, len(data), SECTOR):
            if is_durable:
                found.pop(offset + at, None)
            else:
                found.setdefault(offset + at, []).append(data[at:at + SECTOR])
    return found


class Shelf:
    """The drives, their server and its control."""

    def __init__(self, folder, count, size, seed):
        self.folder, self.size, self.draw, self.lies = folder, size, random.Random(seed), False
        self.drives = [Drive(size) for _ in range(count)]
        self.writers, self.is_on = set(), True

    async def client(self, reader, writer):
        """One connection, from its first byte to its last one."""
        self.writers.add(writer)
        try:
            drive = await self.handshake(reader, writer) if self.is_on else None
            while drive and await self.request(drive, reader, writer):
                pass
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self.writers.discard(writer)
            writer.close()

    async def handshake(self, reader, writer):
        """The drive that the client asks for, by the specification of NBD: fixed newstyle."""
        writer.write(struct.pack(">8s8sH", b"NBDMAGIC", OPTION_MAGIC, 3))
        flags, = struct.unpack(">I", await reader.readexactly(4))
        while True:
            magic, option, length = struct.unpack(">8sII", await reader.readexactly(16))
            data = await reader.readexactly(length)
            if magic != OPTION_MAGIC or option == OPTION_ABORT:
                return None
            if option == OPTION_EXPORT_NAME:
                drive = self.named(data)
                if drive:
                    writer.write(struct.pack(">QH", self.size, FLAGS) + bytes(0 if flags & 2 else 124))
                return drive
            if option not in (OPTION_INFO, OPTION_GO):
                self.answer(writer, option, 1 << 31 | 1)
                continue
            length, = struct.unpack(">I", data[:4])
            drive = self.named(data[4:4 + length])
            if drive is None:
                self.answer(writer, option, 1 << 31 | 6)
                continue
            self.answer(writer, option, 3, struct.pack(">HQH", 0, self.size, FLAGS))
            self.answer(writer, option, 3, struct.pack(">HIII", 3, SECTOR, 4096, 32 << 20))
            self.answer(writer, option, 1)
            if option == OPTION_GO:
                return drive

    @staticmethod
    def answer(writer, option, kind, data=b""):
        writer.write(struct.pack(">QIII", REPLY_MAGIC, option, kind, len(data)) + data)

    def named(self, name):
        number = name[1:].decode(errors="replace")
        known = name[:1] == b"d" and number.isdigit() and int(number) < len(self.drives)
        return self.drives[int(number)] if known else None

    async def request(self, drive, reader, writer):
        """One request; false after the last one."""
        magic, flags, kind, handle, offset, length = struct.unpack(">IHH8sQI", await reader.readexactly(28))
        data = await reader.readexactly(length) if kind == WRITE else b""
        if magic != REQUEST_MAGIC or kind == DISCONNECT or not self.is_on:
            return False
        error, content = 0, b""
        if kind == FLUSH:
            if not self.lies:
                drive.flush()
        elif kind not in (READ, WRITE) or offset % SECTOR or length % SECTOR:
            error = INVALID
        elif offset + length > self.size:
            error = NO_SPACE
        elif kind == READ:
            content = bytes(drive.now[offset:offset + length])
        else:
            drive.write(offset, data, bool(flags & 1) and not self.lies)
        writer.write(struct.pack(">II8s", 0x67446698, error, handle) + content)
        await writer.drain()
        return True

    def cut(self, how):
        self.is_on = False
        for writer in list(self.writers):
            writer.transport.abort()
        counts = [drive.cut(how, self.draw) for drive in self.drives]
        return {"kept": sum(kept for kept, _ in counts), "lost": sum(lost for _, lost in counts)}

    def save(self, folder):
        for number, drive in enumerate(self.drives):
            for name, content in (("now", drive.durable), ("at-cut", drive.at_cut)):
                os.makedirs(f"{folder}/{name}", exist_ok=True)
                with open(f"{folder}/{name}/d{number}", "wb") as file:
                    file.write(content)

    async def control(self, reader, writer):
        """One order, and its answer in JSON."""
        order, *words = (await reader.readline()).decode().split() or [""]
        answer = {}
        if order == "cut":
            answer = self.cut(words[0])
        elif order == "on":
            self.is_on = True
        elif order == "blank":
            self.cut("none")
            self.drives = [Drive(self.size) for _ in self.drives]
            self.is_on, self.lies = True, False
        elif order == "lie":
            self.lies = True
        elif order == "save":
            self.save(words[0])
        else:
            answer = {"error": f"`{order}` is no order"}
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()
        writer.close()

    async def serve(self):
        for name in ("shelf.sock", "control"):
            if os.path.exists(f"{self.folder}/{name}"):
                os.remove(f"{self.folder}/{name}")
        servers = [await asyncio.start_unix_server(self.client, self.folder + "/shelf.sock", limit=1 << 26),
                   await asyncio.start_unix_server(self.control, self.folder + "/control")]
        print("ready", flush=True)
        await asyncio.gather(*(server.serve_forever() for server in servers))


def main():
    if len(sys.argv) < 4 or "--help" in sys.argv:
        sys.exit(__doc__)
    folder, count, mib = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    shelf = Shelf(folder, count, mib << 20, int((sys.argv[4:] or ["1"])[0]))
    asyncio.run(shelf.serve())


if __name__ == "__main__":
    main()
