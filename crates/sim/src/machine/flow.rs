//! The way of requests, commands, transfers and jobs through the machine.
//!
//! ```text
//!  submit -> worker -> processor -> engine -> processor -> [member way] -> [channel] -> drive
//!                                   engine <- [member way] <- [channel] <------------- drive
//!                                   engine -> parity engine -> engine
//!  done   <- worker <- host way <-- engine
//! ```
//!
//! A step that takes no time is not an event: it happens at once.

use openraid_core::actions::{Direction, DriveOp, IoClass, JobKind, ParityJob, ReplyStatus, Transfer};
use openraid_core::events::{BlockRequest, Completion, ParityVerdict, RequestKind};
use openraid_units::{ArrayOffset, Instant, Nanos, Tag, Token};

use super::calendar::CalendarEntry;
use super::member_station::Flight;
use super::write_admission::Passage;
use super::{HostIo, IoDone, IoKind, Machine};
use openraid_drives::VirtualDrive;

/// Limit of the bytes of a read for which it waits on its way to the host.
const WAITING_BYTES_MAX: u64 = 64 << 10;

/// Never examined: requests have no bytes.
const NO_SUM: ParityVerdict = ParityVerdict::Checksum(0);

/// An event in a part that is not a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(super) enum PartEvent {
    /// A thread has a request ready: it goes to the controller's processor.
    Arrive,
    /// The controller's processor has processed a request: the engine gets it.
    Enter,
    /// The stage of redundancy is free for a write: the engine gets the write.
    Staged,
    /// A thread knows that its request has ended.
    Ended,
    /// A transfer of payload has ended.
    Moved,
    /// A transfer of payload has ended, and its request ends with it.
    MovedLast,
    /// A computation is done.
    Computed,
    /// A comparison has ended: the data matches.
    Matched,
    /// A checksum is computed.
    Summed,
    /// The first write on the member way has reached its drive.
    Reached,
    /// The end of a command, or its data, has reached the controller.
    Answered,
}

/// An event is for a request slot or for a tag; the other field has no meaning. The fields are separate numbers. An
/// enum with data would be copied as a whole soon after its parts were written, and the copy would stall.
#[derive(Clone, Copy, Debug)]
pub(super) struct MachineEvent {
    what: PartEvent,
    slot: u32,
    tag: Tag,
}

impl MachineEvent {
    /// The value for no event.
    pub const NONE: Self = Self::of(PartEvent::Arrive, u32::MAX);

    pub const fn of(what: PartEvent, slot: u32) -> Self {
        Self { what, slot, tag: Tag(0) }
    }

    const fn tagged(what: PartEvent, tag: Tag) -> Self {
        Self { what, slot: 0, tag }
    }
}

/// A request in the machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inside {
    pub io: HostIo,
    pub status: ReplyStatus,
    /// Its time on its thread, in each direction.
    pub host: Nanos,
}

impl<D: VirtualDrive> Machine<D> {
    /// The work of a station at this moment. The stations of drives precede those of the lines.
    #[inline]
    pub(super) fn happen(&mut self, station: usize, due: CalendarEntry, done: &mut Vec<IoDone>) {
        if station < self.stations.len() {
            self.drive_moves(station);
            return;
        }
        let line = station - self.stations.len();
        while let Some(event) = self.lines.pop(&mut self.calendar, line, due) {
            self.events += 1;
            self.handle(event, done);
            if self.lines.earliest(&self.calendar) > due {
                break;
            }
        }
    }

    #[inline]
    fn handle(&mut self, MachineEvent { what, slot, tag }: MachineEvent, done: &mut Vec<IoDone>) {
        match what {
            PartEvent::Arrive => self.arrive(slot),
            PartEvent::Enter => self.stage(slot),
            PartEvent::Staged => self.enter(slot),
            PartEvent::Ended => self.tell_host(slot, done),
            PartEvent::Moved => self.complete(Completion::Transfer { tag, result: Ok(()) }),
            PartEvent::MovedLast => {
                self.complete(Completion::Transfer { tag, result: Ok(()) });
                self.request_ended(slot, ReplyStatus::Ok, done);
            }
            PartEvent::Computed => self.complete(Completion::Job { tag, verdict: ParityVerdict::Done }),
            PartEvent::Matched => self.complete(Completion::Job { tag, verdict: ParityVerdict::Match }),
            PartEvent::Summed => self.complete(Completion::Job { tag, verdict: NO_SUM }),
            PartEvent::Reached => self.reached(),
            PartEvent::Answered => self.complete(Completion::Drive { tag, result: Ok(()) }),
        }
    }

    /// The first write on the member way has reached its drive.
    fn reached(&mut self) {
        let command = self.on_way.front().expect("a write is on the way");
        self.stations[command.drive.index()].reached(&mut self.calendar, self.now, command);
        self.on_way.pop_front();
    }

    fn complete(&mut self, completion: Completion) {
        self.controller.complete(completion);
        self.stirred = true;
    }

    /// A request reaches the controller: its processor handles it first.
    fn arrive(&mut self, slot: u32) {
        let cost = &self.parts.processor;
        let io = &self.inside[slot as usize].io;
        let work = if io.kind == IoKind::Write { cost.write } else { cost.read };
        let work = work + Nanos(cost.kib.0 * u64::from(io.len) / 1024);
        let time = if self.nested { work + cost.nested } else { work };
        if self.processor_is_free {
            self.enter(slot);
            return;
        }
        let at = self.processor.take(self.now, time);
        self.push(self.line.processor, at, MachineEvent::of(PartEvent::Enter, slot));
    }

    /// Pass a write through the stage before the cache, if the array is redundant. The write enters the engine when the
    /// stage is free, and then occupies the stage for its own time. A write that follows soon has to wait.
    fn stage(&mut self, slot: u32) {
        let time = self.stage_time(&self.inside[slot as usize].io);
        if time == Nanos::ZERO {
            self.enter(slot);
            return;
        }
        let begin = Instant(self.stage.take(self.now, time).0 - time.0);
        self.push(self.line.stage, begin, MachineEvent::of(PartEvent::Staged, slot));
    }

    /// The time of a request in the stage: it depends on the stripes that the request fills in part, and on its bytes
    /// in them.
    fn stage_time(&self, io: &HostIo) -> Nanos {
        let (picos, each) = (self.parts.redundancy_stage, self.parts.partial_stripe);
        if io.kind != IoKind::Write || (picos == 0 && each == Nanos::ZERO) {
            return Nanos::ZERO;
        }
        let (stripes, bytes) = partly_filled(io, self.parts.stripe.get());
        let mut time = Nanos(bytes * picos / 1000) + Nanos(each.0 * stripes);
        if self.nested && picos > 0 && bytes > 0 {
            time += self.parts.processor.nested;
        }
        time
    }

    fn enter(&mut self, slot: u32) {
        if self.door.enter(slot, self.inside[slot as usize].io.offset) {
            self.go_in(slot);
        }
    }

    /// The request has a slot of the controller.
    fn go_in(&mut self, slot: u32) {
        let io = self.inside[slot as usize].io;
        let passage = self.gate.look(&io, self.now);
        if passage == Passage::Held {
            if self.gate.arrive(slot) {
                self.next_part();
            }
            return;
        }
        let kind = match io.kind {
            IoKind::Read => RequestKind::Read,
            IoKind::Write => RequestKind::Write { fua: passage == Passage::Through },
            IoKind::Flush => RequestKind::Flush,
        };
        let (offset, len) = if io.kind == IoKind::Flush { (0, 0) } else { (io.offset, u64::from(io.len)) };
        self.give_to_engine(slot, kind, offset, len);
    }

    fn give_to_engine(&mut self, slot: u32, kind: RequestKind, offset: u64, len: u64) {
        let (array, offset) = self.place(offset);
        let request = BlockRequest { token: Token(u64::from(slot)), array, kind, offset: ArrayOffset(offset), len };
        self.controller.submit(request).expect("the door lets no more in than the engine takes");
        self.stirred = true;
    }

    /// The next chunk of the write at the gate.
    fn next_part(&mut self) {
        if let Some((slot, done)) = self.gate.at_gate() {
            let io = self.inside[slot as usize].io;
            let offset = io.offset + done;
            let len = (u64::from(io.len) - done).min(self.chunk - offset % self.chunk);
            self.gate.went_in(len, offset + len);
            self.give_to_engine(slot, RequestKind::Write { fua: true }, offset, len);
        }
    }

    /// The engine has ended a request.
    fn request_ended(&mut self, slot: u32, status: ReplyStatus, done: &mut Vec<IoDone>) {
        if self.gate.is_at(slot) {
            if status == ReplyStatus::Ok && self.gate.has_more(u64::from(self.inside[slot as usize].io.len)) {
                self.next_part();
                return;
            }
            self.gate.leave(self.now);
            self.next_part();
        }
        self.inside[slot as usize].status = status;
        let io = self.inside[slot as usize].io;
        if let Some(next) = self.door.leave(io.offset) {
            self.go_in(next);
        }
        let worker = self.worker(io.worker);
        let time = self.inside[slot as usize].host + self.payload_cost(&io, IoKind::Read);
        if self.host_is_free {
            self.tell_host(slot, done);
            return;
        }
        let (server, line) = self.workers[worker].places();
        let at = self.host_servers[server].take(self.now, time);
        self.push(line, at, MachineEvent::of(PartEvent::Ended, slot));
    }

    /// The host's time for the payload, for requests of this kind.
    pub(super) fn payload_cost(&self, io: &HostIo, way: IoKind) -> Nanos {
        if io.kind == way {
            Nanos(self.parts.host.kib.0 * u64::from(io.len) / 1024)
        } else {
            Nanos::ZERO
        }
    }

    fn tell_host(&mut self, slot: u32, done: &mut Vec<IoDone>) {
        let Inside { io, status, .. } = self.inside[slot as usize];
        let worker = self.worker(io.worker);
        self.workers[worker].asked -= 1;
        self.free.push(slot);
        let (kind, bytes) = match io.kind {
            IoKind::Read => (0, Some(0)),
            IoKind::Write => (1, Some(1)),
            IoKind::Flush => (2, None),
        };
        self.requests[kind] += 1;
        if let Some(direction) = bytes {
            self.bytes[direction] += u64::from(io.len);
        }
        done.push(IoDone { id: io.id, at: self.now, status });
    }

    /// Run the engine and begin its actions.
    pub(super) fn engine_moves(&mut self, done: &mut Vec<IoDone>) {
        (self.stirred, self.engine_moved) = (false, true);
        self.actions.clear();
        self.controller.advance(self.now, &mut self.actions);
        if let Some(digest) = &mut self.digest {
            digest.advance(self.now, &self.actions);
        }
        if let Some(journal) = &self.journal {
            journal.order(&mut self.actions.drive);
        }
        for at in 0..self.actions.drive.len() {
            self.issue(at);
        }
        for at in 0..self.actions.transfers.len() {
            let transfer = self.actions.transfers[at];
            self.transfer(&transfer, done);
        }
        for at in 0..self.actions.jobs.len() {
            let job = self.actions.jobs[at];
            self.compute(&job);
        }
        for at in 0..self.actions.replies.len() {
            let reply = self.actions.replies[at];
            let slot = u32::try_from(reply.token.0).expect("tokens are slots");
            self.request_ended(slot, reply.status, done);
        }
    }

    /// A command to a member: the processor handles it, then it moves to the member, for a write together with its
    /// data.
    fn issue(&mut self, number: usize) {
        let command = &mut self.actions.drive[number];
        if let (DriveOp::Write { fua }, false) = (&mut command.op, self.parts.through_below.is_zero()) {
            // Drives may cache writes that the controller does not cache.
            *fua = false;
        }
        let command = &*command;
        let drive = command.drive.index();
        let bytes = command.len.bytes().get();
        let (reads, writes) = (command.op == DriveOp::Read, matches!(command.op, DriveOp::Write { .. }));
        // The journal's commands are metadata, too, but the journal counts them as its work.
        let journal = self.journal.as_mut().filter(|journal| journal.is_at(drive));
        let metadata = command.class == IoClass::Metadata && journal.is_none();
        if let Some(journal) = journal {
            journal.begins(self.now);
        }
        self.stations[drive].count(command, metadata);
        let index = command.tag.index() as usize;
        if index >= self.flights.len() {
            self.flights.resize(index + 1, Flight::default());
        }
        let moved = u32::try_from(if reads { bytes } else { 0 }).expect("a command is small");
        self.flights[index] = Flight { drive: command.drive.0, bytes: moved };
        if writes {
            self.memory.pass(self.now, bytes);
        }
        let mut at = self.now;
        let cost = if metadata { Nanos::ZERO } else { self.parts.processor.command };
        if !self.processor_is_free {
            at = self.processor.take(at, cost);
        }
        if writes && !self.member_ways.is_free() {
            at = self.member_ways.write(at, bytes);
            if self.stations[drive].expect(at) {
                self.on_way.push_back(*command);
                return self.push(self.line.to_members, at, MachineEvent::of(PartEvent::Reached, 0));
            }
        }
        // Commands without payload arrive in the order in which the processor releases them.
        let last = !writes || self.member_ways.is_free();
        self.events += self.stations[drive].arrive(&mut self.calendar, at, command, last);
    }

    /// Advance a drive: commands end, others begin.
    fn drive_moves(&mut self, number: usize) {
        self.ended.clear();
        let station = &mut self.stations[number];
        self.events += station.moves(&mut self.calendar, &mut self.channels, self.now, &mut self.ended);
        for at in 0..self.ended.len() {
            self.answered_by_drive(self.ended[at]);
        }
    }

    /// A drive has ended a command: the data of a read returns through the channel and the member way.
    fn answered_by_drive(&mut self, tag: Tag) {
        let flight = self.flights[tag.index() as usize];
        let bytes = u64::from(flight.bytes);
        self.memory.pass(self.now, bytes);
        if let Some(journal) = self.journal.as_mut().filter(|journal| journal.is_at(flight.drive.into())) {
            journal.ends(self.now);
        }
        let channel = self.stations[usize::from(flight.drive)].channel();
        if let (Some(channel), true) = (channel, bytes > 0) {
            let at = self.channels[channel].read(self.now, bytes);
            self.push(self.line.channels + channel, at, MachineEvent::tagged(PartEvent::Answered, tag));
            return;
        }
        if bytes > 0 && !self.member_ways.is_free() {
            let at = self.member_ways.read(self.now, bytes);
            self.push(self.line.members, at, MachineEvent::tagged(PartEvent::Answered, tag));
            return;
        }
        self.complete(Completion::Drive { tag, result: Ok(()) });
    }

    /// Payload between host and controller.
    fn transfer(&mut self, transfer: &Transfer, done: &mut Vec<IoDone>) {
        let reads = transfer.direction == Direction::ToHost;
        let ends = (transfer.last && reads).then(|| u32::try_from(transfer.token.0).expect("tokens are slots"));
        if self.host_ways.is_free() && self.parts.memory == 0 {
            self.complete(Completion::Transfer { tag: transfer.tag, result: Ok(()) });
            if let Some(slot) = ends {
                self.request_ended(slot, ReplyStatus::Ok, done);
            }
            return;
        }
        let bytes = u64::from(transfer.len);
        let memory = self.memory.pass(self.now, bytes);
        let (at, line) = if reads {
            let io = self.inside[usize::try_from(transfer.token.0).expect("tokens are slots")].io;
            let alone = self.workers[usize::from(io.worker)].asked == 1;
            let waits = if alone { self.parts.read_kib.0 * bytes.min(WAITING_BYTES_MAX) / 1024 } else { 0 };
            let at = (self.host_ways.read(self.now, bytes) + Nanos(waits)).max(self.to_host_last).max(memory);
            self.to_host_last = at;
            (at, self.line.to_host)
        } else {
            (self.host_ways.write(self.now, bytes).max(memory), self.line.from_host)
        };
        let (what, slot) = ends.map_or((PartEvent::Moved, 0), |slot| (PartEvent::MovedLast, slot));
        self.push(line, at, MachineEvent { what, slot, tag: transfer.tag });
    }

    fn compute(&mut self, job: &ParityJob) {
        let (columns, len) = (u64::from(job.columns_len), u64::from(job.len));
        if job.kind == JobKind::Copy {
            if self.parts.copy_picos == 0 {
                self.complete(Completion::Job { tag: job.tag, verdict: ParityVerdict::Done });
                return;
            }
            let at = self.parity.take(self.now, Nanos(columns * len * self.parts.copy_picos / 1000));
            self.push(self.line.parity, at, MachineEvent::tagged(PartEvent::Computed, job.tag));
            return;
        }
        let (what, verdict) = match job.kind {
            JobKind::Check | JobKind::Compare => (PartEvent::Matched, ParityVerdict::Match),
            JobKind::Checksum => (PartEvent::Summed, NO_SUM),
            JobKind::Generate | JobKind::Update | JobKind::Recover { .. } | JobKind::Copy => {
                (PartEvent::Computed, ParityVerdict::Done)
            }
        };
        let syndromes = u64::from(job.p.is_some()) + u64::from(job.q.is_some());
        let inputs = match job.kind {
            // Old and new bytes of each column, and the old syndromes.
            JobKind::Update => 2 * columns + syndromes,
            _ => columns,
        };
        let bytes = inputs * len;
        self.parity_jobs += 1;
        self.parity_bytes += bytes;
        self.memory.pass(self.now, bytes + syndromes * len);
        let cost = self.parts.parity;
        let mut time = cost.setup.0 + self.set_members * cost.member.0 + bytes * cost.picos / 1000;
        if job.q.is_some() {
            time = time * cost.second_percent / 100;
        }
        if time == 0 && self.parts.copy_picos == 0 {
            self.complete(Completion::Job { tag: job.tag, verdict });
            return;
        }
        let at = self.parity.take(self.now, Nanos(time));
        self.push(self.line.parity, at, MachineEvent::tagged(what, job.tag));
    }

    #[inline]
    pub(super) fn push(&mut self, line: usize, at: Instant, event: MachineEvent) {
        self.lines.push(&mut self.calendar, line, at, event);
    }
}

/// The number of stripes that a write fills in part (its first, its last, or the only one), and its bytes in them.
fn partly_filled(io: &HostIo, stripe: u64) -> (u64, u64) {
    let (start, len) = (io.offset, u64::from(io.len));
    let (whole_from, whole_to) = (start.next_multiple_of(stripe), (start + len) / stripe * stripe);
    if whole_from > whole_to {
        return (1, len);
    }
    let (head, tail) = (whole_from - start, start + len - whole_to);
    (u64::from(head > 0) + u64::from(tail > 0), head + tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_fills_its_first_and_its_last_stripe_in_part() {
        let at = |offset, len| partly_filled(&HostIo { id: 0, kind: IoKind::Write, offset, len, worker: 0 }, 100);
        assert_eq!(at(0, 100), (0, 0));
        assert_eq!(at(100, 300), (0, 0));
        assert_eq!(at(10, 20), (1, 20));
        assert_eq!(at(10, 90), (1, 90));
        assert_eq!(at(0, 90), (1, 90));
        assert_eq!(at(90, 20), (2, 20));
        assert_eq!(at(90, 320), (2, 20));
        assert_eq!(at(100, 210), (1, 10));
    }
}
