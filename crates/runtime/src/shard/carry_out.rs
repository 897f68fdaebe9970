//! Carrying out the engine's decisions. Actions that can end at once do; the others end later.

use openraid_core::actions::{Data, Direction, Notice, NoticeKind, Transfer};
use openraid_sys::PoolRange;
use openraid_units::Bytes;

use super::{ServiceEvent, Shard};
use crate::export::Shared;
use crate::host_requests::{HostPayload, RequestOwner};
use crate::parity_jobs;

impl Shard {
    /// Carry out all actions, then forget them.
    pub(super) fn carry_out(&mut self) {
        self.issue_commands();
        let Shared { control, pool, .. } = &mut self.shared;
        for job in &self.actions.jobs {
            let verdict = parity_jobs::run(self.kernels, pool, job, self.actions.columns_of(job));
            control.job_done(job.tag, verdict);
        }
        for nth in 0..self.actions.transfers.len() {
            let transfer = self.actions.transfers[nth];
            match self.shared.hosts.get(transfer.token).owner {
                RequestOwner::Connection(key) => self.exports.transfer(key, &transfer, &mut self.shared),
                RequestOwner::Machine(key) => self.machines.transfer(key, &transfer, &mut self.shared),
                RequestOwner::Service(_) => own_transfer(&transfer, &mut self.shared),
            }
        }
        self.pass_replies_on();
        for nth in 0..self.actions.notices.len() {
            let notice = self.actions.notices[nth];
            self.follow_size(&notice);
            self.tell(ServiceEvent::Notice(notice));
        }
        self.news_lost += self.actions.notices_dropped;
        for reply in std::mem::take(&mut self.actions.admin) {
            self.on_admin_reply(reply);
        }
        self.actions.clear();
        let awaited = [self.exports.take_awaited_mark(), self.machines.take_awaited_mark()];
        awaited.into_iter().flatten().for_each(|array| self.tell(ServiceEvent::AwaitsMark(array)));
    }

    /// Clients that connect from now on are told the size that an array has now, and connected ones if they can be told.
    fn follow_size(&mut self, notice: &Notice) {
        if matches!(notice.kind, NoticeKind::ReshapeFinished | NoticeKind::CapacityLimited { .. }) {
            if let Some(status) = self.shared.control.status(notice.array) {
                self.exports.set_size(notice.array, status.capacity.bytes());
                self.machines.set_size(notice.array, status.capacity.bytes());
            }
        }
    }

    fn issue_commands(&mut self) {
        let Shared { control, pool, now, .. } = &mut self.shared;
        for command in &self.actions.drive {
            let metadata = match command.data {
                Data::Metadata(range) => self.actions.metadata_of(range),
                Data::Frames(_) | Data::None => &[],
            };
            self.drives.issue(command, metadata, pool, control, *now);
        }
    }

    fn pass_replies_on(&mut self) {
        for nth in 0..self.actions.replies.len() {
            let reply = self.actions.replies[nth];
            let host = self.shared.hosts.remove(reply.token);
            match host.owner {
                RequestOwner::Connection(key) if self.exports.holds(key, &host, &reply) => {
                    self.exports.hold(key, reply, host)
                }
                RequestOwner::Connection(key) => self.exports.reply(key, &reply, &host, &mut self.shared),
                RequestOwner::Machine(key) if self.machines.holds(key, &host, &reply) => {
                    self.machines.hold(key, reply, host)
                }
                RequestOwner::Machine(key) => self.machines.reply(key, &reply, &host),
                RequestOwner::Service(waiter) => {
                    let result = match reply.status {
                        openraid_core::actions::ReplyStatus::Ok => Ok(Vec::new()),
                        status => Err(status),
                    };
                    // The caller may have gone.
                    let _ = waiter.send(result);
                }
            }
        }
    }
}

/// A transfer of a request of the service itself.
fn own_transfer(transfer: &Transfer, shared: &mut Shared) {
    let range = PoolRange::new(transfer.at, Bytes(u64::from(transfer.len)));
    let (first, len) = (transfer.offset as usize, transfer.len as usize);
    let host = shared.hosts.get(transfer.token);
    let HostPayload::Own(bytes) = &mut host.payload else { panic!("bug: an own request without its bytes: {host:?}") };
    match transfer.direction {
        Direction::FromHost => shared.pool.slice_mut(range).copy_from_slice(&bytes[first..first + len]),
        Direction::ToHost => bytes[first..first + len].copy_from_slice(shared.pool.slice(range)),
    }
    if transfer.last && transfer.direction == Direction::ToHost {
        let host = shared.hosts.remove(transfer.token);
        if let (RequestOwner::Service(waiter), HostPayload::Own(bytes)) = (host.owner, host.payload) {
            // The caller may have gone.
            let _ = waiter.send(Ok(bytes));
        }
    }
    shared.control.transfer_done(transfer.tag, Ok(()));
}
