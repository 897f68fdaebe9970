//! Tests independent NBD clients against a server made of this crate. If its program is not installed, a test passes
//! and says so.

mod support;

use openraid_nbd::ExportInfo;
use std::io::Write;
use std::sync::Arc;
use support::disk::{export, Disk};
use support::net::{spawn_tcp, spawn_unix};
use support::programs::{installed, run, Folder};
use support::random::Random;

const SIZE: usize = 64 << 20;

/// A server with one export, its disk, and its address.
fn serve(folder: &Folder) -> (String, Arc<Disk>) {
    serve_all(folder, vec![export("disk", SIZE)])
}

fn serve_all(folder: &Folder, exports: Vec<ExportInfo>) -> (String, Arc<Disk>) {
    let disk = Arc::new(Disk::new(SIZE));
    spawn_unix(&folder.file("socket"), exports, Arc::clone(&disk));
    (format!("nbd+unix:///disk?socket={}", folder.text("socket")), disk)
}

fn assert_holds(text: &str, expected: &[&str]) {
    for part in expected {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn nbdinfo_sees_everything_that_is_offered() {
    if !installed("nbdinfo", "libnbd-bin") {
        return;
    }
    let folder = Folder::new("nbdinfo");
    let (uri, _) = serve(&folder);
    let text = run("nbdinfo", &["--json", &uri]);
    assert_holds(
        &text,
        &[
            "\"protocol\": \"newstyle-fixed\"",
            "\"structured\": true",
            "\"export-name\": \"disk\"",
            "\"description\": \"a disk in memory\"",
            "\"base:allocation\"",
            "\"openraid:degraded\"",
            "\"is_read_only\": false",
            "\"can_cache\": true",
            "\"can_df\": true",
            "\"can_fast_zero\": true",
            "\"can_flush\": true",
            "\"can_fua\": true",
            "\"can_multi_conn\": true",
            "\"can_trim\": true",
            "\"can_zero\": true",
            "\"block_size_minimum\": 1",
            "\"block_size_preferred\": 4096",
            "\"block_size_maximum\": 33554432",
            "\"export-size\": 67108864",
        ],
    );
    let map = run("nbdinfo", &["--map", &uri]);
    assert_eq!(map.split_whitespace().collect::<Vec<_>>(), ["0", "67108864", "3", "hole,zero"]);
}

#[test]
fn nbdinfo_lists_several_exports() {
    if !installed("nbdinfo", "libnbd-bin") {
        return;
    }
    let folder = Folder::new("nbdinfo-list");
    serve_all(&folder, ["a", "b with space", "\u{e9}"].map(|name| export(name, SIZE)).to_vec());
    let text = run("nbdinfo", &["--list", "--json", &format!("nbd+unix://?socket={}", folder.text("socket"))]);
    assert_holds(
        &text,
        &["\"export-name\": \"a\"", "\"export-name\": \"b with space\"", "\"export-name\": \"\u{e9}\""],
    );
}

#[test]
fn nbdcopy_brings_every_byte_there_and_back() {
    if !installed("nbdcopy", "libnbd-bin") {
        return;
    }
    let folder = Folder::new("nbdcopy");
    let (uri, disk) = serve(&folder);
    let mut image = Random::new(4).bytes(SIZE / 4);
    image.resize(SIZE / 2, 0);
    image.extend(Random::new(5).bytes(SIZE / 4 + 4097));
    image.resize(SIZE, 0);
    std::fs::write(folder.file("image"), &image).unwrap();
    run("nbdcopy", &["--flush", &folder.text("image"), &uri]);
    assert!(*disk.read() == image, "the disk differs from the image");
    run("nbdcopy", &[&uri, &folder.text("back")]);
    assert!(std::fs::read(folder.file("back")).unwrap() == image, "the copy differs from the image");
}

#[test]
fn qemu_io_reads_what_it_wrote() {
    if !installed("qemu-io", "qemu-utils") {
        return;
    }
    let folder = Folder::new("qemu-io");
    let (uri, disk) = serve(&folder);
    let commands = [
        "write -P 0xcd 12345k 777k",
        "read -P 0xcd 12345k 777k",
        "write -P 7 1 3",
        "read -P 7 1 3",
        "write -f -P 0xab 1M 512k",
        "write -z 1M 64k",
        "read -P 0 1M 64k",
        "read -P 0xab 1088k 448k",
        "write -z -u 1088k 64k",
        "discard 2M 1M",
        "flush",
    ];
    let mut arguments = vec!["-f", "raw"];
    commands.iter().for_each(|command| arguments.extend(["-c", command]));
    arguments.push(&uri);
    let text = run("qemu-io", &arguments);
    assert!(!text.contains("failed"), "{text}");
    let bytes = disk.read();
    assert_eq!(bytes[..5], [0, 7, 7, 7, 0]);
    assert!(bytes[12345 << 10..(12345 + 777) << 10].iter().all(|byte| *byte == 0xcd));
    assert!(bytes[1 << 20..1152 << 10].iter().all(|byte| *byte == 0));
    assert!(bytes[1152 << 10..1536 << 10].iter().all(|byte| *byte == 0xab));
}

#[test]
fn fio_verifies_its_writes_over_tcp() {
    if !installed("fio", "fio") {
        return;
    }
    let port = spawn_tcp(vec![export("disk", SIZE)], Arc::new(Disk::new(SIZE)));
    let uri = format!("--uri=nbd://127.0.0.1:{port}/disk");
    let job = ["--name=verify", "--ioengine=nbd", &uri, "--rw=randwrite", "--bsrange=512-256k", "--blockalign=512"];
    let check = ["--iodepth=32", "--size=16m", "--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--fsync=64"];
    // The state file is not needed, and would stay in the source folder.
    let no_state = ["--verify_state_save=0"];
    let text = run("fio", &[&job[..], &check, &no_state].concat());
    assert!(text.contains("err= 0"), "{text}");
}

/// The requests to libnbd; it raises an exception if a result is unexpected.
const LIBNBD: &str = r#"
import nbd, sys, errno
h = nbd.NBD(); h.add_meta_context('base:allocation'); h.add_meta_context('openraid:degraded'); h.connect_uri(sys.argv[1])
assert h.get_size() == 64 << 20 and h.get_structured_replies_negotiated()
assert h.can_meta_context('base:allocation') and h.can_meta_context('openraid:degraded')
assert h.can_df() and h.can_multi_conn() and h.can_fast_zero() and not h.is_rotational()
data = bytes(range(256)) * 1024
h.pwrite(data, 1000, nbd.CMD_FLAG_FUA)
assert h.pread(len(data), 1000) == data
pieces = []
whole = h.pread_structured(192 << 10, 192 << 10, lambda buf, offset, status, error: pieces.append(len(buf)), nbd.CMD_FLAG_DF)
assert pieces == [192 << 10] and whole == h.pread(192 << 10, 192 << 10), pieces
seen = {}
h.block_status(1 << 20, 0, lambda name, offset, entries, error: seen.update({name: list(entries)}) or 0)
assert seen['base:allocation'] == [327680, 0, 720896, 3], seen
assert seen['openraid:degraded'] == [1 << 20, 0], seen
h.zero(5000, 2000, nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FAST_ZERO); assert h.pread(5000, 2000) == bytes(5000)
h.trim(4096, 0); h.cache(4096, 0); h.flush()
chunks = []
h.pread_structured(256 << 10, 192 << 10, lambda buf, offset, status, error: chunks.append((offset, len(buf), status)))
assert len(chunks) == 4 and chunks[-1][2] == nbd.READ_HOLE, chunks
h.set_strict_mode(0)
for call, code in ((lambda: h.pread(512, 64 << 20), errno.EINVAL), (lambda: h.pwrite(bytes(512), (64 << 20) - 1), errno.ENOSPC),
                   (lambda: h.zero(512, 64 << 20), errno.ENOSPC), (lambda: h.trim(512, 64 << 20), errno.EINVAL),
                   (lambda: h.pread(512, 0, 0x80), errno.EINVAL), (lambda: h.pread((32 << 20) + 1, 0), errno.EINVAL)):
    try: call()
    except nbd.Error as e: assert e.errnum == code, (e.errnum, code)
    else: raise AssertionError('was accepted')
assert h.pread(512, 1 << 20) == bytes(512)
h.shutdown()
plain = nbd.NBD(); plain.set_request_structured_replies(False); plain.connect_uri(sys.argv[1])
assert not plain.get_structured_replies_negotiated() and not plain.can_df()
assert plain.pread(1000, 100000) == data[99000:100000]
plain.shutdown()
o = nbd.NBD(); o.set_opt_mode(True); o.connect_uri(sys.argv[1]); names = []
o.opt_list(lambda name, description: names.append((name, description)) or 0)
assert names == [('disk', 'a disk in memory')], names
contexts = []; o.opt_list_meta_context(lambda name: contexts.append(name) or 0)
assert contexts == ['base:allocation', 'openraid:degraded'], contexts
o.set_export_name('nothing')
try: o.opt_info()
except nbd.Error as e: assert e.errnum == errno.ENOENT, e
else: raise AssertionError('was accepted')
o.set_export_name('disk'); o.opt_info(); assert o.get_size() == 64 << 20; o.opt_abort()
print('fine')
"#;

#[test]
fn libnbd_finds_every_rule_kept() {
    const PYTHON: &str = "/usr/bin/python3"; // Debian's own, which sees Debian's modules
    let there = std::process::Command::new(PYTHON).args(["-c", "import nbd"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("OPENRAID_REQUIRE_PEERS").is_none(), "Debian package python3-libnbd is missing");
        // Written directly to standard error, because the test framework captures other output.
        let _ = writeln!(std::io::stderr(), "skipped: libnbd for python is not installed (package python3-libnbd)");
        return;
    }
    let folder = Folder::new("libnbd");
    let (uri, _) = serve(&folder);
    assert_eq!(run(PYTHON, &["-c", LIBNBD, &uri]).trim(), "fine");
}
