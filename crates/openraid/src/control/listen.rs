//! The server's end of the control socket: one thread for each of a few clients. A client that waits does not delay
//! others.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use openraid_sys::{listen_patiently, Listener};

use super::protocol::{read_request, write_response, Command, ServerAnswer, LINE_BYTES_MAX};
use crate::failure::{Failure, Obstacle};

/// Maximum number of clients at once; a further one gets an error.
const CLIENTS_MAX: usize = 32;
/// A client that sends nothing for this long is disconnected.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Maximum length of a request: the longest one names the members of a large array.
const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// The end of the name of a socket to which clients of NBD over TLS are connected.
pub const TLS_SUFFIX: &str = ".nbd-tls";

const _: () = assert!(REQUEST_BYTES_MAX <= LINE_BYTES_MAX);

/// The server that answers.
pub trait Answerer: Send + Sync + 'static {
    /// Carry a command out.
    ///
    /// # Errors
    /// The refusal in words.
    fn answer(&self, command: Command) -> Result<ServerAnswer, Failure>;

    /// A client has made this change: the array if there is one, the command in words, and what came of it.
    fn changed(&self, _array: Option<&str>, _what: &str) {}

    /// The answer to [`Command::StopAll`] is sent: the server may end now, because the client has its answer.
    fn end(&self);
}

/// Listen at the given socket, or at one named after this process. Returns its path, and a guard that removes its file
/// when it is dropped.
///
/// # Errors
/// Another server listens there, or the folder cannot be made.
pub fn listen(asked: Option<&Path>, answerer: Arc<dyn Answerer>) -> Result<(PathBuf, Listener), Failure> {
    let path = match asked {
        Some(path) => path.to_path_buf(),
        None => {
            let folder = make_folder()?;
            folder.join(format!("{}.sock", std::process::id()))
        }
    };
    let listener =
        listen_patiently(|| Listener::unix(&path)).map_err(|error| Failure::from(error).of("control socket"))?;
    let broken = |error: std::io::Error| Failure::failed(format!("control socket {}: {error}", path.display()));
    let accepting = UnixListener::from(listener.as_fd().try_clone_to_owned().map_err(broken)?);
    accepting.set_nonblocking(false).map_err(broken)?;
    let accept = move || accept(&accepting, &answerer);
    thread::Builder::new().name("control".into()).spawn(accept).map_err(broken)?;
    Ok((path, listener))
}

/// The folder of this user's control sockets. It is made if it does not exist.
///
/// # Errors
/// It cannot be made.
pub fn make_folder() -> Result<PathBuf, Failure> {
    let folder = super::folder();
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|error| {
        Failure::failed(format!(
            "the folder {} for the control socket cannot be made: {error}; name a socket with --control",
            folder.display()
        ))
    })?;
    clear_stale(&folder);
    Ok(folder)
}

/// Remove the sockets that ended servers have left in this folder: each is named after its process.
fn clear_stale(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_suffix(".sock").or(name.strip_suffix(TLS_SUFFIX)));
        let process = number.and_then(|number| number.parse::<u32>().ok());
        let Some(process) = process else { continue };
        let is_gone = !Path::new(&format!("/proc/{process}")).exists();
        // A server whose process is not visible here still answers.
        let refuses = || UnixStream::connect(&path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
        if is_gone && refuses() {
            // If another server is faster, the file is gone as well.
            let _ = fs::remove_file(&path);
        }
    }
}

fn accept(listener: &UnixListener, answerer: &Arc<dyn Answerer>) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // For example no descriptors: a pause helps, polling does not.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
            clients.fetch_sub(1, Ordering::Relaxed);
            let refusal = Failure::failed(format!("{CLIENTS_MAX} commands are being carried out; try again"));
            refuse(stream, refusal);
            continue;
        }
        let (answerer, clients) = (Arc::clone(answerer), Arc::clone(&clients));
        let counted = Arc::clone(&clients);
        let serve = move || {
            // A client that disconnects in the middle is dropped.
            let _ = serve(&stream, answerer.as_ref());
            counted.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("control-client".into()).spawn(serve).is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn refuse(mut stream: UnixStream, failure: Failure) {
    let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
    let _ = stream.write_all(write_response(Err(failure)).as_bytes());
}

fn serve(stream: &UnixStream, answerer: &dyn Answerer) -> std::io::Result<()> {
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut line = Vec::new();
        let read = (&mut reader).take(REQUEST_BYTES_MAX).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let whole = line.last() == Some(&b'\n');
        let request = match std::str::from_utf8(&line) {
            Ok(text) if whole => read_request(text),
            _ => Err(Failure::usage(format!("a request is one line of JSON of at most {REQUEST_BYTES_MAX} bytes"))),
        };
        let is_end = matches!(request, Ok(Command::StopAll { .. }));
        let result = request.and_then(|command| {
            let change = command.change().map(|(array, what)| (array.map(str::to_owned), what));
            let answer = answerer.answer(command);
            let came = match &answer {
                // A question back is no change.
                Ok(ServerAnswer::Confirm { .. }) => None,
                Ok(_) => Some("done"),
                Err(failure) => (failure.obstacle == Obstacle::NotKept).then_some("in force, not kept"),
            };
            if let (Some((array, what)), Some(came)) = (change, came) {
                answerer.changed(array.as_deref(), &format!("{what}: {came}"));
            }
            answer
        });
        let ends = is_end && result.is_ok();
        let written = writer.write_all(write_response(result).as_bytes());
        if ends {
            answerer.end();
        }
        written?;
        if !whole {
            return Ok(());
        }
    }
}
