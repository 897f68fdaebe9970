"""A host whose sectors name themselves, and its ledger: what each sector may hold after a cut."""

import hashlib
import socket
import struct
import time

SECTOR = 512
MAGIC = b"openraid"
READ, WRITE, FLUSH = 0, 1, 3
FUA = 1
WINDOW = 1 << 20
PATIENCE_S = 60
# Sizes of writes in sectors; most are small.
SIZES = (1, 2, 3, 8, 8, 8, 8, 16, 24, 32, 64, 128)
FLUSH_SHARE, FUA_SHARE, READ_SHARE = 0.04, 0.05, 0.12


def stamp(number, generation):
    """The content of a sector. It is no sum: parity of stamped sectors is no stamp."""
    head = MAGIC + struct.pack("<QQ", number, generation)
    return head + (hashlib.blake2b(head).digest() * 8)[:SECTOR - len(head)]


def stamps(first, count, generation=0):
    """The content of `count` sectors from `first` on."""
    return b"".join(stamp(number, generation) for number in range(first, first + count))


class Ledger:
    """The generations that each sector may hold, the oldest first. The oldest one is durable, or what was there before."""

    def __init__(self, sectors):
        self.may = [[0] for _ in range(sectors)]
        self.generation = 0

    def issue(self, first, count):
        """A write begins: from now on its generation may be there."""
        self.generation += 1
        for number in range(first, first + count):
            self.may[number].append(self.generation)
        return self.generation

    def settle(self, number, generation):
        """A flush has promised this generation: older ones may not come back."""
        self.may[number] = [known for known in self.may[number] if known >= generation]

    def wrong(self, first, content):
        """The sectors of this content that hold nothing that they may hold."""
        found = []
        for number, at in enumerate(range(0, len(content), SECTOR), first):
            sector = content[at:at + SECTOR]
            generation, = struct.unpack("<Q", sector[16:24])
            if generation not in self.may[number] or sector != stamp(number, generation):
                found.append((number, self.may[number][:4], describe(sector)))
        return found


def describe(sector):
    """What a sector holds, in words."""
    number, generation = struct.unpack("<QQ", sector[8:24])
    if sector == stamp(number, generation):
        return f"sector {number} of generation {generation}"
    return "zeroes" if not any(sector) else "no stamp"


class Host:
    """A client of an array, by the specification of NBD. Its requests that are under way never overlap."""

    def __init__(self, path, export, ledger=None):
        self.ledger, self.under_way, self.handles = ledger, {}, 0
        # What this connection has written, and what of that no flush has promised.
        self.seen, self.unflushed = {}, {}
        self.counts = {"writes": 0, "promised": 0, "reads": 0}
        self.wrong, self.errors, self.errors_before = [], 0, 0
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(path)
        magic, option, _ = struct.unpack(">8s8sH", self.take(18))
        if (magic, option) != (b"NBDMAGIC", b"IHAVEOPT"):
            raise OSError("no server of NBD")
        name = export.encode()
        self.socket.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, len(name)) + name)
        self.size, _ = struct.unpack(">QH", self.take(10))

    def take(self, length):
        data = bytearray()
        while len(data) < length:
            more = self.socket.recv(length - len(data))
            if not more:
                raise ConnectionError("the server has ended")
            data += more
        return bytes(data)

    def send(self, kind, first=0, count=0, data=b"", flags=0, what=None):
        self.handles += 1
        self.under_way[self.handles] = (kind, first, count, flags, what)
        self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, flags, kind, self.handles, first * SECTOR, count * SECTOR) + data)

    def reply(self):
        """One answer: its request, error and content."""
        _, error, handle = struct.unpack(">IIQ", self.take(16))
        request = self.under_way.pop(handle)
        content = self.take(request[2] * SECTOR) if request[0] == READ and not error else b""
        return request, error, content

    def read(self, first, count):
        self.send(READ, first, count)
        _, error, content = self.reply()
        if error:
            raise OSError(error, f"a read of sector {first} failed")
        return content

    def fill(self):
        """Writes generation 0 of every sector, and flushes."""
        step = WINDOW // SECTOR
        for first in range(0, self.size // SECTOR, step):
            count = min(step, self.size // SECTOR - first)
            self.send(WRITE, first, count, stamps(first, count))
            if self.reply()[1]:
                raise OSError("a write failed")
        self.send(FLUSH)
        if self.reply()[1]:
            raise OSError("a flush failed")

    def compare(self):
        """Every sector of the ledger that holds nothing that it may hold."""
        found, step = [], WINDOW // SECTOR
        for first in range(0, len(self.ledger.may), step):
            count = min(step, len(self.ledger.may) - first)
            found += self.ledger.wrong(first, self.read(first, count))
        return found

    def free(self, first, count):
        return not any(at < first + count and first < at + length for _, at, length, _, _ in self.under_way.values())

    def ask(self, draw, hot):
        """Sends one more request, near the sector `hot` or anywhere."""
        chance = draw.random()
        if chance < FLUSH_SHARE:
            self.send(FLUSH, what=self.unflushed)
            self.unflushed = {}
            return
        sectors, count = len(self.ledger.may), draw.choice(SIZES)
        first = max(0, hot - 512) + draw.randrange(4096) if draw.random() < 0.6 else draw.randrange(sectors)
        if draw.random() < 0.6:
            first -= first % 8
        first = min(first, sectors - count)
        if not self.free(first, count):
            return
        if chance < FLUSH_SHARE + READ_SHARE:
            self.send(READ, first, count)
            return
        generation = self.ledger.issue(first, count)
        flags = FUA if draw.random() < FUA_SHARE else 0
        self.send(WRITE, first, count, stamps(first, count, generation), flags, generation)

    def take_reply(self):
        """One answer of the load: what it promises, or what it shows."""
        (kind, first, count, flags, what), error, content = self.reply()
        if error:
            self.errors += 1
        elif kind == READ:
            self.counts["reads"] += 1
            self.judge(first, content)
        elif kind == FLUSH:
            self.promise(what)
        else:
            self.counts["writes"] += 1
            for number in range(first, first + count):
                self.seen[number] = self.unflushed[number] = what
            if flags & FUA:
                self.promise({number: what for number in range(first, first + count)})

    def promise(self, written):
        for number, generation in written.items():
            self.ledger.settle(number, generation)
            self.counts["promised"] += 1

    def judge(self, first, content):
        """A read shows what this connection wrote last, or what may be there."""
        for number, at in enumerate(range(0, len(content), SECTOR), first):
            sector, seen = content[at:at + SECTOR], self.seen.get(number)
            if seen is None:
                self.wrong += self.ledger.wrong(number, sector)
            elif sector != stamp(number, seen):
                self.wrong.append((number, [seen], describe(sector)))

    def load(self, seconds, draw, hot, depth=8):
        """Reads, writes and flushes for so long; false if the server ends before."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                while len(self.under_way) < depth and time.monotonic() < end:
                    self.ask(draw, hot)
                if self.under_way:
                    self.take_reply()
        except OSError:
            return False
        return True

    def drain(self):
        """The answers that had come before the end of the connection."""
        try:
            while self.under_way:
                self.take_reply()
        except OSError:
            pass
        self.socket.close()
