//! The kernel's and udev's messages about block devices: one appeared, changed, or is gone.
//!
//! A message is a reason to look, and never a fact: it may be lost, doubled, late, or sent by another program. So it is
//! not examined further than its subsystem and its kind.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::errno::{check, Errno};
use crate::net::set;

/// Messages of the kernel, and those of udev, which come when the names below `/dev/disk` are made.
const GROUPS: u32 = 1 | 2;
/// Bytes that the kernel keeps for messages that were not read: those of some hundred drives that come at once.
const QUEUE_BYTES: libc::c_int = 1 << 20;
/// Maximum length of a message; the rest of a longer one is not read.
const MESSAGE_BYTES_MAX: usize = 16 << 10;

/// What happened to block devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceNews {
    /// One appeared, has its names now, or has another size or medium.
    Came,
    /// One is gone; or a program asked for a message, as udev does whenever a device was open for writing.
    Changed,
    /// Messages were lost: anything may have happened.
    Lost,
}

/// A place where these messages arrive.
#[derive(Debug)]
pub struct DeviceEvents {
    socket: File,
    message: Vec<u8>,
}

impl DeviceEvents {
    /// Begins to listen.
    ///
    /// # Errors
    /// The kernel's error: in a sandbox without netlink, for example.
    pub fn listen() -> Result<Self, Errno> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        // SAFETY: makes a descriptor.
        let fd = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_KOBJECT_UEVENT) })?;
        // SAFETY: a descriptor just made, without another owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // A refusal leaves the usual size: messages are lost earlier, which is noticed.
        let _ = set(&fd, libc::SOL_SOCKET, libc::SO_RCVBUF, QUEUE_BYTES);
        // SAFETY: all zeroes are a valid address of this kind.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::sa_family_t::try_from(libc::AF_NETLINK).expect("a small number");
        address.nl_groups = GROUPS;
        let len = libc::socklen_t::try_from(size_of::<libc::sockaddr_nl>()).expect("a few bytes");
        // SAFETY: `address` has `len` bytes of a valid address.
        check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) })?;
        Ok(Self { socket: File::from(fd), message: vec![0; MESSAGE_BYTES_MAX] })
    }

    /// Waits for news of block devices.
    ///
    /// # Errors
    /// The kernel's error: no more messages come.
    pub fn next_news(&mut self) -> Result<DeviceNews, Errno> {
        loop {
            match self.socket.read(&mut self.message).map_err(Errno::from) {
                Ok(len) => {
                    if let Some(news) = news_in(&self.message[..len]) {
                        return Ok(news);
                    }
                }
                Err(Errno(libc::ENOBUFS)) => return Ok(DeviceNews::Lost),
                Err(Errno(libc::EINTR)) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// What a message says. The kernel's is `ACTION@PATH` and `KEY=VALUE`s; udev's has a head of numbers instead. Each part ends with
/// a zero.
fn news_in(message: &[u8]) -> Option<DeviceNews> {
    let value = |key: &[u8]| message.split(|byte| *byte == 0).find_map(|part| part.strip_prefix(key));
    if value(b"SUBSYSTEM=")? != b"block" {
        return None;
    }
    let is_asked_for = value(b"SYNTH_UUID=").is_some();
    Some(match value(b"ACTION=")? {
        b"add" => DeviceNews::Came,
        b"change" if !is_asked_for => DeviceNews::Came,
        _ => DeviceNews::Changed,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_kernel_and_of_udev_are_told_apart_from_those_of_other_devices() {
        let kernel = |action: &str, subsystem: &str| {
            let text =
                format!("{action}@/devices/a\0ACTION={action}\0DEVPATH=/devices/a\0SUBSYSTEM={subsystem}\0MAJOR=8\0");
            news_in(text.as_bytes())
        };
        assert_eq!(kernel("add", "block"), Some(DeviceNews::Came));
        assert_eq!(kernel("remove", "block"), Some(DeviceNews::Changed));
        assert_eq!(kernel("change", "block"), Some(DeviceNews::Came));
        let asked_for = b"change@/a\0ACTION=change\0SUBSYSTEM=block\0SYNTH_UUID=0\0";
        assert_eq!(news_in(asked_for), Some(DeviceNews::Changed));
        assert_eq!(kernel("remove", "net"), None);
        let udev = b"libudev\0\xfe\xed\xca\xfe\x28\0\0\0\x28\0\0\0\x20\0\0\0ACTION=add\0SUBSYSTEM=block\0";
        assert_eq!(news_in(udev), Some(DeviceNews::Came));
        for broken in [&b""[..], b"\0", b"add@/a\0ACTION=add", b"SUBSYSTEM=block\0", b"=\0=\0SUBSYSTEM="] {
            assert_eq!(news_in(broken), None);
        }
    }
}
