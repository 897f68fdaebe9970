//! A running hash of all decisions of a controller: equal hashes mean byte-identical actions.
//!
//! The hash includes every field of every action, in order. It is not cryptographic: it detects bugs, not attacks.

use openraid_core::actions::{Actions, Data, DriveCommand, DriveOp, JobKind, Notice, ParityJob, Reply, Transfer};
use openraid_units::{Instant, PoolOffset};

use crate::random::mix;

/// The hash so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest {
    state: u64,
    /// Number of hashed actions.
    pub actions: u64,
}

impl Digest {
    /// The hash as a number.
    #[must_use]
    pub fn value(&self) -> u64 {
        mix(self.state ^ self.actions)
    }

    /// Add a number.
    pub fn number(&mut self, number: u64) {
        self.state = turned(mix(self.state ^ number), 23);
    }

    /// Add bytes and their count.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.number(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.number(u64::from_le_bytes(word));
        }
    }

    /// Add all actions of one [`openraid_core::Controller::advance`].
    pub fn advance(&mut self, now: Instant, actions: &Actions) {
        self.number(now.0);
        actions.drive.iter().for_each(|command| self.drive(command, actions));
        actions.transfers.iter().for_each(|transfer| self.transfer(transfer));
        actions.jobs.iter().for_each(|job| self.job(job, actions));
        actions.replies.iter().for_each(|reply| self.reply(reply));
        actions.notices.iter().for_each(|notice| self.notice(notice));
        for answer in &actions.admin {
            self.actions += 1;
            self.number(answer.token.0);
            self.text(&answer.result);
        }
        self.number(actions.notices_dropped);
    }

    /// Add a rare value by its debug text, which names every field.
    fn text(&mut self, value: &impl std::fmt::Debug) {
        self.bytes(format!("{value:?}").as_bytes());
    }

    fn place(&mut self, at: Option<PoolOffset>) {
        self.number(at.map_or(u64::MAX, PoolOffset::get));
    }

    fn drive(&mut self, command: &DriveCommand, actions: &Actions) {
        self.actions += 1;
        self.number(command.tag.0);
        let op = match command.op {
            DriveOp::Read => 1,
            DriveOp::Write { fua } => 2 + u64::from(fua),
            DriveOp::Flush => 4,
            DriveOp::Discard => 5,
            DriveOp::WriteZeroes { may_discard: false } => 6,
            DriveOp::WriteZeroes { may_discard: true } => 7,
        };
        self.number(u64::from(command.drive.0) << 16 | op << 8 | command.class as u64);
        self.number(command.lba.get());
        self.number(command.len.get());
        match command.data {
            Data::None => self.number(1),
            Data::Frames(at) => self.number(2 | at.get() << 2),
            Data::Metadata(range) => {
                self.number(3);
                self.bytes(actions.metadata_of(range));
            }
        }
    }

    fn transfer(&mut self, transfer: &Transfer) {
        self.actions += 1;
        self.number(transfer.tag.0);
        self.number(transfer.token.0);
        self.number((transfer.direction as u64) << 1 | u64::from(transfer.last));
        self.number(transfer.at.get());
        self.number(u64::from(transfer.offset) << 32 | u64::from(transfer.len));
    }

    fn job(&mut self, job: &ParityJob, actions: &Actions) {
        self.actions += 1;
        self.number(job.tag.0);
        let kind = match job.kind {
            JobKind::Generate => 1,
            JobKind::Update => 2,
            JobKind::Recover { lost } => 3 | u64::from(lost) << 8,
            JobKind::Check => 4,
            JobKind::Compare => 5,
            JobKind::Copy => 6,
            JobKind::Checksum => 7,
        };
        self.number(kind);
        self.number(u64::from(job.len));
        self.place(job.p);
        self.place(job.q);
        for column in actions.columns_of(job) {
            self.number(u64::from(column.index));
            self.number(column.at.get());
            self.number(column.old.get());
        }
    }

    fn reply(&mut self, reply: &Reply) {
        self.actions += 1;
        self.number(reply.token.0);
        self.number(reply.status as u64);
    }

    fn notice(&mut self, notice: &Notice) {
        self.actions += 1;
        self.text(notice);
    }
}

/// `rotate_left` for the hottest lines of a test.
#[expect(clippy::manual_rotate, reason = "with little optimisation `rotate_left` is a call into a crate that has none")]
#[inline(always)]
const fn turned(bits: u64, by: u32) -> u64 {
    bits << by | bits >> (u64::BITS - by)
}

/// A number that tells whether bytes have changed, after the number of other bytes before them. It takes four words at a time that do
/// not wait for each other, so it is quicker than a [`Digest`], of which stored values must stay.
#[must_use]
pub fn fingerprint(before: u64, bytes: &[u8]) -> u64 {
    // Each step is reversible, so no single word can change without a trace.
    fn step(lane: u64, word: [u8; 8]) -> u64 {
        turned((lane ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15), 29)
    }
    let (words, rest) = bytes.as_chunks::<8>();
    let (blocks, words) = words.as_chunks::<4>();
    let [mut a, mut b, mut c, mut d] = [mix(before), 1, 2, bytes.len() as u64];
    for [first, second, third, fourth] in blocks {
        a = step(a, *first);
        b = step(b, *second);
        c = step(c, *third);
        d = step(d, *fourth);
    }
    for word in words {
        a = step(a, *word);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    [b, c, d].into_iter().fold(step(a, last), |sum, lane| mix(sum ^ lane))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_changed_byte_is_noticed_and_so_is_the_order() {
        let bytes: Vec<u8> = (0..=99).collect();
        let before = fingerprint(7, &bytes);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x80;
            assert_ne!(fingerprint(7, &changed), before, "byte {at}");
            assert_ne!(fingerprint(7, &bytes[..at]), before, "{at} bytes");
            if at >= 32 {
                changed[at - 32] ^= 0x80;
                assert_ne!(fingerprint(7, &changed), before, "bytes {at} and 32 before");
            }
        }
        assert_ne!(fingerprint(8, &bytes), before);
        assert_eq!(fingerprint(7, &bytes), before);
    }

    #[test]
    fn order_and_length_count() {
        let of = |numbers: &[u64]| {
            let mut digest = Digest::default();
            numbers.iter().for_each(|number| digest.number(*number));
            digest.value()
        };
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_ne!(of(&[0]), of(&[0, 0]));
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
    }
}
