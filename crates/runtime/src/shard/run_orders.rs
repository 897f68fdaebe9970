//! Orders of other threads, carried out between rounds.

use openraid_core::actions::ReplyStatus;
use openraid_core::admin::{AdminCommand, AdminError, AdminOutcome, AdminReply};
use openraid_core::events::{BlockRequest, RequestKind};
use openraid_sys::{clock, ProcessSignal};
use openraid_units::{ArrayId, ArrayOffset, DriveId};

use super::drives::DriveView;
use super::order::{Answer, ArrayView, Order, OrderError, OwnRequest, ServiceEvent, ServiceStatus};
use super::Shard;
use crate::export::{check_offer, ExportCounters, Offer, Shared};
use crate::host_requests::{HostPayload, HostRequest, RequestOwner};
use crate::member::OpenedMember;
use crate::slab::SlabKey;

/// Callers that wait for an answer of the engine.
#[derive(Debug)]
pub(super) enum WaitingCaller {
    /// A caller, for the answer itself.
    Caller(Answer<Result<AdminOutcome, AdminError>>),
    /// A caller, for the drive to be attached.
    Attach(DriveId, Answer<Result<DriveId, OrderError>>),
    /// A caller, for the drive to be detached.
    Detach(DriveId, Answer<Result<(), OrderError>>),
    /// No caller: the driver itself told the engine of a drive that is gone.
    Lost,
    /// The stopping service.
    Stop(ArrayId),
    /// The stopping service waits for its journal. Closed or not, the journal was its last step.
    StopJournal,
}

impl Shard {
    pub(super) fn take_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            self.take_order(order);
        }
    }

    // An answer whose caller has gone is dropped everywhere below.
    fn take_order(&mut self, order: Order) {
        match order {
            Order::Accept(answer) => {
                self.accept();
                let _ = answer.send(());
            }
            Order::Attach(member, answer) => self.attach(*member, answer),
            Order::Detach(drive, answer) => {
                self.ask(AdminCommand::DetachDrive { drive }, WaitingCaller::Detach(drive, answer));
            }
            Order::LookForLost(answer) => {
                let lost = self.drives.take_lost();
                lost.iter().for_each(|drive| self.ask(AdminCommand::Lose { drive: *drive }, WaitingCaller::Lost));
                let _ = answer.send(lost);
            }
            Order::Admin(command, answer) => self.ask(*command, WaitingCaller::Caller(answer)),
            Order::PlanReshape(array, goal, joining, answer) => {
                let _ = answer.send(self.shared.control.plan_reshape(array, goal, &joining));
            }
            Order::Request(array, request, answer) => self.own_request(array, request, answer),
            Order::Offer(offer, answer) => {
                let _ = answer.send(self.offer(*offer));
            }
            Order::Withdraw(array, answer) => {
                self.withdraw(array);
                let _ = answer.send(());
            }
            Order::Retract(name, answer) => {
                self.exports.retract(&name);
                self.machines.retract(&name, &self.shared.epoll);
                let _ = answer.send(());
            }
            Order::Admit(array, answer) => {
                self.exports.admit(array);
                let _ = answer.send(());
            }
            Order::HoldWrites(array, answer) => {
                let _ = answer.send(self.hold_writes(array));
            }
            Order::PassWrites(array, answer) => {
                self.exports.pass_writes(array, &mut self.shared);
                self.machines.pass_writes(array);
                let _ = answer.send(());
            }
            Order::SetReadOnly(array, read_only, answer) => {
                self.set_read_only(array, read_only);
                let _ = answer.send(());
            }
            Order::SetHosts(array, hosts, answer) => {
                let _ = answer.send(self.exports.set_hosts(array, &hosts).map_err(OrderError::Export));
            }
            Order::SetPath(array, state, answer) => {
                let _ = answer.send(self.exports.set_path(array, state).map_err(OrderError::Export));
            }
            Order::Status(answer) => {
                let _ = answer.send(self.status());
            }
            Order::Trace(answer) => {
                let _ = answer.send(self.shared.control.trace());
            }
            Order::KeepSteps(count, answer) => {
                self.shared.control.keep_steps(count);
                let _ = answer.send(());
            }
            Order::Steps(answer) => {
                let _ = answer.send(self.shared.control.steps());
            }
            Order::Stop => self.begin_stop(),
        }
    }

    /// Answers to writes wait, unless the cache has dirty data: is it clean?
    fn hold_writes(&mut self, array: ArrayId) -> bool {
        let is_clean = self.shared.control.cache().is_none_or(|cache| cache.dirty.is_zero());
        if is_clean {
            self.exports.hold_writes(array);
            self.machines.hold_writes(array);
        }
        is_clean
    }

    fn accept(&mut self) {
        self.exports.accept(&self.shared.epoll);
        self.machines.accept(&self.shared.epoll);
    }

    pub(super) fn ask(&mut self, command: AdminCommand, waiting: WaitingCaller) {
        let token = self.waiting.insert(waiting).token();
        self.shared.control.admin(token, command);
    }

    fn attach(&mut self, member: OpenedMember, answer: Answer<Result<DriveId, OrderError>>) {
        let Shared { epoll, pool, now, .. } = &mut self.shared;
        match self.drives.attach(member, epoll, pool, *now) {
            Ok((drive, info)) => {
                self.ask(AdminCommand::AttachDrive { drive, info }, WaitingCaller::Attach(drive, answer));
            }
            Err((error, _)) => {
                let _ = answer.send(Err(OrderError::Attach(error)));
            }
        }
    }

    pub(super) fn on_admin_reply(&mut self, reply: AdminReply) {
        let Some(waiting) = self.waiting.remove(SlabKey::from_token(reply.token)) else {
            panic!("bug: an answer to a command that was not given: {reply:?}")
        };
        match waiting {
            WaitingCaller::Caller(answer) => {
                let _ = answer.send(reply.result);
            }
            WaitingCaller::Attach(drive, answer) => {
                if reply.result.is_err() {
                    self.let_go(drive);
                }
                let _ = answer.send(reply.result.map(|_| drive).map_err(OrderError::Refused));
            }
            WaitingCaller::Detach(drive, answer) => {
                if reply.result.is_ok() {
                    self.let_go(drive);
                }
                let _ = answer.send(reply.result.map(drop).map_err(OrderError::Refused));
            }
            WaitingCaller::Lost => {}
            WaitingCaller::Stop(array) => self.on_array_stopped(array, reply.result),
            WaitingCaller::StopJournal => self.ended = true,
        }
    }

    fn let_go(&mut self, drive: DriveId) {
        let Shared { epoll, pool, now, .. } = &mut self.shared;
        self.drives.detach(drive, epoll, pool, *now);
    }

    fn own_request(&mut self, array: ArrayId, request: OwnRequest, answer: Answer<Result<Vec<u8>, ReplyStatus>>) {
        let (kind, offset, len, payload) = match request {
            OwnRequest::Read { offset, len } => {
                (RequestKind::Read, offset, u64::from(len), HostPayload::Own(vec![0; len as usize]))
            }
            OwnRequest::Write { offset, bytes, fua } => {
                (RequestKind::Write { fua }, offset, bytes.len() as u64, HostPayload::Own(bytes))
            }
            OwnRequest::Flush => (RequestKind::Flush, 0, 0, HostPayload::None),
        };
        let offset = ArrayOffset(offset);
        let host = HostRequest { owner: RequestOwner::Service(answer), id: 0, kind, offset, len, payload, sent: 0 };
        let token = self.shared.hosts.insert(host).token();
        self.shared.control.submit(BlockRequest { token, array, kind, offset, len });
    }

    fn offer(&mut self, offer: Offer) -> Result<(), OrderError> {
        check_offer(&offer).map_err(OrderError::Export)?;
        if self.exports.offers(&offer.name) {
            return Err(OrderError::NameTaken(offer.name));
        }
        if self.shared.control.status(offer.array).is_none() {
            return Err(OrderError::NoSuchArray(offer.array));
        }
        self.machines.offer(&offer, &self.shared.epoll).map_err(OrderError::Export)?;
        let name = offer.name.clone();
        let offered = self.exports.offer(offer).map_err(OrderError::Export);
        if offered.is_err() {
            self.machines.retract(&name, &self.shared.epoll);
        }
        offered
    }

    fn withdraw(&mut self, array: ArrayId) {
        let names = self.exports.names_of(array);
        self.exports.withdraw(array, &mut self.shared);
        self.machines.withdraw(array, &names, &mut self.shared);
    }

    fn set_read_only(&mut self, array: ArrayId, read_only: bool) {
        self.exports.set_read_only(array, read_only);
        self.machines.set_read_only(array, read_only);
    }

    fn status(&self) -> ServiceStatus {
        let at = self.clock.at(clock::now());
        let arrays = self.shared.control.arrays().into_iter().filter_map(|array| {
            let status = self.shared.control.status(array)?;
            let protection = self.shared.control.protection(array);
            let exports = self.exports.names_of(array);
            let mut other_sizes = self.exports.other_sizes(array, status.capacity.bytes());
            other_sizes.extend(self.machines.other_sizes(array, status.capacity.bytes()).map(|told| (told, 1)));
            let clients = self.exports.clients(array) + self.machines.clients(array);
            let load = self.shared.control.host_load(array, at);
            let awaits_mark = self.exports.awaits_mark(array) || self.machines.awaits_mark(array);
            Some(ArrayView { status, protection, exports, clients, other_sizes, load, awaits_mark })
        });
        let drives = self.drives.views();
        let drives = drives.map(|view| DriveView { load: self.shared.control.drive_load(view.drive, at), ..view });
        ServiceStatus {
            arrays: arrays.collect(),
            drives: drives.collect(),
            exports: self.counters(),
            engine: self.drives.engine().description(),
            notes: self.notes.clone(),
            kernels: self.kernels.name(),
            cache: self.shared.control.cache(),
            journal: self.shared.control.journal(),
            at,
            worked: clock::thread_cpu(),
            looked: self.looked,
            rests: self.rests,
        }
    }

    /// Machines count as clients.
    fn counters(&self) -> ExportCounters {
        let counters = self.exports.counters();
        ExportCounters { connections: counters.connections + self.machines.len(), ..counters }
    }

    pub(super) fn on_signal(&mut self) {
        while let Some(signal) = self.signals.as_ref().and_then(openraid_sys::Signals::next_signal) {
            self.tell(ServiceEvent::Signal(signal));
            if matches!(signal, ProcessSignal::Interrupt | ProcessSignal::Terminate) {
                self.begin_stop();
            }
        }
    }
}
