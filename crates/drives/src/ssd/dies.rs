//! Dies and channels: each has a timeline of its own.
//!
//! No event is needed here: the times of a die's work are known as soon as the die gets the work. Reads precede
//! programs. A read interrupts a running program if the drive can do that. Otherwise it waits for the end of the
//! running program, but not for queued ones.

use openraid_models::{Rate, SsdProfile};
use openraid_units::Bytes;

/// The page number for no page.
const NONE: u64 = u64::MAX;
/// After this number of interruptions a program is finished first.
const SUSPENDS_MAX: u32 = 8;

/// Values that the dies of one profile share; times in nanoseconds.
#[derive(Clone, Debug)]
pub struct DieTables {
    dies: u64,
    channels: u64,
    channel_rate: Rate,
    read: u64,
    program: u64,
    reads: Vec<u64>,
    programs: Vec<u64>,
    suspend: Option<u64>,
    slc_program: u64,
    /// Erase time for each page.
    pub(super) erase_per_page: u64,
    burst: u64,
}

#[derive(Clone, Copy, Debug)]
struct Die {
    read_free: u64,
    program_end: u64,
    /// The page in the die's register, and when it is available.
    page: u64,
    page_ready: u64,
    /// Remaining interruptions.
    suspends: u32,
    /// Work of collecting that is still to be done.
    collection_due: u64,
    written: u64,
}

/// The dies of a drive.
#[derive(Clone, Debug)]
pub struct Dies {
    dies: Vec<Die>,
    channels: Vec<u64>,
    cursor: usize,
    busy: u64,
}

impl DieTables {
    /// Compute the values that follow from the profile alone.
    #[must_use]
    pub fn new(profile: &SsdProfile) -> Self {
        let types = |mean: u64, thousandths: &[u32]| {
            let of = |part: &u32| mean * u64::from(*part) / 1000;
            if thousandths.is_empty() {
                vec![mean]
            } else {
                thousandths.iter().map(of).collect()
            }
        };
        let (read, program) = (profile.read.value.0, profile.program.value.0.max(1));
        Self {
            dies: u64::from(profile.dies.value),
            channels: u64::from(profile.channels.value),
            channel_rate: profile.channel_rate.value,
            read,
            program,
            reads: types(read, &profile.read_types),
            programs: types(program, &profile.program_types),
            suspend: profile.suspend.as_ref().map(|time| time.value.0),
            slc_program: profile.slc.as_ref().map_or(program, |slc| slc.program.value.0),
            erase_per_page: profile.erase.value.0 / u64::from(profile.block_pages.value),
            burst: profile.collection_burst.value.0.max(1),
        }
    }

    /// The work of collecting for one page that the host writes. `amplification` is in thousandths.
    #[must_use]
    pub fn collecting(&self, amplification: u64) -> u64 {
        (amplification - 1000) * (self.program + self.read) / 1000 + amplification * self.erase_per_page / 1000
    }

    /// The die that has a page. Neighbouring pages are on different dies, and each row of pages begins at another die.
    /// So no stride of addresses uses one die only.
    fn die_of(&self, page: u64) -> usize {
        let row = page / self.dies;
        let shift = crate::random::mix(row) >> 32;
        index((page + shift) % self.dies)
    }
}

#[allow(clippy::cast_possible_truncation)] // below a number of dies
fn index(die: u64) -> usize {
    die as usize
}

impl Dies {
    /// Dies without work.
    #[must_use]
    pub fn new(tables: &DieTables) -> Self {
        let die = Die {
            read_free: 0,
            program_end: 0,
            page: NONE,
            page_ready: 0,
            suspends: SUSPENDS_MAX,
            collection_due: 0,
            written: 0,
        };
        Self { dies: vec![die; index(tables.dies)], channels: vec![0; index(tables.channels)], cursor: 0, busy: 0 }
    }

    /// Spread the work of collecting over time, as in service. Otherwise all dies would begin it at once.
    pub fn spread_debts(&mut self, tables: &DieTables, mut part: impl FnMut(u64) -> u64) {
        for die in &mut self.dies {
            die.collection_due = part(tables.burst);
            die.written = part(1 << 16);
        }
    }

    /// Load a page into its die's register. Returns when the page is available.
    pub fn load(&mut self, tables: &DieTables, now: u64, page: u64) -> u64 {
        self.load_on(tables, tables.die_of(page), now, page)
    }

    fn load_on(&mut self, tables: &DieTables, number: usize, now: u64, page: u64) -> u64 {
        let die = &mut self.dies[number];
        if die.page == page {
            return die.page_ready.max(now);
        }
        let types = tables.reads.len() as u64;
        let time = tables.reads[index(page / tables.dies % types)];
        let free = now.max(die.read_free);
        let mut begin = free;
        if die.program_end > free {
            let rest = (die.program_end - free) % tables.program;
            match tables.suspend {
                // The program remains interrupted if reads follow each other.
                Some(_) if free == die.read_free && free > now => {}
                Some(suspend) if die.suspends > 0 && suspend < rest => {
                    die.suspends -= 1;
                    begin += suspend;
                }
                _ => begin += rest,
            }
            // The time for which the program was suspended. A wait for its end costs the program no time.
            let lost = if begin == free + rest { time } else { begin + time - free };
            die.program_end += lost;
        }
        let end = begin + time;
        self.busy += time;
        (die.read_free, die.page, die.page_ready) = (end, page, end);
        end
    }

    /// Transfer a page, or `bytes` of it, to the controller. Returns when the transfer ends.
    pub fn read(&mut self, tables: &DieTables, now: u64, page: u64, bytes: u64) -> u64 {
        let number = tables.die_of(page);
        let ready = self.load_on(tables, number, now, page);
        let time = tables.channel_rate.time(Bytes(bytes)).0;
        // The channel serves any transfer that is ready: it keeps its rate, but not the order of arrival.
        let channels = self.channels.len();
        let channel = &mut self.channels[number % channels];
        *channel = now.max(*channel) + time;
        (ready + time).max(*channel)
    }

    /// Program a page on some die. `collecting` is the work of collecting for this page. Returns when the program ends.
    pub fn program(&mut self, tables: &DieTables, now: u64, bytes: u64, slc: bool, collecting: u64) -> u64 {
        let number = self.writable();
        let time = tables.channel_rate.time(Bytes(bytes)).0;
        let channels = self.channels.len();
        let channel = &mut self.channels[number % channels];
        *channel = now.max(*channel) + time;
        let there = now + time;
        let die = &mut self.dies[number];
        let types = tables.programs.len() as u64;
        let program = if slc { tables.slc_program } else { tables.programs[index(die.written % types)] };
        die.written += 1;
        die.collection_due += collecting;
        let collect = die.collection_due / tables.burst * tables.burst;
        die.collection_due -= collect;
        let begin = there.max(die.program_end).max(die.read_free);
        if begin > die.program_end {
            die.suspends = 0;
        }
        die.suspends = (die.suspends + SUSPENDS_MAX).min(4 * SUSPENDS_MAX);
        die.page = NONE;
        die.program_end = begin + collect + program;
        self.busy += collect + program;
        die.program_end
    }

    /// The next die in turn, or the one after it if that has less work.
    fn writable(&mut self) -> usize {
        let first = self.cursor;
        let second = if first + 1 == self.dies.len() { 0 } else { first + 1 };
        self.cursor = second;
        if self.dies[second].program_end < self.dies[first].program_end {
            second
        } else {
            first
        }
    }

    /// The end of the last program.
    #[must_use]
    pub fn programs_end(&self) -> u64 {
        self.dies.iter().map(|die| die.program_end).max().unwrap_or_default()
    }

    /// Mean time of a die's work, including accepted work that has not ended.
    #[must_use]
    pub fn busy(&self) -> u64 {
        self.busy / self.dies.len() as u64
    }
}
