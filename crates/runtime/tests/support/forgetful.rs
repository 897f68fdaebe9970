//! An NBD server with a drive whose cache is volatile: when it is restarted, each sector that was not flushed is the last
//! flushed or the last written one, by chance. It shares no code with the project.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use super::random::Random;

const SECTOR: usize = 512;
const GO: u32 = 7;
const HAS_FLAGS_FLUSH_FUA: u16 = 1 | 1 << 2 | 1 << 3;
const EIO: u32 = 5;
const ESHUTDOWN: u32 = 108;

/// What the server does with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mood {
    Serving,
    /// Every request is answered with "shutting down".
    Leaving,
    /// Every flush fails.
    FailingFlushes,
}

struct State {
    durable: Vec<u8>,
    current: Vec<u8>,
    unflushed: BTreeSet<usize>,
    /// Connections of an earlier life do nothing any more.
    life: u64,
    mood: Mood,
    flushes: u64,
    connections: Vec<UnixStream>,
}

/// The server; it ends with the test.
pub struct Forgetful {
    state: Arc<Mutex<State>>,
    socket: PathBuf,
}

impl Forgetful {
    pub fn start(socket: &Path, bytes: usize) -> Self {
        let state = State {
            durable: vec![0; bytes],
            current: vec![0; bytes],
            unflushed: BTreeSet::new(),
            life: 0,
            mood: Mood::Serving,
            flushes: 0,
            connections: Vec::new(),
        };
        let server = Self { state: Arc::new(Mutex::new(state)), socket: socket.to_owned() };
        server.listen();
        server
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread has panicked")
    }

    fn listen(&self) {
        let _ = std::fs::remove_file(&self.socket);
        let listener = UnixListener::bind(&self.socket).expect("a socket");
        let state = Arc::clone(&self.state);
        let life = self.state().life;
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut locked = state.lock().expect("no thread has panicked");
                if locked.life != life {
                    return;
                }
                locked.connections.push(stream.try_clone().expect("a descriptor"));
                let state = Arc::clone(&state);
                thread::spawn(move || serve(stream, &state, life));
            }
        });
    }

    /// The process ends and takes its cache with it.
    pub fn kill(&self, random: &mut Random) {
        let _ = std::fs::remove_file(&self.socket);
        let mut state = self.state();
        state.life += 1;
        state.mood = Mood::Serving;
        state.connections.drain(..).for_each(|stream| drop(stream.shutdown(std::net::Shutdown::Both)));
        let State { durable, current, unflushed, .. } = &mut *state;
        for sector in std::mem::take(unflushed) {
            let range = sector * SECTOR..(sector + 1) * SECTOR;
            if random.below(3) == 0 {
                durable[range.clone()].copy_from_slice(&current[range]);
            } else {
                current[range.clone()].copy_from_slice(&durable[range]);
            }
        }
    }

    pub fn start_again(&self) {
        self.listen();
    }

    pub fn restart(&self, random: &mut Random) {
        self.kill(random);
        self.start_again();
    }

    pub fn set_mood(&self, mood: Mood) {
        self.state().mood = mood;
    }

    pub fn flushes(&self) -> u64 {
        self.state().flushes
    }

    /// Everything on it, as if another drive had taken its name.
    pub fn exchange(&self, bytes: Vec<u8>) -> Vec<u8> {
        let mut state = self.state();
        state.unflushed.clear();
        state.current.clone_from(&bytes);
        std::mem::replace(&mut state.durable, bytes)
    }
}

impl State {
    fn execute(&mut self, command: u16, is_fua: bool, start: usize, payload: &[u8]) -> u32 {
        match (command, self.mood) {
            (_, Mood::Leaving) => ESHUTDOWN,
            (3, Mood::FailingFlushes) => EIO,
            (1, _) => {
                self.current[start..start + payload.len()].copy_from_slice(payload);
                let sectors = start / SECTOR..(start + payload.len()) / SECTOR;
                if is_fua {
                    self.durable[start..start + payload.len()].copy_from_slice(payload);
                    self.unflushed.retain(|sector| !sectors.contains(sector));
                } else {
                    self.unflushed.extend(sectors);
                }
                0
            }
            (3, _) => {
                self.flushes += 1;
                self.durable.copy_from_slice(&self.current);
                self.unflushed.clear();
                0
            }
            _ => 0,
        }
    }
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

fn serve(mut stream: UnixStream, state: &Mutex<State>, life: u64) {
    // The other side may leave at any moment.
    let _ = greet(&mut stream, state).and_then(|()| answer(&mut stream, state, life));
}

fn greet(stream: &mut UnixStream, state: &Mutex<State>) -> std::io::Result<()> {
    stream.write_all(b"NBDMAGICIHAVEOPT\0\x03")?;
    stream.read_exact(&mut [0; 4])?;
    loop {
        let mut head = [0; 16];
        stream.read_exact(&mut head)?;
        let option = be32(&head[8..12]);
        let mut rest = vec![0; be32(&head[12..16]) as usize];
        stream.read_exact(&mut rest)?;
        let mut reply = |kind: u32, data: &[u8]| {
            let mut out = 0x0003_e889_0455_65a9_u64.to_be_bytes().to_vec();
            let len = u32::try_from(data.len()).expect("short");
            [option, kind, len].iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
            out.extend_from_slice(data);
            stream.write_all(&out)
        };
        if option != GO {
            reply(0x8000_0001, &[])?;
            continue;
        }
        let size = state.lock().expect("no thread has panicked").current.len() as u64;
        reply(3, &[[0, 0].as_slice(), &size.to_be_bytes(), &HAS_FLAGS_FLUSH_FUA.to_be_bytes()].concat())?;
        return reply(1, &[]);
    }
}

fn answer(stream: &mut UnixStream, state: &Mutex<State>, life: u64) -> std::io::Result<()> {
    loop {
        let mut head = [0; 28];
        stream.read_exact(&mut head)?;
        let flags = u16::from_be_bytes([head[4], head[5]]);
        let command = u16::from_be_bytes([head[6], head[7]]);
        let start = usize::try_from(u64::from_be_bytes(head[16..24].try_into().expect("eight"))).expect("64 bits");
        let len = be32(&head[24..28]) as usize;
        let mut payload = vec![0; if command == 1 { len } else { 0 }];
        stream.read_exact(&mut payload)?;
        let mut state = state.lock().expect("no thread has panicked");
        if command == 2 || state.life != life {
            return Ok(());
        }
        let error = state.execute(command, flags & 1 != 0, start, &payload);
        let mut reply = [&0x6744_6698_u32.to_be_bytes()[..], &error.to_be_bytes(), &head[8..16]].concat();
        if command == 0 && error == 0 {
            reply.extend_from_slice(&state.current[start..start + len]);
        }
        drop(state);
        stream.write_all(&reply)?;
    }
}
