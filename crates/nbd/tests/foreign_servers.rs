//! Tests the client of this crate against independent NBD servers. If its program is not installed, a test passes and
//! says so.

mod support;

use openraid_nbd::client::{ClientError, OptionRefusal};
use openraid_nbd::{ExportFlags, NbdCommand, NbdError, NbdUri, Transport};
use openraid_units::Bytes;
use support::client::{list, Client};
use support::programs::{installed, Folder, Server};
use support::random::Random;

const SIZE: u64 = 16 << 20;
const READ: NbdCommand = NbdCommand::Read { dont_fragment: false };
const WRITE: NbdCommand = NbdCommand::Write { fua: false };

fn address(folder: &Folder, export: &str) -> NbdUri {
    NbdUri { transport: Transport::Unix { socket: folder.file("socket") }, export: export.into() }
}

/// Starts nbdkit with `arguments`; its socket is in the folder.
fn nbdkit(folder: &Folder, arguments: &[&str]) -> Option<Server> {
    let socket = folder.text("socket");
    let all = [&["--foreground", "--exit-with-parent", "--unix", &socket][..], arguments].concat();
    installed("nbdkit", "nbdkit").then(|| Server::start("nbdkit", &all, &folder.file("socket")))
}

/// Compares random reads and writes of all sizes with a plain array, several under way at once.
fn exercise(client: &mut Client, seed: u64) {
    let mut random = Random::new(seed);
    let mut model = vec![0; usize::try_from(SIZE).unwrap()];
    let whole = client.call(READ, 0, SIZE, &[]);
    model.copy_from_slice(&whole.data);
    for _ in 0..60 {
        let mut expected = Vec::new();
        let mut start = 0;
        for _ in 0..8 {
            // The ranges of requests that are under way at once do not overlap, so their order does not matter.
            let most = *random.pick(&[1, 8, 200, 600]);
            let length = 512 * (1 + random.below(most));
            start += 512 * random.below(4);
            let range = start..start + length;
            start = range.end;
            match random.below(3) {
                0 => {
                    let data = random.bytes(length);
                    model[range.clone()].copy_from_slice(&data);
                    let request = client.request(WRITE, range.start as u64, length as u64);
                    client.send(request, &data);
                    expected.push((request.cookie, None));
                }
                _ => {
                    let request = client.request(READ, range.start as u64, length as u64);
                    client.send(request, &[]);
                    expected.push((request.cookie, Some(range)));
                }
            }
        }
        for _ in 0..expected.len() {
            let (cookie, answer) = client.wait();
            assert_eq!(answer.result, Ok(()));
            let (_, range) = expected.iter().find(|(sent, _)| *sent == cookie).expect("an answer to what was sent");
            if let Some(range) = range.clone() {
                assert!(answer.data == model[range.clone()], "{range:?} reads something else");
            }
        }
    }
    assert!(client.call(READ, 0, SIZE, &[]).data == model, "the whole differs");
}

#[test]
fn nbdkit_keeps_what_it_is_given() {
    for structured in [false, true] {
        let folder = Folder::new("nbdkit-memory");
        let Some(_server) = nbdkit(&folder, &["memory", "16M"]) else { return };
        let mut client = Client::connect(&address(&folder, ""), structured, &[]).unwrap();
        assert_eq!((client.session().size, client.session().structured), (Bytes(SIZE), structured));
        exercise(&mut client, 1);
        let zeroes = NbdCommand::WriteZeroes { fua: true, no_hole: false, fast: false };
        assert_eq!(client.call(zeroes, 4096, 65536, &[]).result, Ok(()));
        assert!(client.call(READ, 4096, 65536, &[]).data.iter().all(|byte| *byte == 0));
        assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
        client.disconnect();
    }
}

#[test]
fn an_old_nbdkit_is_asked_by_export_name() {
    for mask in ["0", "2"] {
        let folder = Folder::new(&format!("nbdkit-mask-{mask}"));
        let mask = format!("--mask-handshake={mask}");
        let Some(_server) = nbdkit(&folder, &[&mask, "memory", "16M"]) else { return };
        let mut client = Client::connect(&address(&folder, "any"), true, &["base:allocation"]).unwrap();
        assert!(!client.session().structured && client.session().blocks.is_none());
        exercise(&mut client, 2);
        client.disconnect();
    }
}

#[test]
fn nbdkit_without_structured_replies_is_taken_as_it_is() {
    let folder = Folder::new("nbdkit-no-sr");
    let Some(_server) = nbdkit(&folder, &["--no-sr", "memory", "16M"]) else { return };
    let mut client = Client::connect(&address(&folder, ""), true, &["base:allocation"]).unwrap();
    assert!(!client.session().structured && client.session().contexts.is_empty());
    exercise(&mut client, 3);
    client.disconnect();
}

#[test]
fn nbdkit_tells_holes_and_data() {
    let folder = Folder::new("nbdkit-extents");
    let Some(_server) = nbdkit(&folder, &["memory", "16M"]) else { return };
    let mut client = Client::connect(&address(&folder, ""), true, &["base:allocation"]).unwrap();
    assert_eq!(client.session().contexts[0].name, "base:allocation");
    client.call(WRITE, 1 << 20, 65536, &[1; 65536]);
    let answer = client.call(NbdCommand::BlockStatus { one: false }, 0, SIZE, &[]);
    let extents: Vec<(u32, u32)> = answer.extents.iter().map(|(_, extent)| (extent.length, extent.status)).collect();
    assert_eq!(extents, [(1 << 20, 3), (65536, 0), ((15 << 20) - 65536, 3)]);
    client.disconnect();
}

#[test]
fn errors_of_nbdkit_arrive_as_what_they_are() {
    let folder = Folder::new("nbdkit-error");
    let arguments = ["--filter=error", "memory", "16M", "error-pwrite=ENOSPC", "error-pread=EIO"];
    let rates = ["error-pwrite-rate=100%", "error-pread-rate=100%"];
    let Some(_server) = nbdkit(&folder, &[&arguments[..], &rates].concat()) else { return };
    for structured in [false, true] {
        let mut client = Client::connect(&address(&folder, ""), structured, &[]).unwrap();
        assert_eq!(client.call(READ, 0, 4096, &[]).result, Err(NbdError::InputOutput));
        assert_eq!(client.call(WRITE, 0, 4096, &[0; 4096]).result, Err(NbdError::NoSpace));
        client.disconnect();
    }
}

#[test]
fn limits_of_nbdkit_are_learned() {
    let folder = Folder::new("nbdkit-sizes");
    let sizes = ["blocksize-minimum=512", "blocksize-preferred=65536", "blocksize-maximum=1M"];
    let arguments = [&["--readonly", "--filter=blocksize-policy", "memory", "16M"][..], &sizes].concat();
    let Some(_server) = nbdkit(&folder, &arguments) else { return };
    let client = Client::connect(&address(&folder, ""), false, &[]).unwrap();
    let blocks = client.session().blocks.unwrap();
    assert_eq!((blocks.minimum(), blocks.preferred(), blocks.maximum()), (512, 65536, 1 << 20));
    assert!(client.session().flags.contains(ExportFlags::READ_ONLY));
    client.disconnect();
}

#[test]
fn qemu_nbd_keeps_what_it_is_given() {
    if !installed("qemu-nbd", "qemu-utils") {
        return;
    }
    for structured in [false, true] {
        let folder = Folder::new("qemu-nbd");
        std::fs::write(folder.file("image"), vec![0; usize::try_from(SIZE).unwrap()]).unwrap();
        let (socket, image) = (folder.text("socket"), folder.text("image"));
        let arguments =
            ["--persistent", "--format=raw", "--export-name=disk", "--socket", &socket, "--shared=4", &image];
        let _server = Server::start("qemu-nbd", &arguments, &folder.file("socket"));
        let uri = address(&folder, "disk");
        let names: Vec<String> = list(&uri).into_iter().map(|export| export.name).collect();
        assert_eq!(names, ["disk"]);
        let refused = Client::connect(&address(&folder, "no"), structured, &[]).err();
        assert!(matches!(refused, Some(ClientError::Refused(OptionRefusal::UnknownExport, _))), "{refused:?}");
        let mut client = Client::connect(&uri, structured, &[]).unwrap();
        exercise(&mut client, 4);
        let model = client.call(READ, 0, SIZE, &[]).data;
        assert_eq!(client.call(NbdCommand::Flush, 0, 0, &[]).result, Ok(()));
        client.disconnect();
        assert!(std::fs::read(folder.file("image")).unwrap() == model, "the image has something else");
    }
}
