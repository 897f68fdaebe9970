//! A member in the machine: commands on their way to the drive, the channel, and the drive itself.

use std::collections::VecDeque;

use openraid_core::actions::{DriveCommand, DriveOp};
use openraid_units::{DriveLba, Instant, Nanos, Sectors, Tag};

use super::calendar::Calendar;
use super::counters::MemberCounters;
use super::parts::WayCost;
use super::queue_server::{BytePath, TransferCost, WorkServer};
use openraid_drives::{CommandCounts, VirtualDrive};

fn take_due(line: &mut VecDeque<(Instant, DriveCommand)>, now: Instant) -> Option<DriveCommand> {
    if line.front()?.0 > now {
        return None;
    }
    line.pop_front().map(|(_, command)| command)
}

/// A command that a drive has, or will get.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Flight {
    pub drive: u16,
    /// Bytes that the drive returns.
    pub bytes: u32,
}

/// Two directions, and a part that both may share.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    read: BytePath,
    write: BytePath,
    shared: Option<(WorkServer, TransferCost)>,
    free: bool,
}

impl Ways {
    pub fn new(cost: &WayCost) -> Self {
        Self {
            read: BytePath::new(cost.read),
            write: BytePath::new(cost.write),
            shared: cost.shared.map(|rate| (WorkServer::default(), rate)),
            free: cost.read.is_free() && cost.write.is_free() && cost.shared.is_none(),
        }
    }
    pub fn is_free(&self) -> bool {
        self.free
    }
    pub fn read(&mut self, now: Instant, bytes: u64) -> Instant {
        self.read.take(now, bytes, self.shared.as_mut().map(|(server, rate)| (server, *rate)))
    }
    pub fn write(&mut self, now: Instant, bytes: u64) -> Instant {
        self.write.take(now, bytes, self.shared.as_mut().map(|(server, rate)| (server, *rate)))
    }
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }
    /// Time for which each direction worked, without the shared part.
    pub fn own_busy(&self) -> [Nanos; 2] {
        [self.read.busy(), self.write.busy()]
    }
    /// Time for which each direction worked; the time of the shared part if there is one.
    pub fn busy(&self) -> [Nanos; 2] {
        match &self.shared {
            Some((server, _)) => [server.busy(); 2],
            None => self.own_busy(),
        }
    }
}

/// See the module header.
#[derive(Debug)]
pub(super) struct Station<D> {
    drive: D,
    sectors: u64,
    number: usize,
    channel: Option<usize>,
    /// Commands on their way to the channel, or to the drive if there is no channel.
    coming: VecDeque<(Instant, DriveCommand)>,
    /// Number of writes on the member way that are alone on their way to this drive, and when the last of them arrives.
    expected: u32,
    expected_last: Instant,
    /// Commands on their way through the channel.
    wire: VecDeque<(Instant, DriveCommand)>,
    /// The time of the drive's next event.
    due: Instant,
    counters: MemberCounters,
}

impl<D: VirtualDrive> Station<D> {
    pub fn new(drive: D, calendar: &mut Calendar, channel: Option<usize>) -> Self {
        Self {
            sectors: drive.sectors(),
            drive,
            number: calendar.add(),
            channel,
            coming: VecDeque::new(),
            expected: 0,
            expected_last: Instant::ZERO,
            wire: VecDeque::new(),
            due: Instant::NEVER,
            counters: MemberCounters::default(),
        }
    }
    pub fn sectors(&self) -> u64 {
        self.sectors
    }
    pub fn channel(&self) -> Option<usize> {
        self.channel
    }
    pub fn counters(&self, now: Instant) -> MemberCounters {
        let MemberCounters { reads, writes, sectors_read, sectors_written, .. } = self.counters;
        let given = CommandCounts { reads, writes, sectors_read, sectors_written };
        let (busy, passing, held) = (self.drive.busy(now), self.drive.passing(&given), self.drive.held(now));
        MemberCounters { busy, passing, held, ..self.counters }
    }

    /// Count a command; commands for the array's metadata are counted separately.
    pub fn count(&mut self, command: &DriveCommand, metadata: bool) {
        let counters = &mut self.counters;
        let sectors = command.len.get();
        match command.op {
            _ if metadata => counters.metadata += 1,
            DriveOp::Read => {
                counters.reads += 1;
                counters.sectors_read += sectors;
            }
            DriveOp::Write { .. } => {
                counters.writes += 1;
                counters.sectors_written += sectors;
            }
            DriveOp::Flush | DriveOp::Discard | DriveOp::WriteZeroes { .. } => counters.others += 1,
        }
    }

    /// A command will arrive at `at`. A command without payload may overtake one that waits for the way. `last` says
    /// that no later command can arrive before this one. Returns the number of events that happened.
    pub fn arrive(&mut self, calendar: &mut Calendar, at: Instant, command: &DriveCommand, last: bool) -> u64 {
        let alone = self.coming.is_empty() && self.channel.is_none() && self.expected == 0;
        if last && alone && self.due > at {
            // The drive does nothing visible until then, so it may get the command now.
            self.give(at, command);
            self.schedule(calendar);
            return 1;
        }
        if self.coming.back().is_none_or(|(last, _)| *last <= at) {
            self.coming.push_back((at, *command));
        } else {
            let behind = self.coming.iter().rev().take_while(|(other, _)| *other > at).count();
            self.coming.insert(self.coming.len() - behind, (at, *command));
        }
        self.schedule(calendar);
        0
    }

    /// Whether a write that will arrive at `at` may arrive without an event of this station. It may if all commands on
    /// their way are such writes: they arrive one after the other.
    pub fn expect(&mut self, at: Instant) -> bool {
        let alone = self.coming.is_empty() && self.channel.is_none();
        if alone {
            self.expected += 1;
            self.expected_last = at;
        }
        alone
    }

    /// An expected write has arrived.
    pub fn reached(&mut self, calendar: &mut Calendar, now: Instant, command: &DriveCommand) {
        self.expected -= 1;
        self.give(now, command);
        self.schedule(calendar);
    }

    /// The arrival of the first queued command; never if an expected write arrives at that time or later.
    fn coming_at(&self) -> Instant {
        match self.coming.front() {
            Some((at, _)) if self.expected == 0 || *at < self.expected_last => *at,
            _ => Instant::NEVER,
        }
    }

    fn schedule(&mut self, calendar: &mut Calendar) {
        self.due = self.drive.next().unwrap_or(Instant::NEVER);
        let mut next = self.due;
        if !self.coming.is_empty() {
            next = next.min(self.coming_at());
        }
        if self.channel.is_some() {
            next = self.wire.front().map_or(next, |(at, _)| next.min(*at));
        }
        calendar.set(self.number, next);
    }

    /// Advance to `now`. The drive's ended commands are added to `ended`. Returns the number of events that happened.
    pub fn moves(&mut self, calendar: &mut Calendar, channels: &mut [Ways], now: Instant, ended: &mut Vec<Tag>) -> u64 {
        let mut moved = 0;
        if self.due <= now {
            self.drive.advance(now, ended);
            moved += 1;
        }
        while self.coming_at() <= now {
            let Some((_, command)) = self.coming.pop_front() else { break };
            moved += 1;
            let Some(channel) = self.channel else {
                self.give(now, &command);
                continue;
            };
            let bytes = if command.op == DriveOp::Read { 0 } else { command.len.bytes().get() };
            let at = channels[channel].write(now, bytes);
            self.wire.push_back((at, command));
        }
        if self.channel.is_some() {
            while let Some(command) = take_due(&mut self.wire, now) {
                moved += 1;
                self.give(now, &command);
            }
        }
        self.schedule(calendar);
        moved
    }

    /// The drive gets a command. A command beyond the end of the drive (the array's metadata) is moved to the end.
    fn give(&mut self, now: Instant, command: &DriveCommand) {
        let sectors = self.sectors;
        if command.lba.get() + command.len.get() <= sectors {
            self.drive.submit(now, command);
            return;
        }
        let len = command.len.get().min(sectors);
        let command = DriveCommand { lba: DriveLba(sectors - len), len: Sectors(len), ..*command };
        self.drive.submit(now, &command);
    }
}
