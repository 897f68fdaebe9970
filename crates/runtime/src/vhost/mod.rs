//! Disks of virtual machines: sockets, one for each array, and the machines at them (vhost-user-blk).
//!
//! ```text
//!  socket --messages--> Session            rings in the machine's memory --steps--> engine
//!                          |                         ^                                |
//!                          +-- mappings, events      +--- copies, ends, one event <---+
//! ```
//!
//! Requests, payload and answers are in the machine's memory, so nothing waits here for a client: a copy is done when the engine
//! asks for it. It must never look at one machine's rings without end, and never keep or close a file of a machine that has gone: a thread
//! closes those.

mod closer;
mod machine;
mod platform;
mod refusals;

use std::collections::VecDeque;
use std::path::PathBuf;

use openraid_core::actions::{Direction, Reply, ReplyStatus, Transfer};
use openraid_core::events::{BlockRequest, HostGone, RequestKind};
use openraid_sys::{Accepted, Epoll, Errno, Events, InheritedListener, Interest, ListenPlace, Listener, PoolRange};
use openraid_units::{ArrayId, ArrayOffset, Bytes, Instant, Token};
use openraid_vhost::{BlockCommand, DiskCommandKind, DiskOutcome, RequestId, RingStep};

use crate::export::{HeldAnswers, Offer, OfferError, Shared};
use crate::host_requests::{HostPayload, HostRequest, RequestOwner};
use crate::limits::{
    ACCEPTS_PER_ROUND_MAX, ACCEPT_PAUSE, CONNECTION_REQUESTS_MAX, HANDSHAKE_TIME_MAX, MACHINES_MAX,
    MACHINES_PER_ARRAY_MAX, MACHINE_MESSAGES_PER_ROUND_MAX, MACHINE_STEPS_PER_ROUND_MAX,
};
use crate::slab::{GrowingSlab, SlabKey};
use closer::{Closer, FileBudget};
use machine::{GuestMachine, GuestSocket, MachineEnd};
use refusals::Refusals;

/// Kernel events for this side have one of these in the top byte of their token: a socket to connect to, the socket of a machine,
/// the kicks of a machine.
pub const VHOST_LISTENER_CLASS: u64 = 7 << 56;
/// See [`VHOST_LISTENER_CLASS`].
pub const VHOST_SOCKET_CLASS: u64 = 8 << 56;
/// See [`VHOST_LISTENER_CLASS`].
pub const VHOST_KICKS_CLASS: u64 = 9 << 56;

/// Where the sockets are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VhostPlace {
    /// In this folder, one for each array: `NAME.sock`.
    Folder(PathBuf),
    /// The socket of one array.
    Socket {
        /// The name of the array.
        array: String,
        /// The socket.
        path: PathBuf,
    },
}

impl VhostPlace {
    /// The socket of an array here. A name that is no name of a file has none in a folder.
    #[must_use]
    pub fn socket_of(&self, name: &str) -> Option<PathBuf> {
        match self {
            Self::Folder(folder) => {
                let is_plain = !name.is_empty() && !name.contains(['/', '\0']);
                is_plain.then(|| folder.join(format!("{name}.sock")))
            }
            Self::Socket { array, path } => (array == name).then(|| path.clone()),
        }
    }

    /// The socket that another process can keep here: a folder has only those of the arrays that have started.
    #[must_use]
    pub fn as_kept(&self) -> Option<ListenPlace> {
        match self {
            Self::Folder(_) => None,
            Self::Socket { path, .. } => Some(ListenPlace::Unix(path.clone())),
        }
    }
}

/// The socket of an array.
#[derive(Debug)]
struct Door {
    listener: Listener,
    path: PathBuf,
    /// The name of the array. Machines are disconnected while it is not offered.
    name: String,
    /// Another process keeps the socket, so it stays.
    is_kept: bool,
}

/// All virtual machines of a shard.
#[derive(Debug)]
pub struct Machines {
    places: Vec<VhostPlace>,
    doors: GrowingSlab<Door>,
    table: GrowingSlab<GuestMachine>,
    /// Made with the first socket.
    closer: Option<Closer>,
    /// Machines that have said nothing, oldest first, and when their time ends.
    silent: VecDeque<(Instant, SlabKey)>,
    /// Machines whose rings are to be looked at.
    busy: Vec<SlabKey>,
    /// Machines with requests that ended.
    dirty: Vec<SlabKey>,
    held: HeldAnswers,
    is_accepting: bool,
    /// The end of a pause after descriptors ran out.
    rests_until: Option<Instant>,
    refusals: Refusals,
    /// Memory for the events of one set of kicks.
    kicks: Events,
}

impl Machines {
    /// With the sockets that another process keeps. The others are made with the offers.
    ///
    /// # Errors
    /// The kernel has no room for one more thing to wait for.
    pub fn new(places: Vec<VhostPlace>, kept: Vec<InheritedListener>, epoll: &Epoll) -> Result<Self, Errno> {
        let mut machines = Self {
            places,
            doors: GrowingSlab::default(),
            table: GrowingSlab::default(),
            closer: None,
            silent: VecDeque::new(),
            busy: Vec::new(),
            dirty: Vec::new(),
            held: HeldAnswers::default(),
            is_accepting: false,
            rests_until: None,
            refusals: Refusals::default(),
            kicks: Events::new(),
        };
        for InheritedListener { listener, place } in kept {
            let named = machines.places.iter().find(|known| known.as_kept().as_ref() == Some(&place));
            if let Some(VhostPlace::Socket { array, path }) = named.cloned() {
                machines.add_door(Door { listener, path, name: array, is_kept: true }, epoll)?;
            }
        }
        Ok(machines)
    }

    /// Take connections from now on.
    pub fn accept(&mut self, epoll: &Epoll) {
        self.is_accepting = true;
        self.watch_doors(Interest::READ, epoll);
    }

    fn watch_doors(&self, interest: Interest, epoll: &Epoll) {
        for (key, door) in self.doors.iter() {
            // It was added, so the kernel has room for it.
            let _ = epoll.modify(&door.listener, VHOST_LISTENER_CLASS | key.token().0, interest);
        }
    }

    /// The time of the next call of [`Machines::on_time`].
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.rests_until.into_iter().chain(self.silent.front().map(|(until, _)| *until)).min()
    }

    /// Take connections again after a pause, and disconnect machines that never said anything.
    pub fn on_time(&mut self, shared: &Shared) {
        if self.rests_until.take_if(|until| *until <= shared.now).is_some() {
            self.watch_doors(Interest::READ, &shared.epoll);
        }
        while let Some((_, key)) = self.silent.front().copied().filter(|(until, _)| *until <= shared.now) {
            let seconds = HANDSHAKE_TIME_MAX.as_secs();
            self.end(key, MachineEnd::Broken(format!("it has said nothing for {seconds} s")), shared);
        }
    }

    /// Make the sockets of an offer: all, or none. Machines are disconnected while its hosts are refused.
    ///
    /// # Errors
    /// A socket cannot be made.
    pub fn offer(&mut self, offer: &Offer, epoll: &Epoll) -> Result<(), OfferError> {
        let places: Vec<_> = self.places.iter().filter_map(|place| place.socket_of(&offer.name)).collect();
        for path in places {
            if self.doors.iter().any(|(_, door)| door.name == offer.name && door.path == path) {
                continue;
            }
            if let Err(error) = self.open(path, &offer.name, epoll) {
                self.retract(&offer.name, epoll);
                return Err(OfferError::Vhost(error));
            }
        }
        Ok(())
    }

    fn open(&mut self, path: PathBuf, name: &str, epoll: &Epoll) -> Result<(), String> {
        let listener = Listener::unix_of_folder(&path).map_err(|error| error.to_string())?;
        let place = path.display().to_string();
        let added = self.add_door(Door { listener, path, name: name.to_owned(), is_kept: false }, epoll);
        added.map_err(|error| format!("{place}: cannot wait for it: {error}"))
    }

    fn add_door(&mut self, door: Door, epoll: &Epoll) -> Result<(), Errno> {
        if self.closer.is_none() {
            self.closer = Some(Closer::start().map_err(Errno::from)?);
        }
        let interest = if self.is_accepting { Interest::READ } else { Interest::NONE };
        epoll.add(&door.listener, VHOST_LISTENER_CLASS | self.doors.next_key().token().0, interest)?;
        self.doors.insert(door);
        Ok(())
    }

    /// Remove the sockets of these names, all names of an array. Its machines are disconnected after their requests.
    pub fn withdraw(&mut self, array: ArrayId, names: &[String], shared: &mut Shared) {
        self.close_doors(|door| names.contains(&door.name) && !door.is_kept, &shared.epoll);
        self.refusals.forget(array);
        for key in self.table.keys() {
            if self.table.get(key).is_some_and(|machine| machine.array == array) {
                self.finish(key, shared);
            }
        }
    }

    /// Remove the sockets of this name. Machines stay connected.
    pub fn retract(&mut self, name: &str, epoll: &Epoll) {
        self.close_doors(|door| door.name == name && !door.is_kept, epoll);
    }

    fn close_doors(&mut self, is_closed: impl Fn(&Door) -> bool, epoll: &Epoll) {
        for key in self.doors.keys() {
            if !self.doors.get(key).is_some_and(&is_closed) {
                continue;
            }
            if let (Some(door), Some(closer)) = (self.doors.remove(key), &self.closer) {
                let _ = epoll.remove(&door.listener);
                // Machines that wait in its queue may have passed files.
                closer.close(door.listener.without_file());
            }
        }
    }

    /// Whether machines at an array may write from now on.
    pub fn set_read_only(&mut self, array: ArrayId, read_only: bool) {
        for key in self.table.keys() {
            if let Some(machine) = self.table.get_mut(key).filter(|machine| machine.array == array) {
                machine.session.set_read_only(read_only);
            }
        }
    }

    /// An array has another size. Machines that cannot learn it keep the former one.
    pub fn set_size(&mut self, array: ArrayId, size: Bytes) {
        for key in self.table.keys() {
            if let Some(machine) = self.table.get_mut(key).filter(|machine| machine.array == array) {
                if machine.session.set_size(size.get()) {
                    machine.told = size;
                }
            }
        }
    }

    /// The number of machines at an array.
    pub fn clients(&self, array: ArrayId) -> usize {
        self.table.iter().filter(|(_, machine)| machine.array == array).count()
    }

    /// The sizes that machines at an array were told, other than this one.
    pub fn other_sizes(&self, array: ArrayId, size: Bytes) -> impl Iterator<Item = Bytes> + '_ {
        let of_array = self.table.iter().filter(move |(_, machine)| machine.array == array);
        of_array.map(|(_, machine)| machine.told).filter(move |told| *told != size)
    }

    /// Number of machines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Are there no machines?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// A socket has a new machine.
    pub fn on_listener(&mut self, key: SlabKey, offers: &[Offer], shared: &Shared) {
        for _ in 0..ACCEPTS_PER_ROUND_MAX {
            let Some(door) = self.doors.get(key) else { return };
            let socket = match door.listener.accept() {
                Ok(Accepted::Socket(socket)) => socket,
                Ok(Accepted::NoConnection) => return,
                // The listener stays readable until there are descriptors again: wait instead of polling it.
                Ok(Accepted::Exhausted(_)) | Err(_) => {
                    self.rests_until = Some(shared.now + ACCEPT_PAUSE);
                    return self.watch_doors(Interest::NONE, &shared.epoll);
                }
            };
            let closer = self.closer.as_mut().expect("it is made with the first socket");
            match offers.iter().find(|offer| offer.name == door.name) {
                Some(offer) => {
                    let budget = closer.budget(offer.array);
                    if let Err(why) = self.on_accepted(GuestSocket::new(socket, &budget), budget, offer, shared) {
                        self.refusals.add(offer.array, why, shared.now);
                    }
                }
                None => {
                    socket.shut_down();
                    closer.close(socket);
                }
            }
        }
    }

    /// A machine has connected. Without descriptors it is disconnected, and tries again.
    fn on_accepted(
        &mut self,
        socket: GuestSocket,
        budget: FileBudget,
        offer: &Offer,
        shared: &Shared,
    ) -> Result<(), String> {
        if let Some(why) = &offer.refused {
            return Err(why.clone());
        }
        self.make_room(offer.array, shared)?;
        budget.check()?;
        let Ok(mut machine) = GuestMachine::new(socket, offer, budget) else { return Ok(()) };
        let (key, kicks) = (self.table.next_key(), machine.session.platform().kicks());
        let added = shared.epoll.add(kicks, VHOST_KICKS_CLASS | key.token().0, Interest::READ).is_ok()
            && shared.epoll.add(&*machine.socket, VHOST_SOCKET_CLASS | key.token().0, Interest::READ).is_ok();
        if added {
            self.table.insert(machine);
            self.silent.push_back((shared.now + HANDSHAKE_TIME_MAX, key));
        }
        Ok(())
    }

    /// Find a place for one more machine at an array. The oldest one that has said nothing loses its place.
    fn make_room(&mut self, array: ArrayId, shared: &Shared) -> Result<(), String> {
        let is_crowded = self.clients(array) >= MACHINES_PER_ARRAY_MAX;
        if !is_crowded && self.table.len() < MACHINES_MAX {
            return Ok(());
        }
        let may_leave = |key: SlabKey| !is_crowded || self.table.get(key).is_some_and(|machine| machine.array == array);
        match self.silent.iter().map(|(_, key)| *key).find(|key| may_leave(*key)) {
            Some(oldest) => {
                self.end(oldest, MachineEnd::Closed, shared);
                Ok(())
            }
            None if is_crowded => {
                Err(format!("{MACHINES_PER_ARRAY_MAX} machines are connected to this array, which is the limit"))
            }
            None => Err(format!("{MACHINES_MAX} machines are connected, which is the limit")),
        }
    }

    /// A machine has sent messages, or is gone.
    pub fn on_socket(&mut self, key: SlabKey, shared: &mut Shared) {
        for _ in 0..MACHINE_MESSAGES_PER_ROUND_MAX {
            let Some(machine) = self.table.get_mut(key) else { return };
            if machine.session.is_stopping() {
                break;
            }
            match machine.step() {
                Ok(true) => {}
                Ok(false) => break,
                Err(ended) => return self.end(key, ended, shared),
            }
        }
        if self.table.get(key).is_some_and(|machine| !machine.is_silent) {
            self.silent.retain(|(_, silent)| *silent != key);
        }
        self.wait_for_messages(key, shared);
        self.mark_busy(key);
    }

    /// Wait for messages, unless the machine waits for an answer.
    fn wait_for_messages(&mut self, key: SlabKey, shared: &Shared) {
        let Some(machine) = self.table.get(key) else { return };
        let interest = if machine.session.is_stopping() { Interest::NONE } else { Interest::READ };
        // It was added, so the kernel has room for it.
        let _ = shared.epoll.modify(&*machine.socket, VHOST_SOCKET_CLASS | key.token().0, interest);
    }

    /// A machine has requests.
    pub fn on_kicks(&mut self, key: SlabKey) {
        if let Some(machine) = self.table.get_mut(key) {
            machine.session.platform().take_kicks(&mut self.kicks);
            self.mark_busy(key);
        }
    }

    /// The kernel says that a socket of which no messages are read is broken.
    pub fn on_broken(&mut self, key: SlabKey, shared: &mut Shared) {
        if self.table.get(key).is_some_and(|machine| machine.session.is_stopping()) {
            self.end(key, MachineEnd::Closed, shared);
        }
    }

    fn mark_busy(&mut self, key: SlabKey) {
        if let Some(machine) = self.table.get_mut(key) {
            if !machine.busy {
                machine.busy = true;
                self.busy.push(key);
            }
        }
    }

    fn mark_dirty(&mut self, key: SlabKey) {
        if let Some(machine) = self.table.get_mut(key) {
            if !machine.dirty {
                machine.dirty = true;
                self.dirty.push(key);
            }
        }
    }

    /// Are there rings to be looked at, and is there room for their requests?
    #[must_use]
    pub fn wants_turn(&self, shared: &Shared) -> bool {
        !self.busy.is_empty() && shared.is_open()
    }

    /// Hand requests in, from each machine a limited number.
    pub fn take_requests(&mut self, shared: &mut Shared) {
        if self.busy.is_empty() {
            return;
        }
        let mut busy = std::mem::take(&mut self.busy);
        busy.retain(|&key| {
            let Some(machine) = self.table.get_mut(key) else { return false };
            let mut steps = 0;
            while shared.is_open() && steps < MACHINE_STEPS_PER_ROUND_MAX {
                if machine.session.under_way() >= CONNECTION_REQUESTS_MAX {
                    (machine.busy, machine.full) = (false, true);
                    break;
                }
                match machine.session.next_step() {
                    RingStep::Command(command) => submit(key, machine.array, command, shared),
                    RingStep::Answered => {}
                    RingStep::Idle => {
                        machine.busy = false;
                        break;
                    }
                }
                steps += 1;
            }
            let is_busy = machine.busy;
            self.mark_dirty(key);
            is_busy
        });
        self.busy.append(&mut busy);
    }

    /// Carry out a transfer of a machine's request.
    #[inline]
    pub fn transfer(&mut self, key: SlabKey, transfer: &Transfer, shared: &mut Shared) {
        let id = RequestId(shared.hosts.get(transfer.token).id);
        let range = PoolRange::new(transfer.at, Bytes(u64::from(transfer.len)));
        let first = u64::from(transfer.offset);
        let is_end = transfer.last && transfer.direction == Direction::ToHost;
        let copied = self.table.get_mut(key).map(|machine| match transfer.direction {
            Direction::FromHost => machine.session.copy_from_guest(id, first, shared.pool.slice_mut(range)),
            Direction::ToHost => machine.session.copy_to_guest(id, first, shared.pool.slice(range)),
        });
        if is_end {
            shared.hosts.remove(transfer.token);
        }
        match copied {
            Some(Ok(())) => {
                if is_end {
                    self.end_request(key, id, DiskOutcome::Done);
                }
                shared.control.transfer_done(transfer.tag, Ok(()));
            }
            Some(Err(_)) => {
                shared.control.transfer_done(transfer.tag, Err(HostGone));
                self.end(key, MachineEnd::Broken("the memory of a request that runs was taken away".into()), shared);
            }
            None => shared.control.transfer_done(transfer.tag, Err(HostGone)),
        }
    }

    fn end_request(&mut self, key: SlabKey, id: RequestId, outcome: DiskOutcome) {
        if let Some(machine) = self.table.get_mut(key) {
            machine.session.end(id, outcome);
            self.mark_dirty(key);
        }
    }

    /// A request of a machine ended.
    #[inline]
    pub fn reply(&mut self, key: SlabKey, reply: &Reply, host: &HostRequest) {
        let outcome = match reply.status {
            ReplyStatus::Ok => DiskOutcome::Done,
            ReplyStatus::IoError
            | ReplyStatus::OutOfRange
            | ReplyStatus::ReadOnly
            | ReplyStatus::NoSpace
            | ReplyStatus::Offline => DiskOutcome::Failed,
        };
        self.end_request(key, RequestId(host.id), outcome);
    }

    /// Tell machines what has ended, once for each.
    pub fn tell(&mut self, shared: &mut Shared) {
        while let Some(key) = self.dirty.pop() {
            let Some(machine) = self.table.get_mut(key) else { continue };
            machine.dirty = false;
            machine.session.ring_guests();
            let has_room = machine.full && machine.session.under_way() < CONNECTION_REQUESTS_MAX;
            machine.full &= !has_room;
            let (array, fault) = (machine.array, machine.session.take_fault());
            let sent = machine.session.take_reply().map(|reply| machine.send(&reply));
            let is_finished = machine.finishing && machine.session.under_way() == 0;
            if has_room {
                self.mark_busy(key);
            }
            if let Some((queue, fault)) = fault {
                let why = format!("queue {queue} is stopped until the machine resets the disk: {fault}");
                self.refusals.add(array, why, shared.now);
            }
            match sent {
                Some(Err(ended)) => self.end(key, ended, shared),
                _ if is_finished => self.end(key, MachineEnd::Closed, shared),
                Some(Ok(())) => self.wait_for_messages(key, shared),
                None => {}
            }
        }
    }

    /// Take no more requests of a machine, end the running ones, then disconnect it.
    fn finish(&mut self, key: SlabKey, shared: &mut Shared) {
        let Some(machine) = self.table.get_mut(key) else { return };
        machine.finishing = true;
        machine.session.take_no_more();
        if machine.session.under_way() == 0 {
            self.end(key, MachineEnd::Closed, shared);
        }
    }

    fn end(&mut self, key: SlabKey, ended: MachineEnd, shared: &Shared) {
        self.silent.retain(|(_, silent)| *silent != key);
        let Some(mut machine) = self.table.remove(key) else { return };
        let _ = shared.epoll.remove(&*machine.socket);
        let _ = shared.epoll.remove(machine.session.platform().kicks());
        if let MachineEnd::Broken(why) = ended {
            self.refusals.add(machine.array, format!("disconnected: {why}"), shared.now);
        }
    }

    /// The rules that machines broke, and other reasons to disconnect them, since the last call.
    pub fn take_refusals(&mut self) -> Vec<(ArrayId, String)> {
        self.refusals.take()
    }

    /// Begin to stop: no more machines, no more requests.
    pub fn stop(&mut self, shared: &mut Shared) {
        self.close_doors(|_| true, &shared.epoll);
        for key in self.table.keys() {
            self.finish(key, shared);
        }
    }

    /// Disconnect all machines at once.
    pub fn close_all(&mut self, shared: &mut Shared) {
        for key in self.table.keys() {
            self.end(key, MachineEnd::Closed, shared);
        }
    }

    /// Must the answer to this request wait?
    #[inline]
    pub fn holds(&self, key: SlabKey, request: &HostRequest, reply: &Reply) -> bool {
        self.held.holds(request, reply, || self.table.get(key).map(|machine| machine.array))
    }

    /// Let an answer wait for [`Machines::pass_writes`].
    #[cold]
    pub fn hold(&mut self, key: SlabKey, reply: Reply, request: HostRequest) {
        if let Some(machine) = self.table.get(key) {
            self.held.hold(machine.array, key, reply, request);
        }
    }

    /// Answer no write of an array from now on.
    pub fn hold_writes(&mut self, array: ArrayId) {
        self.held.hold_writes(array);
    }

    /// Answer the writes of an array, the waiting ones first.
    pub fn pass_writes(&mut self, array: ArrayId) {
        for (key, reply, request) in self.held.pass(array) {
            self.reply(key, &reply, &request);
        }
    }

    /// Do machines of an array wait for such an answer?
    #[must_use]
    pub fn awaits_mark(&self, array: ArrayId) -> bool {
        self.held.awaits(array, |key| self.table.get(key).is_some())
    }

    /// The array for which an answer has begun to wait, once.
    pub fn take_awaited_mark(&mut self) -> Option<ArrayId> {
        self.held.take_awaited_mark()
    }
}

fn submit(key: SlabKey, array: ArrayId, command: BlockCommand, shared: &mut Shared) {
    let BlockCommand { id, kind, offset, len, fua } = command;
    let kind = match kind {
        DiskCommandKind::Read => RequestKind::Read,
        DiskCommandKind::Write => RequestKind::Write { fua },
        DiskCommandKind::Flush => RequestKind::Flush,
        DiskCommandKind::Discard => RequestKind::Trim { fua },
        DiskCommandKind::WriteZeroes { may_discard } => RequestKind::WriteZeroes { fua, may_discard },
    };
    let (owner, offset) = (RequestOwner::Machine(key), ArrayOffset(offset));
    let host = HostRequest { owner, id: id.0, kind, offset, len, payload: HostPayload::Guest, sent: 0 };
    let token: Token = shared.hosts.insert(host).token();
    shared.control.submit(BlockRequest { token, array, kind, offset, len });
}
