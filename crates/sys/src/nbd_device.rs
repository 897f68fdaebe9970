//! The kernel's NBD devices, driven by generic netlink: a socket that has been negotiated becomes a block device, a dead socket is
//! replaced by another one while requests wait, and the device ends.
//!
//! Messages are built from numbers and texts; the descriptors in them are open for the length of the call. Source:
//! `include/uapi/linux/{netlink,genetlink,nbd-netlink}.h`, `drivers/block/nbd.c`.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use openraid_units::Bytes;

use crate::errno::{check, Errno};

/// The number by which the kernel knows a family before its own number is known.
const CONTROL_FAMILY: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Types and flags of messages.
const ERROR: u16 = 2;
const REQUEST_WITH_ANSWER: u16 = 1 | 4;
/// An attribute that has attributes.
const NESTED: u16 = 0x8000;
const HEAD_BYTES: usize = 16;
const ATTRIBUTE_BYTES: usize = 4;
const ANSWER_BYTES_MAX: usize = 16 << 10;

const CONNECT: u8 = 1;
const DISCONNECT: u8 = 2;
const RECONFIGURE: u8 = 3;

const INDEX: u16 = 1;
const SIZE_BYTES: u16 = 2;
const BLOCK_BYTES: u16 = 3;
const TIMEOUT: u16 = 4;
const SERVER_FLAGS: u16 = 5;
const SOCKETS: u16 = 7;
const DEAD_TIMEOUT: u16 = 8;
const BACKEND: u16 = 10;
const SOCKET_ITEM: u16 = 1;
const SOCKET_DESCRIPTOR: u16 = 1;

/// What a device is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NbdDevice {
    /// N of `/dev/nbdN`. The kernel makes a device that does not exist.
    pub index: u32,
    /// Size of the disk.
    pub size: Bytes,
    /// Its logical block.
    pub block: Bytes,
    /// The transmission flags that the server sent.
    pub flags: u16,
    /// Its export, in a word. A kernel from 5.14 on keeps it in `/sys/block/nbdN/backend`, and takes a socket from no
    /// program that names another one.
    pub backend: String,
    /// Seconds without an answer after which a connection counts as dead.
    pub answer_seconds: u64,
    /// Seconds for which requests wait for another socket.
    pub wait_seconds: u64,
}

/// What became of a socket for a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandedOver {
    /// The device uses it.
    Taken,
    /// The device's own socket lives.
    NotNeeded,
    /// The device is not connected, or it has another export.
    NoDevice,
}

/// The kernel's end of the devices.
#[derive(Debug)]
pub struct NbdControl {
    socket: File,
    family: u16,
}

impl NbdControl {
    /// Asks for the family of NBD's commands.
    ///
    /// # Errors
    /// `ENOENT` without the kernel's module; the kernel's error.
    pub fn open() -> Result<Self, Errno> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: makes a descriptor.
        let fd = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_GENERIC) })?;
        // SAFETY: a descriptor just made, without another owner.
        let socket = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        let mut control = Self { socket, family: CONTROL_FAMILY };
        let answer = control.call(GET_FAMILY, &attribute(FAMILY_NAME, b"nbd\0"))?;
        control.family = family_in(&answer).ok_or(Errno(libc::ENOENT))?;
        Ok(control)
    }

    /// Connects a device over a negotiated socket. The kernel keeps the socket.
    ///
    /// # Errors
    /// `EBUSY` if the device is in use; the kernel's error.
    pub fn connect(&mut self, device: &NbdDevice, socket: BorrowedFd<'_>) -> Result<(), Errno> {
        let body = [
            identity(device),
            attribute(BLOCK_BYTES, &device.block.get().to_ne_bytes()),
            attribute(SERVER_FLAGS, &u64::from(device.flags).to_ne_bytes()),
            attribute(TIMEOUT, &device.answer_seconds.to_ne_bytes()),
            attribute(DEAD_TIMEOUT, &device.wait_seconds.to_ne_bytes()),
            sockets(socket),
        ];
        self.call(CONNECT, &body.concat()).map(drop)
    }

    /// Offers a negotiated socket in the place of a dead one. Requests that wait go out at once.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn hand_over(&mut self, device: &NbdDevice, socket: BorrowedFd<'_>) -> Result<HandedOver, Errno> {
        match self.call(RECONFIGURE, &[identity(device), sockets(socket)].concat()) {
            Ok(_) => Ok(HandedOver::Taken),
            Err(Errno(libc::ENOSPC)) => Ok(HandedOver::NotNeeded),
            Err(Errno(libc::EINVAL | libc::ENODEV)) => Ok(HandedOver::NoDevice),
            Err(error) => Err(error),
        }
    }

    /// Ends a device. Requests that wait fail.
    ///
    /// # Errors
    /// The kernel's error. A device that is not connected is none.
    pub fn disconnect(&mut self, index: u32) -> Result<(), Errno> {
        match self.call(DISCONNECT, &attribute(INDEX, &index.to_ne_bytes())) {
            Ok(_) | Err(Errno(libc::EINVAL | libc::ENODEV)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends a command, and waits for its end. Returns the attributes of the last answer, if there was one.
    fn call(&mut self, command: u8, body: &[u8]) -> Result<Vec<u8>, Errno> {
        let message = message(self.family, command, body);
        self.socket.write_all(&message)?;
        let mut answer = Vec::new();
        let mut buffer = vec![0; ANSWER_BYTES_MAX];
        loop {
            let len = match self.socket.read(&mut buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            for (kind, body) in messages(&buffer[..len]) {
                if kind == ERROR {
                    return match number(body) {
                        Some(0) => Ok(answer),
                        Some(error) => Err(Errno(error.saturating_neg())),
                        None => Err(Errno(libc::EBADMSG)),
                    };
                }
                // The command and its version stand before the attributes.
                answer = body.get(ATTRIBUTE_BYTES..).unwrap_or_default().to_vec();
            }
        }
    }
}

fn number(bytes: &[u8]) -> Option<i32> {
    Some(i32::from_ne_bytes(bytes.first_chunk().copied()?))
}

fn identity(device: &NbdDevice) -> Vec<u8> {
    let backend = [device.backend.as_bytes(), b"\0"].concat();
    [
        attribute(INDEX, &device.index.to_ne_bytes()),
        attribute(SIZE_BYTES, &device.size.get().to_ne_bytes()),
        attribute(BACKEND, &backend),
    ]
    .concat()
}

fn sockets(socket: BorrowedFd<'_>) -> Vec<u8> {
    let descriptor = attribute(SOCKET_DESCRIPTOR, &socket.as_raw_fd().to_ne_bytes());
    attribute(SOCKETS | NESTED, &attribute(SOCKET_ITEM | NESTED, &descriptor))
}

fn message(family: u16, command: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(HEAD_BYTES + ATTRIBUTE_BYTES + body.len()).expect("names are short");
    let mut bytes = len.to_ne_bytes().to_vec();
    bytes.extend(family.to_ne_bytes());
    bytes.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    // A number of the message, and the sender's, which the kernel fills in.
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend(body);
    bytes
}

/// An attribute, with zeroes up to the next four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(ATTRIBUTE_BYTES + value.len()).expect("names are short");
    let mut bytes = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(ATTRIBUTE_BYTES), 0);
    bytes
}

/// The parts of a buffer that begin with a length: a message or an attribute, without its head of this length.
fn parts(mut rest: &[u8], head: usize, len_of: impl Fn(&[u8]) -> usize) -> Vec<(u16, &[u8])> {
    let mut parts = Vec::new();
    while rest.len() >= head {
        let len = len_of(rest);
        if len < head || len > rest.len() {
            break;
        }
        // The kind of a message comes after 32 bits of length, that of an attribute after 16.
        let at = if head == HEAD_BYTES { 4 } else { 2 };
        parts.push((u16::from_ne_bytes([rest[at], rest[at + 1]]), &rest[head..len]));
        rest = rest.get(len.next_multiple_of(ATTRIBUTE_BYTES)..).unwrap_or_default();
    }
    parts
}

fn messages(bytes: &[u8]) -> Vec<(u16, &[u8])> {
    parts(bytes, HEAD_BYTES, |head| usize::try_from(number(head).unwrap_or(0)).unwrap_or(0))
}

fn family_in(attributes: &[u8]) -> Option<u16> {
    let all = parts(attributes, ATTRIBUTE_BYTES, |head| usize::from(u16::from_ne_bytes([head[0], head[1]])));
    let (_, value) = all.into_iter().find(|(kind, _)| *kind == FAMILY_ID)?;
    Some(u16::from_ne_bytes(value.first_chunk().copied()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn a_message_has_the_bytes_of_the_kernels_headers() {
        let body = [attribute(INDEX, &7u32.to_ne_bytes()), attribute(BACKEND, b"abc\0d\0")].concat();
        let wanted = [
            &[40, 0, 0, 0, 0x1c, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0][..],
            &[8, 0, 1, 0, 7, 0, 0, 0],
            &[10, 0, 10, 0, b'a', b'b', b'c', 0, b'd', 0, 0, 0],
        ];
        assert_eq!(message(0x1c, DISCONNECT, &body), wanted.concat());
        let socket = std::io::stdin();
        let nested = sockets(std::os::fd::AsFd::as_fd(&socket));
        assert_eq!(nested, [16, 0, 7, 0x80, 12, 0, 1, 0x80, 8, 0, 1, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_number_of_a_family_is_found_and_broken_answers_have_none() {
        let whole = [attribute(FAMILY_NAME, b"nbd\0"), attribute(FAMILY_ID, &29u16.to_ne_bytes())].concat();
        assert_eq!(family_in(&whole), Some(29));
        for len in 0..whole.len() - 3 {
            assert_eq!(family_in(&whole[..len]), None, "{len}");
        }
        assert_eq!(family_in(&[0; 64]), None);
        assert_eq!(messages(&[0; 64]), []);
        assert_eq!(messages(&[0xff; 64]), []);
        assert_eq!(messages(&message(9, 1, &[])), [(9, &[1, 1, 0, 0][..])]);
    }

    #[test]
    fn a_kernel_without_the_family_is_told_from_one_that_has_it() {
        match NbdControl::open() {
            Ok(_) => assert!(std::path::Path::new("/sys/block/nbd0").exists()),
            Err(error) => assert!(matches!(error.0, libc::ENOENT | libc::EPROTONOSUPPORT | libc::EACCES), "{error:?}"),
        }
    }
}
