//! A client that speaks the protocol's simplest words over a unix socket, one request after the other.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::WRITE;

/// A request that is not answered within this time is not.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);

/// Read the greeting, answer it (fixed newstyle without zeroes), and send an option.
fn begin(stream: &mut UnixStream, option: u32, payload: &[u8]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    stream.read_exact(&mut [0; 18])?;
    let mut words = 3_u32.to_be_bytes().to_vec();
    words.extend_from_slice(b"IHAVEOPT");
    words.extend_from_slice(&option.to_be_bytes());
    words.extend_from_slice(&u32::try_from(payload.len()).expect("a short name").to_be_bytes());
    words.extend_from_slice(payload);
    stream.write_all(&words)
}

/// Ask for an export by the option that is answered in words. The kind of the first answer, and its text.
pub fn ask_for(socket: &Path, export: &str) -> (u32, String) {
    const GO: u32 = 7;
    let mut stream = UnixStream::connect(socket).expect("the server listens");
    let mut payload = u32::try_from(export.len()).expect("a short name").to_be_bytes().to_vec();
    payload.extend_from_slice(export.as_bytes());
    payload.extend_from_slice(&[0, 0]);
    begin(&mut stream, GO, &payload).expect("sent");
    let mut head = [0; 20];
    stream.read_exact(&mut head).expect("an answer");
    let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let mut text = vec![0; usize::try_from(number(16)).expect("short")];
    stream.read_exact(&mut text).expect("its text");
    (number(12), String::from_utf8_lossy(&text).into_owned())
}

/// A connection to one export.
pub struct Client {
    stream: UnixStream,
    size: u64,
}

impl Client {
    /// Connect to an export.
    pub fn open(socket: &Path, export: &str) -> Self {
        let stream = UnixStream::connect(socket).expect("the server listens");
        Self::choose(stream, export).expect("an export")
    }

    /// Choose an export on a new connection.
    ///
    /// # Errors
    /// The server has closed the connection.
    pub fn choose(mut stream: UnixStream, export: &str) -> std::io::Result<Self> {
        // The option that asks for an export by name.
        begin(&mut stream, 1, export.as_bytes())?;
        let mut told = [0; 10];
        stream.read_exact(&mut told)?;
        let size = u64::from_be_bytes(told[..8].try_into().expect("eight bytes"));
        Ok(Self { stream, size })
    }

    /// The size that the server told at the connection.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// One request: command, offset, payload (of a read: as long as that). The error of the answer; 0 is none.
    pub fn ask(&mut self, command: u16, offset: u64, payload: &[u8]) -> u32 {
        self.try_ask(command, offset, payload).expect("an answer")
    }

    /// The same.
    ///
    /// # Errors
    /// The server has closed the connection.
    pub fn try_ask(&mut self, command: u16, offset: u64, payload: &[u8]) -> std::io::Result<u32> {
        let mut request = Vec::new();
        request.extend_from_slice(&0x2560_9513_u32.to_be_bytes());
        request.extend_from_slice(&[0, 0]);
        request.extend_from_slice(&command.to_be_bytes());
        request.extend_from_slice(&7_u64.to_be_bytes());
        request.extend_from_slice(&offset.to_be_bytes());
        request.extend_from_slice(&u32::try_from(payload.len()).expect("a short one").to_be_bytes());
        if command == WRITE {
            request.extend_from_slice(payload);
        }
        self.stream.write_all(&request)?;
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply)?;
        let error = u32::from_be_bytes([reply[4], reply[5], reply[6], reply[7]]);
        if command == super::READ && error == 0 {
            self.stream.read_exact(&mut vec![0; payload.len()])?;
        }
        Ok(error)
    }

    /// Send requests of 4 KiB (command, offset) at once, written blocks filled with this byte, and wait for all answers, which come
    /// in any order.
    ///
    /// # Errors
    /// The server has closed the connection, or refuses one of them.
    pub fn burst(&mut self, requests: &[(u16, u64)], fill: u8) -> std::io::Result<()> {
        const LEN: usize = 4096;
        let mut words = Vec::with_capacity(requests.len() * (28 + LEN));
        for (cookie, (command, offset)) in requests.iter().enumerate() {
            words.extend_from_slice(&0x2560_9513_u32.to_be_bytes());
            words.extend_from_slice(&[0, 0]);
            words.extend_from_slice(&command.to_be_bytes());
            words.extend_from_slice(&(cookie as u64).to_be_bytes());
            words.extend_from_slice(&offset.to_be_bytes());
            words.extend_from_slice(&u32::try_from(LEN).expect("4 KiB").to_be_bytes());
            if *command == WRITE {
                words.resize(words.len() + LEN, fill);
            }
        }
        self.stream.write_all(&words)?;
        let (mut reply, mut data) = ([0; 16], vec![0; LEN]);
        for _ in requests {
            self.stream.read_exact(&mut reply)?;
            if reply[4..8] != [0; 4] {
                return Err(std::io::Error::other("the request was refused"));
            }
            let cookie = u64::from_be_bytes(reply[8..].try_into().expect("eight bytes"));
            if requests[usize::try_from(cookie).expect("small")].0 != WRITE {
                self.stream.read_exact(&mut data)?;
            }
        }
        Ok(())
    }

    /// Read a block of 4 KiB.
    ///
    /// # Errors
    /// The server has closed the connection, or refuses it.
    pub fn read_block(&mut self, offset: u64) -> std::io::Result<Vec<u8>> {
        let mut request = Vec::new();
        request.extend_from_slice(&0x2560_9513_u32.to_be_bytes());
        request.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        request.extend_from_slice(&offset.to_be_bytes());
        request.extend_from_slice(&4096_u32.to_be_bytes());
        self.stream.write_all(&request)?;
        let (mut reply, mut data) = ([0; 16], vec![0; 4096]);
        self.stream.read_exact(&mut reply)?;
        if reply[4..8] != [0; 4] {
            return Err(std::io::Error::other("the read was refused"));
        }
        self.stream.read_exact(&mut data)?;
        Ok(data)
    }
}
