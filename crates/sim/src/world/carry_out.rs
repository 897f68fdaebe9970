//! Actions: taken from the controller, and carried out at their time.

use openraid_core::actions::{
    Data, Direction, DriveCommand, DriveOp, JobColumn, JobKind, ParityJob, ReplyStatus, Transfer,
};
use openraid_core::events::{Completion, HostGone, ParityVerdict};
use openraid_units::{PoolOffset, Tag};

use super::{InFlight, World};
use crate::bytes_in_flight::Ticket;
use crate::digest::fingerprint;
use crate::drive::memory::{Issue, Payload};
use crate::fault::planted::{Fate, PlantedBug};
use crate::parity_jobs;
use openraid_drives::VirtualDrive;

#[allow(clippy::cast_possible_truncation)] // the pool is in memory
fn range(at: PoolOffset, len: u64) -> std::ops::Range<usize> {
    at.get() as usize..(at.get() + len) as usize
}

impl World {
    /// Issue all actions of the controller, and clear its list.
    pub(super) fn issue_all(&mut self) {
        let mut actions = std::mem::take(&mut self.actions);
        for command in &actions.drive {
            let metadata = match command.data {
                Data::Metadata(range) => Some(actions.metadata_of(range)),
                Data::None | Data::Frames(_) => None,
            };
            self.issue_command(command, metadata);
        }
        for transfer in &actions.transfers {
            self.issue_transfer(transfer);
        }
        for job in &actions.jobs {
            self.issue_job(job, actions.columns_of(job));
        }
        for reply in &actions.replies {
            if !self.answered_early.remove(&reply.token) {
                self.finish(reply.token, reply.status);
            }
        }
        for answer in actions.admin.drain(..) {
            let waited = self.admin_waiting.remove(&answer.token);
            assert!(waited.is_some(), "an answer without a waiting request: {answer:?}");
            self.admin_answers.insert(answer.token, answer);
        }
        self.notices.extend(actions.notices.iter().copied());
        actions.clear();
        self.actions = actions;
    }

    /// A ticket for the next action. Tags are unique while their actions are under way, too.
    fn ticket(&mut self, tag: Tag) -> Ticket {
        let out = self.in_flight.values().any(|a| !matches!(a, InFlight::Answered(_)) && a.tag() == tag);
        assert!(!out, "{tag:?} is in flight already");
        self.next_ticket()
    }

    fn next_ticket(&mut self) -> Ticket {
        self.sequence += 1;
        self.sequence
    }

    fn issue_command(&mut self, command: &DriveCommand, metadata: Option<&[u8]>) {
        let mut command = *command;
        self.misdirect(&mut command);
        let drive = self.drives[command.drive.index()].as_ref().expect("commands go to drives that are there");
        let planted = self.planted.as_mut();
        match planted.map_or(Fate::Do, |planted| planted.command(drive, &mut command, metadata)) {
            Fate::Do => self.hand_to_drive(&command, metadata, true),
            Fate::DoWith(metadata) => self.hand_to_drive(&command, Some(&metadata), true),
            Fate::Pretend => self.pretend(command.tag),
            Fate::AnswerEarly => {
                self.pretend(command.tag);
                self.hand_to_drive(&command, metadata, false);
            }
        }
    }

    /// Send a command to another drive, if the planted bug does that.
    fn misdirect(&mut self, command: &mut DriveCommand) {
        let other = self.planted.as_mut().and_then(|planted| planted.other_drive(command, self.drives.len()));
        let Some(drive) = other.and_then(|other| self.drives[other].as_ref()) else { return };
        let (spec, end) = (drive.spec(), command.lba + command.len);
        let block = spec.block.sectors().get();
        let fits = end.get() <= spec.capacity.get() && (command.lba.get() | command.len.get()).is_multiple_of(block);
        let free = !drive.outstanding().any(|issued| issued.lba < end && command.lba < issued.lba + issued.len);
        if fits && free {
            command.drive = openraid_units::DriveId(u16::try_from(other.unwrap_or(0)).expect("a world has few drives"));
        }
    }

    fn pretend(&mut self, tag: Tag) {
        let ticket = self.ticket(tag);
        self.in_flight.insert(ticket, InFlight::Pretended(tag));
        let delay = self.spec.transfers.draw(&mut self.random);
        self.schedule(ticket, self.now + delay);
    }

    /// Issue a command to its drive. `is_reported` says whether the engine gets its end.
    fn hand_to_drive(&mut self, command: &DriveCommand, metadata: Option<&[u8]>, is_reported: bool) {
        let len = command.len.bytes().get();
        let ticket = if is_reported { self.ticket(command.tag) } else { self.next_ticket() };
        let drive = self.drives[command.drive.index()].as_mut().expect("commands go to drives that are there");
        let payload = match (command.op, command.data, metadata) {
            (DriveOp::Read, Data::Frames(at), _) => {
                self.claims.write(ticket, at, len);
                Payload::Read(&mut self.pool[range(at, len)])
            }
            (DriveOp::Write { .. }, Data::Frames(at), _) => {
                self.claims.read(ticket, at, len);
                Payload::Write(&self.pool[range(at, len)])
            }
            (DriveOp::Write { .. }, Data::Metadata(_), Some(bytes)) => {
                assert_eq!(bytes.len() as u64, len, "metadata and command differ in length: {command:?}");
                Payload::Write(bytes)
            }
            (DriveOp::Flush | DriveOp::Discard | DriveOp::WriteZeroes { .. }, Data::None, _) => Payload::None,
            _ => panic!("a command with the wrong kind of payload: {command:?}"),
        };
        let issue = drive.issue(command, payload);
        self.in_flight
            .insert(ticket, if is_reported { InFlight::Drive(*command) } else { InFlight::Answered(*command) });
        let now = self.now;
        match (issue, self.paces.get_mut(command.drive.index())) {
            (Issue::After(_), Some(Some(model))) if is_reported => model.submit(now, command),
            (Issue::After(time), _) => self.schedule(ticket, now + time),
            (Issue::Never, _) => self.expect_silence(command),
        }
    }

    fn issue_transfer(&mut self, transfer: &Transfer) {
        let (at, len) = (transfer.at, u64::from(transfer.len));
        let ticket = self.ticket(transfer.tag);
        match transfer.direction {
            Direction::FromHost => {
                self.claims.write(ticket, at, len);
                let junk = self.random.bits().to_le_bytes()[0];
                self.pool[range(at, len)].fill(junk);
            }
            Direction::ToHost => self.claims.read(ticket, at, len),
        }
        let delay = self.spec.transfers.draw(&mut self.random);
        let host = self.hosts.get_mut(&transfer.token);
        let host = host.unwrap_or_else(|| panic!("a transfer of a request that ended: {transfer:?}"));
        assert_eq!(u64::from(transfer.offset), host.issued, "transfers come in order: {transfer:?}");
        host.issued += len;
        assert!(host.issued <= host.request.len, "more than was asked for: {transfer:?}");
        // Transfers of a request are carried out in order, whatever their random times.
        let end = host.transfer_end.max(self.now + delay);
        host.transfer_end = end;
        self.in_flight.insert(ticket, InFlight::Transfer(*transfer));
        self.schedule(ticket, end);
    }

    fn issue_job(&mut self, job: &ParityJob, columns: &[JobColumn]) {
        // Several copies may be under way for one tag. They are counted, not distinguished.
        let ticket = if job.kind == JobKind::Copy { self.next_ticket() } else { self.ticket(job.tag) };
        parity_jobs::claim(ticket, job, columns, &mut self.claims);
        if job.kind == JobKind::Copy {
            // Jobs are carried out when they are issued, in this order. Only the completion is later.
            parity_jobs::run(self.kernels, &mut self.pool, job, columns);
            self.claims.drop_all(ticket);
        }
        self.spoil_outputs(job, columns);
        let inputs = self.hash_inputs(ticket);
        self.in_flight.insert(ticket, InFlight::Job(*job, columns.to_vec(), inputs));
        let delay = self.spec.jobs.draw(&mut self.random);
        self.schedule(ticket, self.now + delay);
    }

    /// Fill the outputs of a job with junk until the job writes them.
    fn spoil_outputs(&mut self, job: &ParityJob, columns: &[JobColumn]) {
        let junk = self.random.bits().to_le_bytes()[0];
        let len = u64::from(job.len);
        match job.kind {
            JobKind::Generate => {
                for at in [job.p, job.q].into_iter().flatten() {
                    self.pool[range(at, len)].fill(junk);
                }
            }
            JobKind::Recover { lost } => {
                for column in &columns[columns.len() - usize::from(lost)..] {
                    self.pool[range(column.at, len)].fill(junk);
                }
            }
            JobKind::Update | JobKind::Check | JobKind::Compare | JobKind::Checksum | JobKind::Copy => {}
        }
    }

    fn hash_inputs(&self, ticket: Ticket) -> u64 {
        let reads = self.claims.read_by(ticket);
        let bytes = |read: std::ops::Range<u64>| &self.pool[range(PoolOffset(read.start), read.end - read.start)];
        reads.fold(0, |before, read| fingerprint(before, bytes(read)))
    }

    /// Carry out an action at its time.
    pub(super) fn carry_out(&mut self, ticket: Ticket) -> Option<Completion> {
        let action = self.in_flight.remove(&ticket).expect("scheduled work is in flight");
        let answered = matches!(action, InFlight::Answered(_));
        let completion = match action {
            InFlight::Drive(command) | InFlight::Answered(command) => {
                let mut frames = match command.data {
                    Data::Frames(at) => Some(&mut self.pool[range(at, command.len.bytes().get())]),
                    Data::None | Data::Metadata(_) => None,
                };
                let drive = self.drives[command.drive.index()].as_mut().expect("the drive is there");
                let tag = command.tag;
                let mut result = drive.finish(tag, frames.as_deref_mut());
                if let Some(planted) = &mut self.planted {
                    result = planted.answer(command.op, result, frames);
                }
                Completion::Drive { tag, result }
            }
            InFlight::Pretended(tag) => Completion::Drive { tag, result: Ok(()) },
            InFlight::Transfer(transfer) => self.carry_out_transfer(&transfer),
            InFlight::Job(job, columns, inputs) => {
                assert_eq!(self.hash_inputs(ticket), inputs, "the inputs of a job changed while it ran: {job:?}");
                let asks = self.planted.as_ref().is_some_and(PlantedBug::asks_for_health);
                let degraded = asks && self.is_any_degraded();
                let left_out = self.planted.as_mut().is_some_and(|planted| planted.leaves_out(job.kind, degraded));
                let verdict = match job.kind {
                    JobKind::Copy => ParityVerdict::Done,
                    _ if left_out => ParityVerdict::Done,
                    _ => parity_jobs::run(self.kernels, &mut self.pool, &job, &columns),
                };
                let verdict = self.planted.as_ref().map_or(verdict, |planted| planted.verdict(job.kind, verdict));
                Completion::Job { tag: job.tag, verdict }
            }
        };
        self.claims.drop_all(ticket);
        (!answered).then_some(completion)
    }

    fn carry_out_transfer(&mut self, transfer: &Transfer) -> Completion {
        let (tag, len) = (transfer.tag, u64::from(transfer.len));
        let host = self.hosts.get_mut(&transfer.token);
        let host = host.unwrap_or_else(|| panic!("the request ended before its transfer: {transfer:?}"));
        let ends = transfer.last && transfer.direction == Direction::ToHost;
        if host.gone {
            if ends {
                self.finish(transfer.token, ReplyStatus::Offline);
            }
            return Completion::Transfer { tag, result: Err(HostGone) };
        }
        let frames = &mut self.pool[range(transfer.at, len)];
        let payload = &mut host.payload[transfer.offset as usize..][..transfer.len as usize];
        match transfer.direction {
            Direction::FromHost => frames.copy_from_slice(payload),
            Direction::ToHost => payload.copy_from_slice(frames),
        }
        let early = self.planted.as_ref().is_some_and(PlantedBug::answers_early);
        if ends {
            self.finish(transfer.token, ReplyStatus::Ok);
        } else if early && transfer.last {
            self.finish(transfer.token, ReplyStatus::Ok);
            self.answered_early.insert(transfer.token);
        }
        Completion::Transfer { tag, result: Ok(()) }
    }
}
