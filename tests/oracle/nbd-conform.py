#!/usr/bin/python3
"""Throws NBD clients that we did not write at an NBD server. DESTROYS the export's content.

    nbd-conform.py URI [--limit SECONDS] [--seconds SECONDS] [--tester PROGRAM] [--strict-names] [--only NAME]

URI is for example nbd://127.0.0.1:10809/disk or nbd+unix:///disk?socket=/tmp/s.sock. The clients are libnbd
(its library, nbdinfo, nbdcopy), qemu-io and qemu-img, fio's nbd engine, and with --tester nbd-tester-client.
Debian packages: python3-libnbd libnbd-bin qemu-utils fio. The export must have 64 MiB at least.

One line for each check: ok, FAIL or skip, its name, its time, a note. The exit code is the number of failures.
Each check runs in a process of its own, so that one that hangs is ended after --limit seconds (120).
"""

import argparse
import errno
import hashlib
import json
import os
import random
import select
import subprocess
import sys
import tempfile
import time
from urllib.parse import parse_qs, urlparse

import nbd

KIB, MIB = 1 << 10, 1 << 20

parser = argparse.ArgumentParser(description="NBD conformance, by foreign clients. Destroys the export's content.")
parser.add_argument("uri")
parser.add_argument("--limit", type=int, default=120, help="seconds for one check")
parser.add_argument("--seconds", type=int, default=10, help="seconds of load with fio")
parser.add_argument("--tester", help="path of nbd-tester-client")
parser.add_argument("--strict-names", action="store_true", help="an unknown export name must be refused")
parser.add_argument("--only", help="run the check of this name only")
options = parser.parse_args()
uri = options.uri
chance = random.Random(1)
checks = []


class Skip(Exception):
    """A check that does not apply to this server."""


def check(function):
    checks.append(function)
    return function


def connect(strict=True, contexts=()):
    """A connection; one that is not strict sends what the library knows to be wrong."""
    handle = nbd.NBD()
    if not strict:
        handle.set_strict_mode(0)
    for context in contexts:
        handle.add_meta_context(context)
    handle.connect_uri(uri)
    return handle


def refused(action, *codes):
    """The action must fail, with one of the codes if any are given."""
    try:
        action()
    except nbd.Error as error:
        if codes and error.errnum not in codes:
            wanted = [errno.errorcode[code] for code in codes]
            raise AssertionError("errno %s, wanted one of %s" % (errno.errorcode.get(error.errnum), wanted))
        return
    raise AssertionError("was accepted")


def run(*command, seconds=300):
    """The output of a program that must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
    text = done.stdout.decode(errors="replace")
    assert done.returncode == 0, "%s ended with %d: %s" % (command[0], done.returncode, text[-300:])
    return text


def still_alive():
    handle = connect()
    handle.pread(512, 0)
    handle.shutdown()


def socket_of_uri():
    """(unix socket, host, port) of the URI."""
    parts = urlparse(uri)
    return parse_qs(parts.query).get("socket", [None])[0], parts.hostname, str(parts.port or 10809)


@check
def nbdinfo_json():
    export = json.loads(run("nbdinfo", "--json", uri))["exports"][0]
    words = ("export-size", "can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero", "block_minimum")
    return " ".join("%s=%s" % (word, export.get(word)) for word in words)


@check
def nbdinfo_list():
    path = urlparse(uri).path
    bare = uri.replace(path, "", 1) if path not in ("", "/") else uri
    count = len(json.loads(run("nbdinfo", "--list", "--json", bare))["exports"])
    assert count >= 1
    return "%d exports" % count


@check
def expected_flags():
    handle = connect()
    for flag in ("can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero"):
        assert getattr(handle, flag)(), "no " + flag


@check
def unaligned_reads_and_writes():
    handle = connect()
    mirror = bytearray(handle.pread(4 * MIB, 0))
    sizes = [1, 3, 511, 512, 513, 4095, 4096, 65535, 65537]
    for n in range(400):
        size = chance.choice(sizes + [chance.randrange(1, 300000)])
        offset = chance.randrange(0, len(mirror) - size)
        data = chance.randbytes(size)
        handle.pwrite(data, offset, nbd.CMD_FLAG_FUA if n % 5 == 0 else 0)
        mirror[offset:offset + size] = data
        if n % 7 == 0:
            assert handle.pread(size, offset) == data
    assert handle.pread(len(mirror), 0) == mirror


@check
def end_of_disk():
    handle = connect()
    size = handle.get_size()
    data = chance.randbytes(4096)
    handle.pwrite(data, size - 4096)
    assert handle.pread(4096, size - 4096) == data
    handle.pwrite(data[:1], size - 1)
    assert handle.pread(1, size - 1) == data[:1]


@check
def beyond_the_end():
    handle = connect(strict=False)
    size = handle.get_size()
    codes = (errno.EINVAL, errno.ENOSPC)
    refused(lambda: handle.pread(512, size), *codes)
    refused(lambda: handle.pread(4096, size - 2048), *codes)
    refused(lambda: handle.pread(512, (1 << 63) - 512), *codes)
    refused(lambda: handle.pwrite(bytes(4096), size - 2048), *codes)
    refused(lambda: handle.trim(4096, size - 2048), *codes)
    refused(lambda: handle.zero(4096, size - 2048), *codes)
    assert len(handle.pread(512, 0)) == 512


@check
def unknown_flags():
    handle = connect(strict=False)
    refused(lambda: handle.pread(512, 0, 0x80), errno.EINVAL, errno.ENOTSUP)
    assert len(handle.pread(512, 0)) == 512


@check
def zero_length():
    handle = connect(strict=False)
    try:
        handle.pwrite(b"", 0)
    except nbd.Error:
        pass  # the protocol leaves it to the server
    assert len(handle.pread(512, 0)) == 512


@check
def trim_and_zero():
    handle = connect()
    data = b"\xa5" * MIB
    handle.pwrite(data, MIB)
    handle.zero(300000, MIB + 1000)
    found = handle.pread(MIB, MIB)
    assert found[1000:301000] == bytes(300000)
    assert found[:1000] == data[:1000] and found[301000:] == data[301000:]
    handle.zero(64 * KIB, MIB, nbd.CMD_FLAG_NO_HOLE)
    handle.trim(64 * KIB, MIB)
    handle.trim(64 * KIB, MIB, nbd.CMD_FLAG_FUA)
    most = min(handle.get_size(), (1 << 32) - 64 * KIB) // (64 * KIB) * (64 * KIB)
    handle.zero(most, 0)
    assert not any(handle.pread(MIB, most // 2 // 512 * 512))


@check
def block_status():
    handle = connect(contexts=["base:allocation"])
    if not handle.can_meta_context("base:allocation"):
        raise Skip("no base:allocation")
    told = [0]

    def extents(_context, _offset, entries, _error):
        told[0] = sum(entries[::2])

    handle.pwrite(b"x" * 64 * KIB, 64 * KIB)
    end = min(handle.get_size(), 8 * MIB)
    offset = 0
    while offset < end:
        handle.block_status(end - offset, offset, extents)
        assert told[0] > 0, "no progress at %d" % offset
        offset += told[0]


@check
def largest_requests():
    handle = connect()
    for size in (MIB, 32 * MIB):
        if size <= handle.get_size():
            data = chance.randbytes(size)
            handle.pwrite(data, 0)
            assert handle.pread(size, 0) == data


@check
def oversized_request():
    handle = connect(strict=False)
    try:
        handle.pread(64 * MIB, 0)
    except nbd.Error:
        pass
    still_alive()


@check
def pipelined_256():
    handle, count, size = connect(), 256, 8 * KIB
    data = [hashlib.shake_128(b"%d" % n).digest(size) for n in range(count)]
    sources = [nbd.Buffer.from_bytearray(bytearray(block)) for block in data]
    targets = [nbd.Buffer(size) for _ in range(count)]
    for n, source in enumerate(sources):
        handle.aio_pwrite(source, n * size)
    while handle.aio_in_flight():
        handle.poll(-1)
    order = list(range(count))
    chance.shuffle(order)
    for n in order:
        handle.aio_pread(targets[n], n * size)
    while handle.aio_in_flight():
        handle.poll(-1)
    assert all(target.to_bytearray() == block for target, block in zip(targets, data))


@check
def flush_covers_all_connections():
    if not connect().can_multi_conn():
        raise Skip("not advertised")
    handles = [connect() for _ in range(8)]
    for _ in range(200):
        writer, reader, flusher = chance.sample(handles, 3)
        data, offset = chance.randbytes(4096), chance.randrange(0, 1024) * 4096
        writer.pwrite(data, offset)
        flusher.flush()
        assert reader.pread(4096, offset) == data
    for handle in handles:
        handle.shutdown()


@check
def connections_64():
    handles = [connect() for _ in range(64)]
    assert all(len(handle.pread(512, 0)) == 512 for handle in handles)
    for handle in handles:
        handle.shutdown()


@check
def dropped_amid_a_write():
    for _ in range(20):
        handle = connect()
        handle.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(MIB)), 0)
        del handle
    still_alive()


@check
def unknown_export():
    handle = nbd.NBD()
    handle.set_export_name("no-such-export-\u00e9-" + "x" * 200)
    unix, host, port = socket_of_uri()
    try:
        handle.connect_unix(unix) if unix else handle.connect_tcp(host, port)
    except nbd.Error:
        still_alive()
        return "refused"
    assert not options.strict_names, "an unknown export was accepted"
    return "accepted: this server ignores names"


@check
def nbdcopy_there_and_back():
    size = connect().get_size()
    with tempfile.TemporaryDirectory() as folder:
        there, back = folder + "/there", folder + "/back"
        with open(there, "wb") as file:
            file.write(chance.randbytes(min(size, 64 * MIB)))
        os.truncate(there, size)
        run("nbdcopy", "--flush", there, uri)
        run("nbdcopy", uri, back)
        run("cmp", there, back)
        return run("qemu-img", "compare", "-f", "raw", "-F", "raw", there, uri).strip()


@check
def qemu_io():
    commands = [
        "write -P 0xcd 12345k 777k", "read -P 0xcd 12345k 777k", "aio_write -P 0xab 1M 512k", "aio_flush",
        "read -P 0xab 1M 512k", "write -z 1M 64k", "read -P 0 1M 64k", "discard 2M 1M", "write -f -P 1 3M 64k", "flush",
    ]
    words = [word for command in commands for word in ("-c", command)]
    text = run("qemu-io", "-f", "raw", *words, uri)
    assert "verification failed" not in text, text


@check
def qemu_img_bench():
    text = run("qemu-img", "bench", "-f", "raw", "-c", "20000", "-d", "32", "-w", "-s", "4096", uri)
    return text.strip().splitlines()[-1]


@check
def fio_verify():
    size = min(connect().get_size(), 64 * MIB)
    with tempfile.TemporaryDirectory() as folder:
        text = run(
            "fio", "--name=verify", "--ioengine=nbd", "--uri=" + uri, "--rw=randwrite", "--bsrange=512-256k",
            "--blockalign=512", "--iodepth=16", "--size=%d" % size, "--verify=crc32c", "--verify_fatal=1",
            "--do_verify=1", "--verify_state_save=0", "--fsync=64", "--runtime=%d" % options.seconds, "--output-format=json",
            "--directory=" + folder)
        job = json.loads(text[text.index("{"):])["jobs"][0]
    assert job["error"] == 0 and job["write"]["total_ios"] > 0, job["error"]
    return "%d writes, %d verified reads" % (job["write"]["total_ios"], job["read"]["total_ios"])


@check
def nbd_tester_client():
    if not options.tester:
        raise Skip("no --tester")
    unix, host, port = socket_of_uri()
    name = ["-N", urlparse(uri).path.lstrip("/")]
    where = ["-u", unix] + name if unix else name + [host, port]
    for mode in (["-h"], ["-o"], [], ["-w"], ["-w", "-f"]):
        run(options.tester, *mode, *where, seconds=120)


def outcome_of(function):
    """(ok, FAIL or skip; a note), from a process of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = ("ok", function() or "")
        except Skip as why:
            result = ("skip", str(why))
        except BaseException as why:  # whatever it is, it goes into the line
            result = ("FAIL", "%s: %s" % (type(why).__name__, str(why)[-400:]))
        os.write(writer, json.dumps(result).encode())
        os._exit(0)
    os.close(writer)
    end, said = time.time() + options.limit, b""
    while select.select([reader], [], [], max(0, end - time.time()))[0]:
        part = os.read(reader, 65536)
        if not part:
            break
        said += part
    if not said:
        os.kill(child, 9)
    os.waitpid(child, 0)
    os.close(reader)
    return json.loads(said) if said else ("FAIL", "no end within %d s" % options.limit)


def main():
    counts = {"ok": 0, "FAIL": 0, "skip": 0}
    for function in checks:
        if options.only in (None, function.__name__):
            start = time.time()
            word, note = outcome_of(function)
            counts[word] += 1
            print("%-4s %-28s %5.1fs %s" % (word, function.__name__, time.time() - start, note), flush=True)
    print("nbd-conform: ok %(ok)d FAIL %(FAIL)d skip %(skip)d" % counts)
    sys.exit(min(counts["FAIL"], 99))


main()
