//! A slice of the swarm: nothing that was promised is lost, whatever goes wrong, and every run is the same twice.

mod support;

use std::sync::Mutex;

use openraid_sim::fault::{report, Fault, Mode, Scenario, Tally, Verdict};
use support::{seeds, two_at_a_time};

/// Runs of the slice, some 90 seconds, and of the long run.
const SLICE: u64 = 800;
const WHOLE: u64 = 20_000;
/// Runs that lost something once, by what it was.
const ONCE_LOST: &[(&str, &[u64])] = &[
    // A redo whose bytes the tail had passed; an older one was done after it.
    ("older bytes over newer ones", &[1567, 4590]),
    // A slot was left out while it had no member, and had one again at the replay.
    ("older bytes on a member that was filled since", &[7219]),
    // The power went between the two waves that make a spare a member.
    ("a spare is taken for a member", &[1925, 5587, 6122]),
    // What no member takes was tried again and again, before what was not tried yet.
    ("a flush that never ends", &[1890, 5059, 7019, 7926]),
    // Several flushes waited for data that could not be written, and only the first was told.
    ("a flush that failed and ends well", &[5463]),
    // A set was taken away while something of it was under way, or with a dirty unit in which nothing was dirty.
    ("a set that is gone", &[3149, 7683]),
    // The journal was full or lost, and what was written without it was answered before its old entries were void.
    ("older entries over what was written without the journal", &[1195, 4364, 5952]),
    // The session of an array that had just been replayed ended while it was called active.
    ("a resync of what the journal had", &[11415]),
    // A stripe went to the members in several turns, each with a record of its own.
    ("partial parity of several turns", &[18, 95, 195, 618, 762, 2145]),
    // Rows that a rebuild had filled were not put right from the log, and not filled again.
    ("partial parity of rows that a rebuild had filled", &[4876]),
    // The members of the first wave failed, and the others were taken for written.
    ("superblocks that nobody wrote", &[23091]),
    // Writes of an array whose member with large blocks was missing, and is the only one that is back.
    ("writes in blocks that the drive does not take", &[3351]),
    // A discard waited for its range while the journal took over, and was replayed over.
    ("a discard beside the journal", &[201_080]),
    // A unit that the bitmap did not mark was passed by while a write was at work there that had left its parity out.
    ("parity that is left out, and not filled", &[229_015]),
    // The old member was called faulty before the new one's superblock said that it was complete.
    ("neither the old member nor its replacement", &[213_543]),
    // The log of a member that had just been filled said that the state of its parity is unknown.
    ("a log that vouches for nothing", &[201_895]),
    // The journal could not be read into an array that takes no writes; what was loaded was written again and again.
    ("a start that is never answered", &[1510, 209_646, 225_374]),
    // What members do not take was tried again and again while the array was being stopped.
    ("a stop that is never answered", &[207_405]),
    // What members do not take was tried again and again, without a pause.
    ("an array that has no rest", &[10_905]),
    // Not the engine's fault: the judge let the power go while a degraded array was about to write what came after a flush.
    ("a degraded array that is about to write", &[64_758]),
    // The journal begins to protect an array when nothing is dirty without it, and members did not take what was.
    ("writes that wait for a journal that cannot begin", &[216_282, 222_780, 226_254, 217_538, 223_351]),
    // What members do not take was tried again and again, before what was not tried yet, while the cache was full.
    ("writes that wait for a full cache", &[227_835]),
    // Unflushed writes of a lost member kept the tail in place; the journal was full, and did not report it.
    ("writes that wait for the journal of an array that is lost", &[225_727]),
    // A member was replaced, and its drive fell silent with commands that it was never given.
    ("reads that wait for a drive that was replaced", &[4975]),
    // The mark of a session did not reach the only member, and what the journal had was not replayed.
    ("a mark that no member took", &[212_074]),
    // The same, and flushes ended well, as if the journal had everything.
    ("a flush beside a mark that no member took", &[525_233]),
    // The judge took data to begin at the first sector of a drive whose superblock was hurt, and so other rows for torn.
    ("torn rows beside a hurt superblock", &[204_269, 208_478, 33_063]),
    // An array failed while it was stopped, with rows half written, and the judge did not see them.
    ("rows that a failed stop has torn", &[202_129, 225_225]),
    // The one copy that had been read was left out at the next start because its superblock was hurt.
    ("a copy that goes before the others are equal", &[219_280]),
    // What a member had been filled with was not read while another one was being filled, and was read afterwards.
    ("a copy that is read again when its rebuild goes on", &[68_642]),
    // Not the engine's fault: a flush of the first copy was to fail, after the cut that made copies differ.
    ("a copy that had its fault before the cut", &[66_334]),
    // A write had failed with its array, was read as old, and came from the journal when the array was back.
    ("a write that failed and is replayed", &[40_859]),
    // A member that went with the power had seen one event more than the remaining ones, and was taken as current.
    ("a member that is back and was one event ahead", &[17_008]),
    // A device failed between the two copies of the other one's superblock, which then had another number in the second.
    ("copies of a journal's superblock that contradict each other", &[70_453]),
    // Not the engine's fault: of a journal that was full one device was pulled, and the judge hurt the other one.
    ("the only device of a journal is hurt", &[74_196]),
    // Not the engine's fault: the judge looked for data at the first sector of a drive whose superblock was hurt.
    ("redundancy of a member with a hurt superblock", &[12_862, 34_592]),
    // Not the engine's fault: a member was stale, which could not be detected; the power went while it was started, and
    // then the judge took it for one of the newest, too.
    ("a stale member that starts twice", &[37_280]),
    // A drive joined with the number of a member that was not there, and superblocks were on their way that called it one.
    ("a member before it is filled", &[38_875]),
    // A request took more lines of a cache of 128 KiB than could be loaded again together with the log's data.
    ("a journal that holds more than its cache", &[54295]),
    // The judge's own mistake: bits were flipped below what the cache had yet to write.
    ("a patrol of an array that is not at rest", &[23980]),
    // Started by force without a member: parity that the cut had torn was believed, and another member went.
    ("rows that do not fit after force", &[100_307]),
    // What a read had found on a copy that was lost outlived the resync in the cache.
    ("a copy that was read and lost before a resync", &[1671]),
    // What was read ahead of the second copy, because of one bad sector of the first, outlived the resync in the cache.
    ("a copy that was read because of a bad sector beside", &[506_421]),
    // The same, and the cache told what was lost once more before the rebuild took another copy.
    ("a copy that was read, lost, and read again from the cache", &[1_036_573]),
    // One of two copies did not take a write, and both were read.
    ("a write that a needed member did not take", &[2927]),
    // Entries were copied through a window that a silent device might still read.
    ("the frames of a device that fell silent", &[105_516]),
    // A write past the cache waited, without its range, for room in the ring or for a redo, and revoked what was promised
    // meanwhile.
    ("a write past the cache that waits", &[303_518]),
    // The journal was lost and another one taken in while a write past the cache had room reserved.
    ("a reservation in a journal that is gone", &[423_035]),
    // Redo continued after the start, and rows that a member had been filled with were taken as missing on it.
    ("rows of a rebuild that has not gone on yet", &[530_214, 546_399, 548_283]),
    // The last device of the journal was silent, and was asked for more and more redos.
    ("redos from a device that answers nothing", &[506_604, 510_439]),
    // An array had failed because rows missed what the journal had; it was let go, and the rows were served as they were.
    ("rows that miss something beside the next journal", &[540_312]),
    // One sector could not be read, and its neighbours were computed from parity that a cut had torn.
    ("good sectors beside a bad one", &[603_917]),
    // Not the engine's fault: the driver of the simulation brought a device of the journal up to date without what stands
    // before the ring.
    ("a device of the journal without what was kept", &[609_299]),
    // The tail could move, and operations that waited for redos had all places: the engine asked to be called at once.
    ("a round without a place for its flushes", &[411_685]),
    // What the journal has of one leg filled what replay may load, and sessions of the others began and ended for one write.
    ("sessions that begin for a write which has no room", &[541_573]),
    // Not the engine's fault: rows were written past a full journal, and the judge did not know that what it has of them is
    // older: started by force, the array had that brought to them.
    ("older redos beside what the journal does not know", &[1_001_005]),
    // The log of a spare was written before parity was consistent, and was all that was left of the logs.
    ("a spare that says nothing of parity", &[1_021_796]),
    // A member left while its rows were compared, sector by sector, and was to be named.
    ("a check of a member that has left", &[2_007_788]),
    // The journal was full of what a set in doubt needs, and writes that waited for others' ranges were taken for such that
    // make room.
    ("writes that wait for ranges while the journal is full", &[2_019_677]),
    // Entries of a partial parity log were of rows that are not whole blocks of a member that is back.
    ("partial parity of parts of blocks", &[3_012_342]),
    // A flush failed while a write waited for a session to begin, and the write was never told that none will.
    ("a write that waits for a session of a set in doubt", &[534_283]),
    // A check was at work on an array whose spare had been filled in part: a write left its parity out in a row that the
    // spare's superblock calls filled.
    ("parity below what is filled, beside a check", &[5_053_416]),
    // It joined while superblocks were on their way that call it faulty, and the next ones made it a member: cut between
    // their two waves.
    ("a member that says of itself that it is faulty", &[6_039_723]),
    // A resync wrote to a member that took no writes and that the array could not do without, and was called finished.
    ("a resync beside a member in doubt", &[7_006_123]),
    // A drive did a write that it said it had not taken; a flush that was under way then did not cover it, and the next one
    // was held to be needless.
    ("a write that ended with an error, and a flush", &[20_079_497]),
    // The judge's own mistake: of a journal on one device the damage to its last entry looks as a write that was cut short.
    ("the last entry of a journal on one device", &[20_079_187]),
    // Sectors after the log were read along with it, and could not be read.
    ("a bad place behind the log", &[30_001_348]),
    // The simulation's own mistakes: bits flipped in entries that had been checked and were being read again; and a read
    // was taken to decide about a write that had failed while the journal held it.
    ("a journal that is read again", &[40_019_433]),
    ("a write that failed and was replayed", &[40_027_207]),
    // The judge's own mistake: what the first leg was started without had been filled, from rows in doubt, before the other
    // leg had started, and only then was looked.
    ("a write hole of a leg that was whole again too soon", &[70_010_769]),
    // The judge's own mistake: bits flipped in the journal after it was checked and before it was read again.
    ("what a checked log holds has other bits when it is redone", &[2_026_112_519_401]),
    // The judge's own mistake: a flush failed and dropped what it was for, and the server was killed before the other members
    // said so.
    ("writes that were not flushed and stood on a drive whose flush failed", &[2_026_112_776_609]),
    // A row was half written when its array went offline for want of the journal, and something else of it was recovered.
    ("recovery from parity of an array that has failed", &[2_026_112_818_878]),
    // The journal was lost, its session ended, and the array was called clean with it: the flush for that had begun while rows
    // were still being written past the journal.
    ("a clean mark beside writes that no flush had covered", &[2_026_113_021_337]),
    // What others wrote into the cache where it went was dirty again whenever it was asked.
    ("a write past the cache that waits for ever", &[2_026_115_045_764]),
    // A write that came while a session began marked the degraded array as active, without the session's mark.
    ("an active mark before the mark of the session", &[2_026_116_004_555]),
    // The judge: a member said of itself that a sector is lost, so a long read found the other copy's content, and the
    // resync took the rest from this one. A member with bad sectors keeps no read of unflushed data.
    ("copies that differ, of which one says that it has bad sectors", &[2_026_121_069_256]),
];

#[test]
fn nothing_promised_is_lost_in_any_run() {
    let seeds = seeds(SLICE, WHOLE);
    let tally = Mutex::new(Tally::default());
    let stories = Mutex::new(Vec::new());
    two_at_a_time(seeds, |seed| {
        let scenario = Scenario::draw(seed);
        let report = report(&scenario, None);
        if let Verdict::Lost(text) = &report.verdict {
            stories.lock().unwrap().push(format!("{scenario}\n{}\n{text}", report.story.join("\n")));
        }
        tally.lock().unwrap().count(&scenario, &report);
    });
    let stories = stories.into_inner().unwrap();
    assert!(stories.is_empty(), "{} runs lost something; the first:\n{}", stories.len(), stories[0]);
    judge_coverage(&tally.into_inner().unwrap());
}

/// A swarm that does nothing finds nothing.
fn judge_coverage(tally: &Tally) {
    assert_eq!(tally.ends.survived + tally.ends.not_promised, tally.runs);
    assert!(tally.cuts > tally.runs && tally.requests > 100 * tally.runs, "{tally:?}");
    let runs_of = |mode, fault| {
        let lines = tally.lines.iter().filter(|(line, _)| line.mode == mode && line.fault == fault);
        lines.map(|(_, ends)| ends.survived + ends.not_promised).sum::<u64>()
    };
    let always = [
        Fault::Cut,
        Fault::CutInPart,
        Fault::CutInAssembly,
        Fault::CutInRebuild,
        Fault::CutInResync,
        Fault::CutInMetadata,
        Fault::Kill,
        Fault::Pulled,
        Fault::Vanished,
        Fault::FlushFailed,
        Fault::Hanging,
        Fault::Stale,
        Fault::Latent,
        Fault::Flip,
        Fault::CutInScrub,
        Fault::CutInReplay,
        Fault::CutAndLoss,
        Fault::Failed,
        Fault::ReadOnly,
        Fault::Late,
        Fault::JournalLost,
        Fault::JournalBack,
    ];
    for fault in always {
        assert!(runs_of(Mode::Bounded, fault) > 0, "no bounded run with: {fault}");
    }
    let unbounded = [
        Fault::LostWrite,
        Fault::Misdirected,
        Fault::Misread,
        Fault::FlipOnTheWay,
        Fault::FlipSuperblock,
        Fault::Dead,
        Fault::JournalHurt,
    ];
    for fault in unbounded {
        assert!(runs_of(Mode::Unbounded, fault) > 0, "no unbounded run with: {fault}");
    }
    let bounded = tally.lines.iter().filter(|(line, _)| line.mode == Mode::Bounded);
    let excused: u64 = bounded.map(|(_, ends)| ends.not_promised).sum();
    assert_eq!(excused, 0, "a bounded run has no excuse");
}

#[test]
fn a_seed_is_a_run() {
    for seed in seeds(6, 60) {
        let once = report(&Scenario::draw(seed), None);
        let twice = report(&Scenario::draw(seed), None);
        assert_eq!((once.verdict, once.story), (twice.verdict, twice.story), "seed {seed}");
        assert_eq!(once.counts.events, twice.counts.events);
    }
}

#[test]
fn what_was_lost_once_is_not_lost_again() {
    for (what, seeds) in ONCE_LOST {
        for seed in *seeds {
            let report = report(&Scenario::draw(*seed), None);
            assert!(!matches!(report.verdict, Verdict::Lost(_)), "{what}: seed {seed}: {:?}", report.verdict);
        }
    }
}
