//! The waits for the journal, for redos and for the partial parity log, through the engine's messages: each with every
//! event that may end it.

extern crate std;

use std::vec::Vec;

use super::*;
use crate::actions::{DriveOp, ReplyStatus};
use crate::events::{DriveError, RequestKind};
use crate::io::steps::fixture::{Drives, JOURNAL};
use crate::settings::WriteCache;
use openraid_units::{DriveId, MemberLba, Slot, Token};

/// The request that waits.
const WAITS: Token = Token(10);
/// Members in whose absence the array has failed.
const TWO: [DriveId; 2] = [DriveId(0), DriveId(1)];
/// Bytes of a stripe: two columns of 64 KiB.
const STRIPE: u64 = 128 << 10;

impl Drives {
    /// A host writes 100 bytes within a block of this stripe. The cache does not take such a write.
    fn write_past(&mut self, token: Token, stripe: u64) {
        self.write_part(token, stripe, 100);
    }

    fn write_part(&mut self, token: Token, stripe: u64, len: u64) {
        self.request(token, RequestKind::Write { fua: false }, stripe * STRIPE + 1, len);
    }

    /// An operation waits for this, and the array is at rest until a drive answers.
    fn held_by(self, wait: Wait) -> Self {
        assert!(self.waits().contains(&wait), "{:?} and not for {wait:?}", self.waits());
        assert!(self.reply().is_none());
        self
    }

    /// The reply to the request that waits.
    fn reply(&self) -> Option<ReplyStatus> {
        self.replies.iter().find(|(token, _)| *token == WAITS).map(|(_, status)| *status)
    }
}

/// An array in a session.
fn in_session() -> Drives {
    let mut drives = Drives::with_journal();
    drives.use_journal(WriteCache::Journal);
    drives.write_past(Token(1), 0);
    drives.answer_all();
    drives
}

/// A write past the cache that is ready to write when a session of its set begins.
fn held_while_a_session_begins() -> Drives {
    let mut drives = Drives::with_journal();
    drives.write_past(WAITS, 1);
    drives.use_journal(WriteCache::Journal);
    drives.answer_until(Wait::Session);
    drives.held_by(Wait::Session)
}

/// The same when the session ends.
fn held_while_a_session_ends() -> Drives {
    held_while_it_ends(in_session())
}

fn held_while_a_session_ends_without_a_member() -> Drives {
    let mut drives = in_session();
    drives.write_past(Token(2), 0);
    drives.answer_without(&[DriveId(2)]);
    held_while_it_ends(drives)
}

fn held_while_it_ends(mut drives: Drives) -> Drives {
    drives.write_past(WAITS, 1);
    let reads: Vec<_> = drives.out.drain(..).collect();
    drives.use_journal(WriteCache::Through);
    // The members are flushed before the session ends.
    assert!(drives.out.iter().all(|command| command.op == DriveOp::Flush) && !drives.out.is_empty());
    let flushes = core::mem::replace(&mut drives.out, reads);
    drives.answer_until(Wait::Session);
    drives.out.extend(flushes);
    drives.held_by(Wait::Session)
}

/// A write past the cache whose redo records are being written.
fn held_by_its_entry() -> Drives {
    let mut drives = in_session();
    drives.write_past(WAITS, 1);
    while drives.out.iter().all(|command| command.drive != JOURNAL) {
        drives.answer(|_| Ok(()));
    }
    drives.held_by(Wait::Entry)
}

/// A write past the cache, after the journal was lost in a session.
fn held_by_the_stale_mark() -> Drives {
    let mut drives = held_by_its_entry();
    drives.lose(JOURNAL);
    drives.answer_until(Wait::StaleMark);
    drives.held_by(Wait::StaleMark)
}

/// Writes past the cache that fill the entry which collects while another one is being written; one more finds no room.
fn held_by_a_full_entry() -> Drives {
    let mut drives = in_session();
    for stripe in 1..=4 {
        drives.write_part(Token(stripe), stripe, 12 << 10);
    }
    drives.write_part(WAITS, 5, 12 << 10);
    drives.answer_but(|command| command.drive == JOURNAL);
    drives.held_by(Wait::JournalRoom(Reason::WaitedForJournalWrite))
}

/// One that finds no buffer: hung drives hold two, and the third one is being written.
fn held_by_the_buffers() -> Drives {
    let mut drives = in_session();
    (0..2).for_each(|buffer| drives.controller.journal.give_up_buffer(2 - buffer));
    drives.write_past(Token(1), 1);
    drives.answer_but(|command| command.drive == JOURNAL);
    drives.write_past(WAITS, 2);
    drives.answer_but(|command| command.drive == JOURNAL);
    drives.held_by(Wait::JournalRoom(Reason::WaitedForJournalWrite))
}

/// One that finds the table of entries full.
fn held_by_the_ring() -> Drives {
    let mut drives = in_session();
    drives.controller.journal.fill_table();
    drives.write_past(WAITS, 2);
    drives.held_by(Wait::JournalRoom(Reason::WaitedForJournal))
}

/// One that finds all room of the ring reserved, also for the redo record of a dirty line.
fn held_by_a_reservation() -> Drives {
    let mut drives = Drives::with_journal();
    drives.use_journal(WriteCache::Journal);
    // The line needs the only entry, so that the tail cannot move.
    drives.write(Token(1), STRIPE);
    drives.answer_all();
    drives.controller.journal.leave_free(1);
    drives.write_past(WAITS, 2);
    drives.held_by(Wait::JournalRoom(Reason::WaitedForJournal))
}

/// A write whose record of the partial parity log is being written.
fn held_by_its_record() -> Drives {
    let mut drives = Drives::with_logs();
    drives.write(WAITS, 0);
    drives.answer_until(Wait::Record);
    drives.held_by(Wait::Record)
}

/// A write that waits for the next write of the log of its stripe.
fn held_by_a_record_in_work() -> Drives {
    let mut drives = Drives::with_logs();
    drives.write(Token(1), 0);
    drives.answer_until(Wait::Record);
    let log = drives.out.drain(..).collect::<Vec<_>>();
    drives.write(WAITS, 8192);
    drives.answer(|_| Ok(()));
    drives.out.extend(log);
    drives.held_by(Wait::Record)
}

/// On an array that lacks a member, a write that waits until the members are flushed, so that the log of its stripe can
/// be written again.
fn held_by_a_flush_for_its_record() -> Drives {
    let mut drives = Drives::with_logs();
    drives.write(Token(1), 0);
    // The parity of the first stripe is on the last member.
    drives.answer_without(&[DriveId(0)]);
    drives.write(Token(2), STRIPE / 2);
    drives.answer_all();
    drives.write(WAITS, STRIPE / 2);
    while drives.out.iter().all(|command| command.op != DriveOp::Flush) {
        drives.answer(|_| Ok(()));
    }
    drives.held_by(Wait::Record)
}

/// A read from the first member, in a stripe after those of the other redos. As many redos are in work as may be.
fn held_by_a_redo(of: Slot, left_out: Option<Slot>) -> Drives {
    let others = (0..16).map(|stripe| (Slot(0), MemberLba(stripe * 128)));
    let redos: Vec<_> = others.chain([(of, MemberLba(18 * 128))]).collect();
    let mut drives = Drives::with_backlog(&redos, left_out);
    drives.answer_but(|command| command.drive == JOURNAL);
    assert!(drives.out.iter().all(|command| command.op == DriveOp::Read) && !drives.out.is_empty());
    drives.use_journal(WriteCache::Journal);
    drives.request(WAITS, RequestKind::Read, 18 * STRIPE, 4096);
    drives
}

type Situation = fn() -> Drives;
type Event = fn(&mut Drives);
const OK: ReplyStatus = ReplyStatus::Ok;
const ERROR: ReplyStatus = ReplyStatus::IoError;

const ALL_ANSWER: Event = |drives| drives.answer_all();
const JOURNAL_GONE: Event = |drives| drives.answer_without(&[JOURNAL]);
const ARRAY_FAILED: Event = |drives| drives.answer_without(&TWO);
const NOT_WANTED: Event = |drives| {
    drives.use_journal(WriteCache::Through);
    drives.answer_all();
};
/// The flush of one member fails first, then the others succeed.
const FLUSH_FAILED: Event = |drives| {
    let at = drives.out.iter().position(|command| command.op == DriveOp::Flush).expect("members are flushed");
    let others = drives.out.split_off(at + 1);
    let before = core::mem::replace(&mut drives.out, others);
    let (failing, others) = (before[at], [&before[..at], &drives.out[..]].concat());
    drives.out = std::vec![failing];
    drives.answer(|_| Err(DriveError::FlushFailed));
    drives.out.extend(others);
    drives.answer_all();
};

/// A wait, how an operation comes to it, and each event that may end it with the reply of the request.
type Case = (&'static str, Situation, &'static [(&'static str, Event, ReplyStatus)]);

const CASES: &[Case] = &[
    (
        "a session begins",
        held_while_a_session_begins,
        &[
            ("begun", ALL_ANSWER, OK),
            ("not wanted any more", NOT_WANTED, OK),
            ("journal gone", JOURNAL_GONE, OK),
            ("array failed", ARRAY_FAILED, ERROR),
        ],
    ),
    (
        "a session ends",
        held_while_a_session_ends,
        &[("ended", ALL_ANSWER, OK), ("journal gone", JOURNAL_GONE, OK), ("array failed", ARRAY_FAILED, ERROR)],
    ),
    (
        "a session of an array that lacks a member ends",
        held_while_a_session_ends_without_a_member,
        &[("ended", ALL_ANSWER, OK), ("a flush failed", FLUSH_FAILED, OK)],
    ),
    (
        "its entry is written",
        held_by_its_entry,
        &[("durable", ALL_ANSWER, OK), ("journal gone", JOURNAL_GONE, OK), ("array failed", ARRAY_FAILED, ERROR)],
    ),
    (
        "the superblocks call the journal stale",
        held_by_the_stale_mark,
        &[("durable", ALL_ANSWER, OK), ("array failed", ARRAY_FAILED, ERROR)],
    ),
    ("the entry is full", held_by_a_full_entry, &[("sealed", ALL_ANSWER, OK), ("journal gone", JOURNAL_GONE, OK)]),
    ("no buffer is free", held_by_the_buffers, &[("durable", ALL_ANSWER, OK), ("journal gone", JOURNAL_GONE, OK)]),
    ("the table is full", held_by_the_ring, &[("a round", ALL_ANSWER, OK), ("journal gone", JOURNAL_GONE, OK)]),
    (
        "the room is reserved",
        held_by_a_reservation,
        &[
            // No round can end, so that only the end of the destage makes room.
            ("released", |drives| drives.answer_but(|command| command.op == DriveOp::Flush), OK),
            ("journal gone", JOURNAL_GONE, OK),
        ],
    ),
    (
        "its record is written",
        held_by_its_record,
        &[
            ("durable", ALL_ANSWER, OK),
            ("a log without its member", |drives| drives.answer_without(&[DriveId(2)]), OK),
            ("array failed", ARRAY_FAILED, ERROR),
        ],
    ),
    (
        "another record is written",
        held_by_a_record_in_work,
        &[
            ("flushed", ALL_ANSWER, OK),
            ("a log without its member", |drives| drives.answer_without(&[DriveId(2)]), OK),
            ("array failed", ARRAY_FAILED, ERROR),
        ],
    ),
    (
        "members are flushed for its record",
        held_by_a_flush_for_its_record,
        &[
            ("flushed", ALL_ANSWER, OK),
            ("the flush failed", FLUSH_FAILED, ERROR),
            ("array failed", ARRAY_FAILED, ERROR),
        ],
    ),
    (
        "a redo",
        || held_by_a_redo(Slot(0), None).held_by(Wait::Redo),
        &[("done", ALL_ANSWER, OK), ("unreadable", JOURNAL_GONE, ERROR), ("array failed", ARRAY_FAILED, ERROR)],
    ),
];

#[test]
fn every_event_that_may_end_a_wait_for_the_journal_or_a_log_calls_the_operation() {
    for (wait, held, events) in CASES {
        for (event, happens, status) in *events {
            let mut drives = held();
            happens(&mut drives);
            assert_eq!(drives.reply(), Some(*status), "{wait}, {event}: {:?}", drives.waits());
        }
    }
}

#[test]
fn a_redo_for_a_slot_without_a_member_calls_the_operations_that_wait_for_it() {
    // No drive answers: the other redos take long.
    let mut drives = held_by_a_redo(Slot(2), Some(Slot(2)));
    assert_eq!(drives.waits(), []);
    assert!(drives.out.iter().any(|command| command.drive != JOURNAL), "the members are read");
    drives.answer_but(|command| command.drive == JOURNAL);
    assert_eq!(drives.reply(), Some(OK));
}

#[test]
fn a_write_that_finds_no_room_for_its_records_asks_again_when_a_group_is_sealed_and_when_one_is_durable() {
    for held in [held_by_a_full_entry, held_by_the_buffers] {
        let mut drives = held();
        assert!(drives.out.iter().all(|command| command.drive == JOURNAL), "one group is being written");
        drives.answer(|_| Ok(()));
        let has_no_room = |wait: &Wait| matches!(wait, Wait::JournalRoom(_));
        assert!(!drives.waits().iter().any(has_no_room), "{:?}", drives.waits());
    }
}
