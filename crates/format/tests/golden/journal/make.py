#!/usr/bin/python3
"""Makes the golden journals next to it from docs/on-disk.md alone: make.py. It does not use the library.

Each NAME.txt is a device of 8 MiB: "BYTE HEX" rows of 32 bytes, rows of zeroes left out, "xN" for N times the row.
"""
import os, struct

def crc(data):  # CRC-32C, one bit at a time
    c = 0xffffffff
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = c >> 1 ^ (0x82f63b78 if c & 1 else 0)
    return c ^ 0xffffffff

def sealed(block):
    block = block.ljust(4096, b"\0")
    return block[:12] + struct.pack("<I", crc(block)) + block[16:]

JOURNAL, CONTROLLER = bytes(range(16)), bytes(range(0x40, 0x50))
DEVICE, START = 16384 + 5, 2048
RING = 16384 - 8 - START

def superblock(copy, generation=7, epoch=3, epoch_start=20, tail=(17, 13800), block=512, mirrors=2, mirror=1,
               clean=0, arrays=()):
    head = b"ORAIDJSB" + struct.pack("<II", 1, 0) + JOURNAL + CONTROLLER
    head += struct.pack("<8Q", generation, epoch, epoch_start, DEVICE, START, RING, *tail)
    head += struct.pack("<I4B", block, mirrors, mirror, copy, clean)
    head = head.ljust(256, b"\0")
    for index in range(64):
        uuid, first, state = dict(arrays).get(index, (bytes(16), 0, 0))
        head += uuid + struct.pack("<QB7x", first, state)
    return sealed(head)

def record(kind, array, slot=0, payload_at=0, lba=0, sectors=0, ring_sector=0):
    return struct.pack("<BBHIQQQ", kind, array, slot, payload_at, lba, sectors, ring_sector)

def entry(sequence, epoch, position, promised, tail, payload=b"", kind=1, records=()):
    head = b"ORAIDJEN" + struct.pack("<II", 1, 0) + JOURNAL
    head += struct.pack("<6Q", sequence, epoch, position, promised, *tail)
    head += struct.pack("<IIBxH", len(payload) // 512, crc(payload) if payload else 0, kind, len(records))
    return sealed(head.ljust(256, b"\0") + b"".join(records)) + payload

def fill(seed, sectors):
    return b"".join(bytes([seed, number % 256]) * 256 for number in range(sectors))

def write(name, pieces):
    image = bytearray(DEVICE * 512)
    for at, data in pieces:
        image[at:at + len(data)] = data
    rows = [bytes(image[at:at + 32]) for at in range(0, len(image), 32)]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".txt"), "w") as out:
        index = 0
        while index < len(rows):
            times = 1
            while index + times < len(rows) and rows[index + times] == rows[index]:
                times += 1
            if any(rows[index]):
                out.write(f"{index * 32} {rows[index].hex()}" + (f" x{times}\n" if times > 1 else "\n"))
            index += times

LAST = (16384 - 8) * 512
ring = lambda position: (START + position) * 512

arrays = {0: (b"\xa0" * 16, 1, 1), 2: (b"\xa2" * 16, 5, 2), 63: (b"\xff" * 16, 19, 3)}
assert RING == 14328
write("wrapped", [
    (0, superblock(0, generation=6, tail=(12, 13000), arrays=arrays.items())),
    (LAST, superblock(1, arrays=arrays.items())),
    # An older round, passed by the tail.
    (ring(13784), entry(16, 2, 13784, 15, (16, 13784), fill(16, 3), records=[record(1, 0, 0, 0, 100, 3)])),
    # Data of 3 sectors and redo of P and Q that share a payload of 9; its end is not at a multiple of 8.
    (ring(13800), entry(17, 2, 13800, 16, (17, 13800), fill(17, 9), records=[
        record(1, 0, 0, 0, 0x123456789ab, 3),
        record(2, 0, 4, 3, 0x1000, 3),
        record(2, 0, 5, 6, 0x1000, 3)])),
    (ring(13824), entry(18, 2, 13824, 17, (17, 13800), records=[
        record(4, 2, lba=8, sectors=1 << 40), record(5, 2, lba=0, sectors=7), record(6, 63)])),
    # A reference back into entry 17, and a filler to the end of the ring.
    (ring(13832), entry(19, 2, 13832, 18, (17, 13800), fill(19, 480), records=[
        record(3, 0, 1919, 0, (1 << 55) - 2, 2, 13808 + 7), record(1, 0, 0, 479, 0, 1)])),
    (ring(14320), entry(20, 3, 14320, 18, (18, 13824), kind=2)),
    (ring(0), entry(21, 3, 0, 20, (18, 13824), fill(21, 8), records=[record(1, 0, payload_at=0, lba=64, sectors=8)] * 120)),
    # A leftover of the crash before epoch 3: it must not count.
    (ring(16), entry(22, 2, 16, 18, (17, 13800), fill(22, 1), records=[record(1, 0, 0, 0, 64, 1)])),
])
write("clean", [
    (0, superblock(0, generation=1, epoch=1, epoch_start=1, tail=(1, 0), block=4096, mirrors=1, mirror=0, clean=1)),
    (LAST, superblock(1, generation=1, epoch=1, epoch_start=1, tail=(1, 0), block=4096, mirrors=1, mirror=0, clean=1)),
])
