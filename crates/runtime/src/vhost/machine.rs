//! One connection of a virtual machine: its socket, the message that is coming, and its session.

use std::ops::Deref;
use std::os::fd::AsFd;

use openraid_sys::{Errno, Progress, Socket};
use openraid_units::{ArrayId, Bytes};
use openraid_vhost::limits::{FILES_MAX, MESSAGE_BYTES_MAX};
use openraid_vhost::{MessageHeader, MessageRefusal, MessageReply, VhostDisk, VhostSession, HEADER_BYTES};

use super::closer::{FileBudget, Lent};
use super::platform::{GuestFile, GuestPlatform};
use crate::export::Offer;

/// The socket of a machine, which sees at once that it is disconnected.
#[derive(Debug)]
pub struct GuestSocket(Lent<Socket>);

impl GuestSocket {
    /// A socket that was just accepted.
    pub fn new(socket: Socket, budget: &FileBudget) -> Self {
        Self(budget.lend(socket))
    }
}

impl Deref for GuestSocket {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        &self.0
    }
}

impl Drop for GuestSocket {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// A virtual machine at an array.
#[derive(Debug)]
pub struct GuestMachine {
    pub socket: GuestSocket,
    pub session: VhostSession<GuestPlatform>,
    pub array: ArrayId,
    /// The size that it was told.
    pub told: Bytes,
    /// No message has come yet.
    pub is_silent: bool,
    /// It is closed when no request runs.
    pub finishing: bool,
    /// It is in the list of machines whose rings are looked at.
    pub busy: bool,
    /// It has as many requests under way as it may have.
    pub full: bool,
    /// It is in the list of machines to which something is to be told.
    pub dirty: bool,
    /// The bytes of the next message that came, and its files.
    input: [u8; HEADER_BYTES + MESSAGE_BYTES_MAX],
    filled: usize,
    files: Vec<GuestFile>,
}

/// Why a connection ends.
#[derive(Debug)]
pub enum MachineEnd {
    /// The other side has closed it.
    Closed,
    /// The other side broke a rule.
    Broken(String),
}

impl GuestMachine {
    /// A machine that was just accepted at this offer.
    ///
    /// # Errors
    /// There are no descriptors.
    pub fn new(socket: GuestSocket, offer: &Offer, budget: FileBudget) -> Result<Self, Errno> {
        let disk = VhostDisk {
            size: offer.size.get(),
            is_read_only: offer.read_only,
            physical_block: offer.unit.max(512),
            preferred: offer.preferred,
            serial: offer.name.clone(),
        };
        Ok(Self {
            socket,
            session: VhostSession::new(GuestPlatform::new(budget)?, disk),
            array: offer.array,
            told: offer.size,
            is_silent: true,
            finishing: false,
            busy: false,
            full: false,
            dirty: false,
            input: [0; HEADER_BYTES + MESSAGE_BYTES_MAX],
            filled: 0,
            files: Vec::new(),
        })
    }

    /// Receive and answer one message. `false`: there is none now.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn step(&mut self) -> Result<bool, MachineEnd> {
        let need = self.header()?.map_or(HEADER_BYTES, |header| HEADER_BYTES + header.len);
        if self.filled < need {
            let mut came = Vec::new();
            let received = self.socket.receive_with_files(&mut self.input[self.filled..need], &mut came);
            let budget = self.session.platform().budget();
            self.files.extend(came.into_iter().map(|file| GuestFile::new(file, budget)));
            budget.check().map_err(MachineEnd::Broken)?;
            match received {
                Ok(Progress::Bytes(count)) => self.filled += count,
                Ok(Progress::Blocked) => return Ok(false),
                Ok(Progress::Closed) | Err(_) => return Err(MachineEnd::Closed),
            }
            if self.files.len() > FILES_MAX {
                return Err(MachineEnd::Broken(format!("a message comes with more than {FILES_MAX} files")));
            }
        }
        match self.header()? {
            Some(header) if self.filled == HEADER_BYTES + header.len => self.handle(header).map(|()| true),
            _ => Ok(true),
        }
    }

    /// The header, if all of it came.
    fn header(&self) -> Result<Option<MessageHeader>, MachineEnd> {
        if self.filled < HEADER_BYTES {
            return Ok(None);
        }
        let bytes = self.input[..HEADER_BYTES].try_into().expect("its length");
        MessageHeader::parse(bytes).map(Some).map_err(|violation| MachineEnd::Broken(violation.to_string()))
    }

    fn handle(&mut self, header: MessageHeader) -> Result<(), MachineEnd> {
        let files = std::mem::take(&mut self.files);
        let payload = &self.input[HEADER_BYTES..self.filled];
        (self.filled, self.is_silent) = (0, false);
        match self.session.handle(header, payload, files) {
            Ok(None) => Ok(()),
            Ok(Some(reply)) => self.send(&reply),
            Err(MessageRefusal { violation, reply }) => {
                reply.iter().for_each(|reply| drop(self.send(reply)));
                Err(MachineEnd::Broken(violation.to_string()))
            }
        }
    }

    /// Send an answer. The other side waits for it, so there is room.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn send(&mut self, reply: &MessageReply<GuestFile>) -> Result<(), MachineEnd> {
        let file = reply.file.as_ref().and_then(|file| match file {
            GuestFile::Other(file) => Some(file.as_fd()),
            GuestFile::Event(_) | GuestFile::Channel(_) => None,
        });
        match self.socket.send_with_file(&reply.bytes, file) {
            Ok(Progress::Bytes(sent)) if sent == reply.bytes.len() => Ok(()),
            Ok(Progress::Closed) | Err(_) => Err(MachineEnd::Closed),
            Ok(_) => Err(MachineEnd::Broken("answers are not read".into())),
        }
    }
}
