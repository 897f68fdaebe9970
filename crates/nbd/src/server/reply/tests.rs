use super::*;
use crate::export::{BlockSizes, ContextSet};
use crate::flags::ExportFlags;
use crate::server::Reason;

const COOKIE: Cookie = Cookie(0x0102_0304_0506_0708);

fn session(structured: bool) -> NbdSession {
    NbdSession {
        export: 0,
        size: Bytes(1 << 30),
        flags: ExportFlags::NONE,
        blocks: BlockSizes::DEFAULT,
        structured,
        contexts: ContextSet::ALL,
    }
}

fn request(command: NbdCommand, length: u64) -> NbdRequest {
    NbdRequest { cookie: COOKIE, command, offset: ArrayOffset(0x1000), length: Bytes(length) }
}

fn status(one: bool, length: u64, extents: &[(u32, u32)]) -> Vec<(u32, u32)> {
    let mut out = b"before".to_vec();
    let extents = extents.iter().map(|(length, status)| StatusExtent { length: *length, status: *status });
    let request = request(NbdCommand::BlockStatus { one }, length);
    chunk_status(&mut out, &request, MetaContext::Allocation, extents, true);
    assert_eq!(out[..6], *b"before");
    let chunk = &out[6..];
    assert_eq!(chunk[..16], [0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(chunk[16..20], u32::try_from(chunk.len() - 20).unwrap().to_be_bytes());
    assert_eq!(chunk[20..24], [0, 0, 0, 1]);
    StatusExtent::from_wire(&chunk[24..]).map(|extent| (extent.length, extent.status)).collect()
}

#[test]
fn simple_replies_are_magic_error_cookie() {
    assert_eq!(simple(COOKIE, None), [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let failed = [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 28, 1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!(simple(COOKIE, Some(NbdError::NoSpace)), failed);
}

#[test]
fn chunks_have_the_bytes_of_the_protocol_document() {
    let data = chunk_data(COOKIE, ArrayOffset(0x1000), Bytes(512), false);
    let head = [0x66, 0x8e, 0x33, 0xef, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 2, 8];
    assert_eq!(data, [&head[..], &[0, 0, 0, 0, 0, 0, 0x10, 0]].concat()[..]);
    let hole = chunk_hole(COOKIE, ArrayOffset(0x1000), Bytes(512), true);
    let head = [0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 12];
    assert_eq!(hole, [&head[..], &[0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 2, 0]].concat()[..]);
    assert_eq!(chunk_done(COOKIE), [0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]);
}

#[test]
fn error_chunks_carry_a_message() {
    let mut out = Vec::new();
    chunk_error(&mut out, COOKIE, NbdError::InputOutput, "disk", true);
    let head = [0x66, 0x8e, 0x33, 0xef, 0, 1, 0x80, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 10];
    assert_eq!(out, [&head[..], &[0, 0, 0, 5, 0, 4], b"disk"].concat());
}

#[test]
fn long_messages_are_cut_at_a_character() {
    let mut out = Vec::new();
    let message = format!("a{}", "\u{e9}".repeat(STRING_MAX));
    chunk_error(&mut out, COOKIE, NbdError::Invalid, &message, true);
    assert_eq!(out.len(), CHUNK_BYTES + 6 + STRING_MAX - 1);
    assert!(core::str::from_utf8(&out[CHUNK_BYTES + 6..]).is_ok());
}

#[test]
fn success_has_the_shape_the_client_understands() {
    let read = request(NbdCommand::Read { dont_fragment: false }, 512);
    let flush = request(NbdCommand::Flush, 0);
    assert_eq!(session(false).success(&read).as_bytes(), simple(COOKIE, None));
    assert_eq!(session(true).success(&read).as_bytes(), chunk_data(COOKIE, ArrayOffset(0x1000), Bytes(512), true));
    assert_eq!(session(true).success(&flush).as_bytes(), simple(COOKIE, None));
}

#[test]
fn refusals_become_one_whole_reply() {
    let refusal = RequestRefusal { cookie: COOKIE, error: NbdError::NotPermitted, reason: Reason::ReadOnly };
    let mut out = Vec::new();
    session(false).push_refusal(&refusal, &mut out);
    assert_eq!(out, simple(COOKIE, Some(NbdError::NotPermitted)));
    let (mut out, mut expected) = (Vec::new(), Vec::new());
    session(true).push_refusal(&refusal, &mut out);
    chunk_error(&mut expected, COOKIE, NbdError::NotPermitted, "the export is read-only", true);
    assert_eq!(out, expected);
}

#[test]
fn extents_are_merged_clipped_and_never_empty() {
    assert_eq!(
        status(false, 4096, &[(512, 0), (512, 0), (0, 3), (512, 3), (9999, 0)]),
        [(1024, 0), (512, 3), (2560, 0)]
    );
    assert_eq!(status(false, 4096, &[(4096, 1), (512, 0)]), [(4096, 1)]);
    assert_eq!(status(false, 4096, &[(512, 1)]), [(512, 1)], "less than asked for is allowed");
}

#[test]
fn one_extent_means_one() {
    assert_eq!(status(true, 4096, &[(512, 0), (512, 0), (512, 3)]), [(1024, 0)]);
    assert_eq!(status(true, 600, &[(512, 0), (512, 0)]), [(600, 0)]);
}

#[test]
fn extents_stop_at_the_limit() {
    let many: Vec<(u32, u32)> = (0..10_000).map(|n| (512, n % 2)).collect();
    let sent = status(false, 1 << 30, &many);
    assert_eq!(sent.len(), EXTENTS_MAX);
    assert_eq!(sent[..], many[..EXTENTS_MAX]);
}

#[test]
#[should_panic(expected = "at least one extent")]
fn no_extent_at_all_is_a_bug() {
    status(false, 4096, &[(0, 1)]);
}
