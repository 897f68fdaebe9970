//! What a session of a virtual machine needs of the kernel: mappings, events and its channel.

use std::os::fd::{AsFd, OwnedFd};

use openraid_sys::{sealed_file, Epoll, Errno, Events, Progress, SharedEvent, SharedMemory, Socket};
use openraid_units::Nanos;
use openraid_vhost::{Platform, SharedBytes};

use super::closer::{FileBudget, Lent};

/// A file of a virtual machine.
#[derive(Debug)]
pub enum GuestFile {
    /// An event.
    Event(Lent<SharedEvent>),
    /// A unix socket.
    Channel(Lent<Socket>),
    /// Anything else: memory, if it can be mapped.
    Other(Lent<OwnedFd>),
}

impl GuestFile {
    /// A file that came with a message.
    pub fn new(fd: OwnedFd, budget: &FileBudget) -> Self {
        match SharedEvent::of(fd).map_err(Socket::passed) {
            Ok(event) => Self::Event(budget.lend(event)),
            Err(Ok(socket)) => Self::Channel(budget.lend(socket)),
            Err(Err(other)) => Self::Other(budget.lend(other)),
        }
    }
}

/// Mapped memory of a virtual machine.
#[derive(Debug)]
pub struct GuestBytes(Lent<SharedMemory>);

impl SharedBytes for GuestBytes {
    fn read(&self, at: u64, into: &mut [u8]) {
        self.0.read(at, into);
    }
    fn write(&self, at: u64, from: &[u8]) {
        self.0.write(at, from);
    }
    #[inline]
    fn load_u16(&self, at: u64) -> u16 {
        self.0.load_u16(at)
    }
    #[inline]
    fn store_u16(&self, at: u64, value: u16) {
        self.0.store_u16(at, value);
    }
}

/// The kernel, for one session. The kicks of a session are a set in the set of the shard: the other process keeps its copies of
/// them, so closing ours would not remove them, and the set goes with the session.
#[derive(Debug)]
pub struct GuestPlatform {
    kicks: Epoll,
    budget: FileBudget,
}

impl GuestPlatform {
    /// Without kicks.
    ///
    /// # Errors
    /// There are no descriptors.
    pub fn new(budget: FileBudget) -> Result<Self, Errno> {
        Ok(Self { kicks: Epoll::new()?, budget })
    }

    /// The budget of what comes from the machine.
    pub fn budget(&self) -> &FileBudget {
        &self.budget
    }

    /// The set of kicks.
    pub fn kicks(&self) -> &Epoll {
        &self.kicks
    }

    /// Kicks that were reported are reported no more. Their rings are looked at next.
    pub fn take_kicks(&mut self, events: &mut Events) {
        // Only an invalid set is refused.
        let _ = self.kicks.wait(events, Some(Nanos::ZERO));
    }
}

impl Platform for GuestPlatform {
    type File = GuestFile;
    type Memory = GuestBytes;

    fn map(&mut self, file: &GuestFile, offset: u64, len: u64) -> Result<GuestBytes, String> {
        let GuestFile::Other(file) = file else { return Err("an event or a socket came in place of memory".into()) };
        let memory = SharedMemory::map(file.as_fd(), offset, len).map_err(|error| error.to_string())?;
        Ok(GuestBytes(self.budget.lend(memory)))
    }

    fn new_file(&mut self, len: u64) -> Result<(GuestFile, GuestBytes), String> {
        let file = sealed_file(len).map_err(|error| format!("no memory for the in-flight region: {error}"))?;
        let file = GuestFile::Other(self.budget.lend(file));
        let memory = self.map(&file, 0, len)?;
        Ok((file, memory))
    }

    fn watch(&mut self, kick: &GuestFile) -> Result<(), String> {
        let GuestFile::Event(kick) = kick else { return Err("a file came in place of an event".into()) };
        self.kicks.add_changes(&**kick, 0).map_err(|error| format!("an event cannot be waited for: {error}"))
    }

    fn unwatch(&mut self, kick: &GuestFile) {
        if let GuestFile::Event(kick) = kick {
            // It was added.
            let _ = self.kicks.remove(&**kick);
        }
    }

    fn check_channel(&self, channel: &GuestFile) -> Result<(), String> {
        match channel {
            GuestFile::Channel(_) => Ok(()),
            GuestFile::Event(_) | GuestFile::Other(_) => Err("a file came in place of a unix socket".into()),
        }
    }

    fn send(&mut self, channel: &GuestFile, message: &[u8]) -> bool {
        let GuestFile::Channel(socket) = channel else { return false };
        socket.send_with_file(message, None) == Ok(Progress::Bytes(message.len()))
    }

    fn ring(&mut self, call: &GuestFile) {
        if let GuestFile::Event(call) = call {
            call.ring();
        }
    }
}
