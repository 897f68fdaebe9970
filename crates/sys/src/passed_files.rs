//! Files that come and go with bytes on a unix socket.

use crate::closing_thread::close_elsewhere;
use crate::errno::{check_size, Errno};
use crate::inherited_sockets::option;
use crate::net::{stopped, Progress, Socket};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Maximum number of files with one message: the kernel's. Without room for all, it would close some itself in the middle of a receive.
const PASSED_FILES_MAX: usize = 253;

/// Room for control data of that many files, aligned as its heads must be.
type ControlRoom = [u64; 129];

const _: () = assert!(size_of::<ControlRoom>() >= 16 + PASSED_FILES_MAX * size_of::<RawFd>());

/// An empty message for one piece of bytes.
fn message_of(vector: &mut libc::iovec) -> libc::msghdr {
    // SAFETY: all-zero is a valid msghdr: no address, no vectors, no control data.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = vector;
    message.msg_iovlen = 1;
    message
}

impl Socket {
    /// The unix socket for streams that came from another process.
    ///
    /// # Errors
    /// It is something else, to which a message could not be sent without waiting.
    pub fn passed(fd: OwnedFd) -> Result<Self, OwnedFd> {
        let is = |name, value| option(fd.as_raw_fd(), name) == Ok(value);
        match is(libc::SO_DOMAIN, libc::AF_UNIX) && is(libc::SO_TYPE, libc::SOCK_STREAM) {
            true => Ok(Self::of(fd)),
            false => Err(fd),
        }
    }

    /// The other side sees the end now, however long the close takes: what came and was not received is closed with the socket.
    pub fn shut_down(&self) {
        // It fails only if the other side has ended the connection.
        // SAFETY: no memory involved.
        let _ = unsafe { libc::shutdown(self.as_fd().as_raw_fd(), libc::SHUT_RDWR) };
    }

    /// As [`Socket::receive`], with the files that came with these bytes, which are appended.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn receive_with_files(&self, into: &mut [u8], files: &mut Vec<OwnedFd>) -> Result<Progress, Errno> {
        assert!(!into.is_empty(), "bug: receiving into nothing would look like the end of the stream");
        let mut control = MaybeUninit::<ControlRoom>::uninit();
        let mut vector = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        loop {
            let mut message = message_of(&mut vector);
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of::<ControlRoom>() as _;
            let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
            // SAFETY: the vector is `into`, and the control room is writable for its length.
            let received = check_size(unsafe { libc::recvmsg(self.as_fd().as_raw_fd(), &raw mut message, flags) });
            match received {
                Err(Errno(libc::EINTR)) => continue,
                Err(error) => return stopped(error),
                Ok(_) => take_files(&message, files),
            }
            return Ok(match received {
                Ok(0) | Err(_) => Progress::Closed,
                Ok(bytes) => Progress::Bytes(bytes),
            });
        }
    }

    /// As [`Socket::receive`] on a unix socket. A peer that sends files has no reason to, and is closed with them elsewhere.
    pub(crate) fn receive_without_files(&self, into: &mut [u8]) -> Result<Progress, Errno> {
        let mut files = Vec::new();
        let progress = self.receive_with_files(into, &mut files)?;
        if files.is_empty() {
            return Ok(progress);
        }
        files.into_iter().for_each(close_elsewhere);
        Ok(Progress::Closed)
    }

    /// Sends bytes, with a file if there is one, which goes with the first of them.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn send_with_file(&self, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> Result<Progress, Errno> {
        let mut control: ControlRoom = [0; 129];
        let mut vector = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let mut message = message_of(&mut vector);
        if let Some(file) = file {
            message.msg_control = control.as_mut_ptr().cast();
            let len = u32::try_from(size_of::<RawFd>()).expect("four");
            // SAFETY: computes numbers only.
            let (room, head_len) = unsafe { (libc::CMSG_SPACE(len), libc::CMSG_LEN(len)) };
            message.msg_controllen = room as _;
            // SAFETY: the control room has more than one head and one descriptor, and is aligned for the head.
            unsafe {
                let head = libc::CMSG_FIRSTHDR(&raw const message);
                (*head).cmsg_level = libc::SOL_SOCKET;
                (*head).cmsg_type = libc::SCM_RIGHTS;
                (*head).cmsg_len = head_len as _;
                libc::CMSG_DATA(head).cast::<RawFd>().write_unaligned(file.as_raw_fd());
            }
        }
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: the vector and the control data live across the call; the kernel only reads them.
        match check_size(unsafe { libc::sendmsg(self.as_fd().as_raw_fd(), &raw const message, flags) }) {
            Ok(sent) => Ok(Progress::Bytes(sent)),
            Err(error) => stopped(error),
        }
    }
}

/// Take the descriptors of a received message, each of which is closed with its file.
fn take_files(message: &libc::msghdr, files: &mut Vec<OwnedFd>) {
    // SAFETY: the kernel has filled the control data of the message up to its length, and each head with its data is inside.
    unsafe {
        let mut head = libc::CMSG_FIRSTHDR(message);
        while !head.is_null() {
            if (*head).cmsg_level == libc::SOL_SOCKET && (*head).cmsg_type == libc::SCM_RIGHTS {
                #[allow(clippy::unnecessary_cast)] // the type of the field depends on the C library
                let bytes = (*head).cmsg_len as usize - (libc::CMSG_LEN(0) as usize);
                let data = libc::CMSG_DATA(head).cast::<RawFd>();
                for nth in 0..bytes / size_of::<RawFd>() {
                    // The kernel made this descriptor for this process just now.
                    files.push(OwnedFd::from_raw_fd(data.add(nth).read_unaligned()));
                }
            }
            head = libc::CMSG_NXTHDR(message, head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new_file::memory_file;
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_file_arrives_with_the_first_byte_of_its_message() {
        let (one, other) = UnixStream::pair().expect("sockets");
        let (one, other) = (Socket::from(one), Socket::from(other));
        let mut file = memory_file(0).expect("a file");
        file.write_all(b"content").expect("room");
        assert_eq!(one.send_with_file(b"abc", Some(file.as_fd())), Ok(Progress::Bytes(3)));
        assert_eq!(one.send_with_file(b"def", None), Ok(Progress::Bytes(3)));
        let (mut bytes, mut files) = ([0; 2], Vec::new());
        assert_eq!(other.receive_with_files(&mut bytes, &mut files), Ok(Progress::Bytes(2)));
        assert_eq!((&bytes, files.len()), (b"ab", 1));
        let mut got = File::from(files.pop().expect("one"));
        got.rewind().expect("a file");
        let mut text = String::new();
        got.read_to_string(&mut text).expect("text");
        assert_eq!(text, "content");
        let mut rest = [0; 10];
        let mut count = 0;
        while count < 4 {
            match other.receive_with_files(&mut rest[count..], &mut files).expect("bytes") {
                Progress::Bytes(more) => count += more,
                end => panic!("{end:?}"),
            }
        }
        assert_eq!((&rest[..4], files.len()), (&b"cdef"[..], 0));
        assert_eq!(other.receive_with_files(&mut rest, &mut files), Ok(Progress::Blocked));
        drop(one);
        assert_eq!(other.receive_with_files(&mut rest, &mut files), Ok(Progress::Closed));
    }

    #[test]
    fn all_files_of_a_message_arrive_and_only_a_unix_stream_is_a_socket_to_send_to() {
        let (one, other) = UnixStream::pair().expect("sockets");
        let file = memory_file(0).expect("a file");
        let mut control: ControlRoom = [0; 129];
        let mut vector = libc::iovec { iov_base: b"x".as_ptr().cast_mut().cast(), iov_len: 1 };
        let mut message = message_of(&mut vector);
        (message.msg_control, message.msg_controllen) = (control.as_mut_ptr().cast(), size_of::<ControlRoom>() as _);
        // SAFETY: the control room has a head and this many descriptors, and all of it lives across the call.
        unsafe {
            let head = libc::CMSG_FIRSTHDR(&raw const message);
            ((*head).cmsg_level, (*head).cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
            let len = u32::try_from(PASSED_FILES_MAX * size_of::<RawFd>()).expect("short");
            (*head).cmsg_len = libc::CMSG_LEN(len) as _;
            let data = libc::CMSG_DATA(head).cast::<RawFd>();
            (0..PASSED_FILES_MAX).for_each(|nth| data.add(nth).write_unaligned(file.as_raw_fd()));
            assert_eq!(libc::sendmsg(one.as_raw_fd(), &raw const message, 0), 1);
        }
        let mut files = Vec::new();
        let other = Socket::from(other);
        assert_eq!(other.receive_with_files(&mut [0; 2], &mut files), Ok(Progress::Bytes(1)));
        assert_eq!(files.len(), PASSED_FILES_MAX);
        assert!(Socket::passed(files.pop().expect("many")).is_err());
        let datagram = std::net::UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        assert!(Socket::passed(datagram.into()).is_err() && Socket::passed(one.into()).is_ok());
    }
}
