#!/usr/bin/env python3
"""A client that writes while its server is upgraded.

    tools/upgrade_load.py SOCKET EXPORT STOP-FILE

Writes numbered blocks at places drawn at random, one request at a time, and reads some of them back, until STOP-FILE exists. If
the connection ends, it connects again, for at most two minutes, and repeats the request, as the kernel's client and qemu do. At the
end it reads all places: each has the number that was acknowledged last. Ends with 1 otherwise, and if it was never disconnected.
"""

import os
import random
import socket
import struct
import sys
import time

BLOCK = 4096
PATIENCE_S = 120
READ, WRITE = 0, 1


class Client:
    """NBD by its specification: fixed newstyle, one export, simple replies."""

    def __init__(self, path, export):
        self.path, self.export, self.connections = path, export, 0
        self.connect()

    def connect(self):
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.settimeout(PATIENCE_S)
                self.socket.connect(self.path)
                magic, option, _ = struct.unpack(">8s8sH", self.take(18))
                assert (magic, option) == (b"NBDMAGIC", b"IHAVEOPT"), magic
                name = self.export.encode()
                # Fixed newstyle, no zeroes; then NBD_OPT_EXPORT_NAME.
                self.socket.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, len(name)) + name)
                self.size, _ = struct.unpack(">QH", self.take(10))
                self.connections += 1
                return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def take(self, count):
        found = b""
        while len(found) < count:
            part = self.socket.recv(count - len(found))
            if not part:
                raise ConnectionError("the server has gone")
            found += part
        return found

    def request(self, kind, offset, data=b""):
        while True:
            try:
                self.socket.sendall(struct.pack(">IHHQQI", 0x25609513, 0, kind, 7, offset, BLOCK) + data)
                magic, error, cookie = struct.unpack(">IIQ", self.take(16))
                assert (magic, cookie) == (0x67446698, 7), (magic, cookie)
                # A server that ends says so (ESHUTDOWN) before it closes.
                if error == 108:
                    raise ConnectionError("the server ends")
                assert error == 0, f"request {kind} at {offset} is answered with error {error}"
                return self.take(BLOCK) if kind == READ else b""
            except OSError:
                self.socket.close()
                self.connect()


def main():
    path, export, stop = sys.argv[1:]
    client = Client(path, export)
    chance = random.Random(1)
    acknowledged, number = {}, 0
    block = lambda own: struct.pack(">Q", own) * (BLOCK // 8)
    while not os.path.exists(stop):
        number += 1
        place = chance.randrange(client.size // BLOCK) * BLOCK
        client.request(WRITE, place, block(number))
        acknowledged[place] = number
        if number % 4 == 0:
            place = chance.choice(list(acknowledged)[-64:])
            assert client.request(READ, place) == block(acknowledged[place]), f"byte {place} has not what was acknowledged"
    for place, own in acknowledged.items():
        found = client.request(READ, place)
        assert found == block(own), f"byte {place}: write {own} was acknowledged, and there is {struct.unpack('>Q', found[:8])[0]}"
    print(f"{number} writes acknowledged at {len(acknowledged)} places, all there; {client.connections} connections")
    return 0 if client.connections > 1 else 1


sys.exit(main())
