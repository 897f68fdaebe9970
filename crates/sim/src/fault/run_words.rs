//! Descriptions of runs and actions, in words that need no knowledge of the sources.

use std::fmt;

use openraid_core::geometry::Level;
use openraid_format::{LayoutWord, MdLevel};
use openraid_units::Sectors;

use super::scenario::{Action, ControllerEnd, Scenario};
use crate::number_words::count;
use crate::rig::Loss;
use crate::test_arrays::{ArrayShape, Blocks};

impl fmt::Display for ControllerEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cut => "the power of everything goes",
            Self::CutInPart => "the power of the server and of some drives goes",
            Self::Kill => "the server is killed; drives keep their power",
            Self::Stop => "the server is stopped in order",
        })
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failed => "is failed by the administrator",
            Self::Pulled => "is pulled",
            Self::ReadOnly => "takes no writes any more",
            Self::Hanging => "answers nothing any more",
            Self::FlushFails => "fails its flushes, and drops what they were for",
        })
    }
}

fn again(f: &mut fmt::Formatter<'_>, events: Option<u64>) -> fmt::Result {
    match events {
        Some(events) => {
            write!(f, ", and again {} into the next start", count(events, "event", "events"))
        }
        None => Ok(()),
    }
}

fn places(number: u64) -> String {
    count(number, "place", "places")
}

/// Actions of the journal and of earlier moments without a number.
fn fixed(action: Action) -> &'static str {
    match action {
        Action::Fill(_) => "members become full",
        Action::MakeRoom => "all members have room again",
        Action::KeepImages => "the journal and a member are copied",
        Action::OlderMember => "the power of everything goes, and a member is there as it was when it was copied",
        Action::OlderJournal => "the power of everything goes, and the journal is there as it was when it was copied",
        Action::OlderVersion => "the power of everything goes, and superblocks are as an older version wrote them",
        Action::StartReading => "the power of everything goes, and a server reads without a write to a member",
        Action::HalfCopied => "the power of everything goes, and a member is there that was copied in part",
        Action::ShareSpare => "a new drive is given to two arrays",
        Action::JournalJoin => "a dropped device of the journal joins again",
        Action::JournalAgain => "the journal is taken out of use and into use again",
        Action::JournalReturn => "the devices of the journal are good again",
        Action::JournalHurt { silent: true } => "bits flip on a device of the journal",
        Action::JournalHurt { silent: false } => "a place of a journal device cannot be read until written",
        _ => unreachable!("the other actions have their words in Display"),
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask(number) => write!(f, "hosts send {}", count(*number, "request", "requests")),
            Self::Happen(number) => write!(f, "{}", count(*number, "event passes", "events pass")),
            Self::Wait(time) => write!(f, "{time} pass"),
            Self::Rest => f.write_str("until all is at rest"),
            Self::Flush => f.write_str("a host flushes, and waits for the answer"),
            Self::Look => f.write_str("a host reads everything"),
            Self::End(end, events) => {
                write!(f, "{end}")?;
                again(f, *events)
            }
            Self::CutAndLose(events) => {
                f.write_str("the power of everything goes, and a member with it for good")?;
                again(f, *events)
            }
            Self::CutAndBack(events) => {
                f.write_str("the power of everything goes, and every lost drive is there again with it")?;
                again(f, *events)
            }
            Self::Until(phase, busy) => {
                write!(f, "until {phase}{}", if *busy { ", while hosts go on" } else { "" })
            }
            Self::Lose(how) => write!(f, "a member {how}"),
            Self::Vanish => f.write_str("a member loses its power, and does not come back"),
            Self::Return => f.write_str("a lost drive is there again, and the server gets no event"),
            Self::Readd => f.write_str("a lost drive is given back to its array"),
            Self::Add => f.write_str("a new drive is added to a degraded array"),
            Self::Replace => f.write_str("a working member is replaced by a new drive"),
            Self::Scrub { repair: false } => f.write_str("a check is started"),
            Self::Scrub { repair: true } => f.write_str("a repair is started"),
            Self::Latent(number) => write!(f, "{} of a member cannot be read until written", places(*number)),
            Self::Dead(number) => write!(f, "{} of a member can neither be read nor written", places(*number)),
            Self::Late => f.write_str("the answers of a drive begin to be late, or are in time again"),
            Self::Silence(time) => write!(f, "a drive answers nothing for {time}"),
            Self::Patrol(number) => {
                write!(f, "bits flip in {} while all is at rest, and a repair goes over the array", places(*number))
            }
            Self::Flip => f.write_str("bits flip on a member"),
            Self::LostWrite => f.write_str("the next write to a member will be lost without a word"),
            Self::Misdirect => f.write_str("the next write to a member will go elsewhere without a word"),
            Self::Misread => f.write_str("the next read of a member will bring what stands elsewhere, without a word"),
            Self::FlipOnTheWay => f.write_str("bits of what the next read of a member brings will flip on the way"),
            Self::FlipSuperblock => f.write_str("bits flip in the superblock of a member"),
            Self::Policy => f.write_str("the settings are changed"),
            Self::Refuse => f.write_str("the next write to a member is refused, and the one after it is not"),
            Self::RefuseDiscards => f.write_str("a drive begins to refuse discards, or takes them again"),
            Self::Reconnect(time) => {
                write!(f, "the connection to a drive is away for {time}, and its commands are repeated")
            }
            Self::Pause => f.write_str("the background work is held"),
            Self::Reshape(wish) => write!(f, "an array begins to get {wish}"),
            Self::CancelReshape => f.write_str("the change of shape turns around"),
            Self::Resume => f.write_str("the background work goes on"),
            Self::StopScrub => f.write_str("a check or repair is stopped"),
            Self::Rename => f.write_str("the array gets another name"),
            Self::Consistency => f.write_str("the server is stopped, and the consistency policy is changed"),
            Self::StartWithout(_) => f.write_str("the server is stopped, and starts without some drives"),
            Self::CheckDegraded(number) => {
                write!(f, "bits flip in {} of a degraded array at rest, and a check goes over it", places(*number))
            }
            Self::JournalLose(how) => write!(f, "a device of the journal {how}"),
            other => f.write_str(fixed(*other)),
        }
    }
}

/// An array in words.
fn array(shape: &ArrayShape) -> String {
    let mut text = shape.level.to_string();
    let md = shape.level.md_number().and_then(MdLevel::from_number);
    let has_layout = matches!(shape.level, Level::Raid5 | Level::Raid6 | Level::Raid10);
    if let Some(level) = md.filter(|_| has_layout) {
        text.push_str(&format!(" ({})", LayoutWord { level, layout: shape.layout }));
    }
    let members = count(u64::from(shape.members), "member", "members");
    let data = shape.data.bytes().readable();
    let least = if shape.unequal { " and more" } else { "" };
    text.push_str(&format!(" on {members} of {data}{least}"));
    if !shape.chunk.is_zero() {
        text.push_str(&format!(", chunks of {}", shape.chunk.bytes().readable()));
    }
    text.push_str(match shape.blocks {
        Blocks::Small => ", blocks of 512 bytes",
        Blocks::Large => ", blocks of 4 KiB",
        Blocks::Mixed => ", blocks of 512 bytes and one member with blocks of 4 KiB",
    });
    text
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, mode, shape, spans, limits, load, .. } = self;
        write!(f, "seed {seed}, {mode}: ")?;
        if *spans > 1 {
            write!(f, "a stripe over {spans} spans, each ")?;
        }
        write!(f, "{}, {}", array(shape), self.policy_name())?;
        if let Some(journal) = &self.journal {
            let devices = count(u64::from(journal.mirrors), "device", "devices");
            write!(f, ", a journal of {} on {devices}", journal.ring.bytes().readable())?;
        }
        if self.extras.beside {
            f.write_str(", a second array next to it")?;
        }
        if self.extras.mixed {
            f.write_str(", drives of different kinds")?;
        }
        if self.extras.far >= Sectors(1 << 31) {
            f.write_str(", data after the first 2 TiB of each drive")?;
        }
        if self.drive.room_wait != openraid_units::Nanos::ZERO {
            write!(f, ", full storage of some drives keeps writes for {}", self.drive.room_wait)?;
        }
        if self.junk {
            f.write_str(", used drives")?;
        }
        if self.spares > 0 {
            f.write_str(", a spare")?;
        }
        if shape.level != Level::Passthrough {
            write!(f, ", metadata {}", self.metadata)?;
        }
        match limits.cache.is_zero() {
            true => f.write_str(", no cache")?,
            false => write!(f, ", a cache of {}", limits.cache.readable())?,
        }
        let (most, align) = (openraid_units::Bytes(load.len_max), openraid_units::Bytes(load.align));
        let at_once = count(u64::try_from(load.depth).unwrap_or(u64::MAX), "request", "requests");
        write!(f, "; hosts send up to {at_once} at once, of up to {}", most.readable())?;
        match load.align {
            1 => f.write_str(", at any byte"),
            _ => write!(f, ", at multiples of {}", align.readable()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_units::Nanos;

    #[test]
    fn stories_have_no_names_of_the_sources() {
        let cases = [
            (Action::Ask(1), "hosts send 1 request"),
            (Action::Happen(37), "37 events pass"),
            (Action::Wait(Nanos::from_millis(1500)), "1.500 s pass"),
            (
                Action::End(ControllerEnd::CutInPart, Some(29)),
                "the power of the server and of some drives goes, and again 29 events into the next start",
            ),
            (Action::Lose(Loss::FlushFails), "a member fails its flushes, and drops what they were for"),
            (Action::JournalLose(Loss::Pulled), "a device of the journal is pulled"),
        ];
        for (action, words) in cases {
            assert_eq!(action.to_string(), words);
        }
    }

    #[test]
    fn a_run_is_named_in_the_words_of_its_user() {
        let kib = Sectors::kib;
        let raid10 = |layout| array(&ArrayShape { data: kib(96), ..ArrayShape::raid10(layout, 3, kib(4)) });
        for (layout, word) in [(0x102, "n2"), (0x201, "f2"), (0x1_0301, "o3"), (0x103, "n3")] {
            let expected = format!("RAID 10 ({word}) on 3 members of 96 KiB, chunks of 4 KiB, blocks of 512 bytes");
            assert_eq!(raid10(layout), expected);
        }
        assert_eq!(array(&ArrayShape::raid1(2)), "RAID 1 on 2 members of 1.5 MiB, blocks of 512 bytes");
        let run = Scenario::draw(1).to_string();
        assert!(run.starts_with("seed 1, ") && !run.contains("0x") && !run.contains("Small"), "{run}");
    }
}
