//! Finding servers and sending them commands.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::protocol::{read_response, write_request, Command, ServerAnswer, LINE_BYTES_MAX};
use crate::failure::{unknown_array, Exit, Failure};
use crate::members::word_of;
use crate::model::{ArrayModel, HealthWord};
use crate::registry::{raw_drive_number, Registry};
use openraid_status::shell_quoting::command;
use openraid_units::ArrayLevel;

/// Maximum time of an answer. Stopping an array waits for its members.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
/// Maximum time of a server's end after a stop.
const END_TIME_MAX: Duration = Duration::from_secs(60);
/// Interval of the search for servers while one is expected.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// A connection to one server.
#[derive(Debug)]
pub struct ControlConnection {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

impl ControlConnection {
    /// Connect to the server at this socket.
    ///
    /// # Errors
    /// No server runs; the text says how to start one.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let stream = UnixStream::connect(path).map_err(|error| {
            Failure::cannot_tell(format!(
                "no server answers at {} ({error}); start one with `openraid serve NAME`, or name its socket with \
                 --control",
                path.display()
            ))
        })?;
        let silent = |error| Failure::cannot_tell(format!("the server at {}: {error}", path.display()));
        stream.set_read_timeout(Some(ANSWER_TIME_MAX)).map_err(silent)?;
        stream.set_write_timeout(Some(ANSWER_TIME_MAX)).map_err(silent)?;
        Ok(Self { path: path.into(), stream: BufReader::new(stream) })
    }

    /// Send a command, and wait for the answer.
    ///
    /// # Errors
    /// The server's refusal, or it does not answer.
    pub fn ask(&mut self, command: &Command) -> Result<ServerAnswer, Failure> {
        let silent = |error: std::io::Error| {
            Failure::cannot_tell(format!("the server at {} does not answer: {error}", self.path.display()))
        };
        self.stream.get_mut().write_all(write_request(command).as_bytes()).map_err(silent)?;
        let mut line = String::new();
        let read = (&mut self.stream).take(LINE_BYTES_MAX).read_line(&mut line).map_err(silent)?;
        if read == 0 || !line.ends_with('\n') {
            return Err(Failure::cannot_tell(format!("the server at {} went away", self.path.display())));
        }
        read_response(&line)
    }

    /// Wait until the server's process has ended, which closes the connection: its members and sockets can be used
    /// again. Returns after the maximum time in any case.
    pub fn wait_for_end(&mut self) {
        let until = Instant::now() + END_TIME_MAX;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // A timeout of zero would mean no timeout.
            if left.is_zero() || self.stream.get_ref().set_read_timeout(Some(left)).is_err() {
                return;
            }
            // No command is sent any more: the next read is the end, or a line that no caller waits for.
            if !self.stream.read(&mut [0; 64]).is_ok_and(|count| count > 0) {
                return;
            }
        }
    }

    /// Query one array.
    ///
    /// # Errors
    /// As [`ControlConnection::ask`].
    pub fn show(&mut self, array: &str) -> Result<ArrayModel, Failure> {
        match self.ask(&Command::Show { array: array.into() })? {
            ServerAnswer::Array(array) => Ok(*array),
            _ => Err(Failure::cannot_tell("unexpected answer of the server: it may be of another version")),
        }
    }

    /// Query all arrays.
    ///
    /// # Errors
    /// As [`ControlConnection::ask`].
    pub fn list(&mut self) -> Result<Vec<ArrayModel>, Failure> {
        let mut arrays = self.list_wanted()?;
        arrays.retain(|array| array.health != HealthWord::Offline);
        Ok(arrays)
    }

    /// The arrays that the server serves, and the arrays that it should serve and could not start.
    ///
    /// # Errors
    /// As [`ControlConnection::ask`].
    pub fn list_wanted(&mut self) -> Result<Vec<ArrayModel>, Failure> {
        match self.ask(&Command::List)? {
            ServerAnswer::Arrays(arrays) => Ok(arrays),
            _ => Err(Failure::cannot_tell("unexpected answer of the server: it may be of another version")),
        }
    }
}

#[derive(Debug)]
pub struct ControlServers {
    asked: Option<PathBuf>,
    folder: PathBuf,
    registry: Registry,
}

impl ControlServers {
    /// The given server, or all servers of this user. The registry has the names of arrays that are not served.
    pub fn new(asked: Option<&Path>, registry: Registry) -> Self {
        Self { asked: asked.map(Path::to_path_buf), folder: super::folder(), registry }
    }

    /// A connection to each of them. Sockets without a listener are left out.
    ///
    /// # Errors
    /// The server that was asked for does not answer.
    pub fn connect(&self) -> Result<Vec<ControlConnection>, Failure> {
        if let Some(path) = &self.asked {
            return Ok(vec![ControlConnection::open(path)?]);
        }
        let Ok(entries) = fs::read_dir(&self.folder) else { return Ok(Vec::new()) };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "sock"));
        paths.sort();
        let mut all: Vec<ControlConnection> =
            paths.iter().filter_map(|path| ControlConnection::open(path).ok()).collect();
        if all.len() > 1 {
            // A socket for clients may be in this folder too. It does not answer commands.
            all.retain_mut(|client| client.ask(&Command::Hello).is_ok());
        }
        Ok(all)
    }

    /// The server that serves this array, if one does.
    ///
    /// # Errors
    /// The server that was asked for does not answer.
    pub fn serving(&self, array: &str) -> Result<Option<ControlConnection>, Failure> {
        for mut connection in self.connect()? {
            let arrays = connection.list();
            if arrays.is_ok_and(|arrays| arrays.iter().any(|known| known.name == array)) {
                return Ok(Some(connection));
            }
        }
        Ok(None)
    }

    /// Wait until a server serves this array, or the raw drives with this name. A server answers here only after
    /// clients can connect.
    ///
    /// # Errors
    /// No server serves it after this time.
    pub fn wait_for(&self, array: &str, time: Duration) -> Result<(), Failure> {
        let until = Instant::now() + time;
        loop {
            // A socket that does not exist yet is not an answer either.
            let raw = || self.raw_drives(array).is_ok_and(|raw| !raw.is_empty());
            if matches!(self.serving(array), Ok(Some(_))) || raw() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(Failure::cannot_tell(format!(
                    "no server serves an array named {array:?} after {} s; see what `openraid serve` said",
                    time.as_secs()
                )));
            }
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// The raw drives with one name, each an export of its own: `NAME-0`, `NAME-1` and so on.
    ///
    /// # Errors
    /// The server that was asked for does not answer.
    pub fn raw_drives(&self, name: &str) -> Result<Vec<ArrayModel>, Failure> {
        let mut found = Vec::new();
        for mut connection in self.connect()? {
            let arrays =
                connection.list().unwrap_or_default().into_iter().filter(|known| known.level == ArrayLevel::Jbod);
            found.extend(arrays.filter_map(|known| Some((raw_drive_number(&known.name, name)?, known))));
        }
        found.sort_by_key(|(nth, _)| *nth);
        Ok(found.into_iter().map(|(_, known)| known).collect())
    }

    /// The array, with the reason, if a server should serve it and does not.
    ///
    /// # Errors
    /// The server that was asked for does not answer.
    pub fn offline(&self, array: &str) -> Result<Option<ArrayModel>, Failure> {
        for mut connection in self.connect()? {
            let arrays = connection.list_wanted().unwrap_or_default();
            if let Some(array_known) = arrays.into_iter().find(|known| known.name == array) {
                return Ok(array_known.offline.is_some().then_some(array_known));
            }
        }
        Ok(None)
    }

    /// The server that serves this array, for a verb that needs it.
    ///
    /// # Errors
    /// No server serves it; the text says how to serve it.
    pub fn must_serve(&self, array: &str) -> Result<ControlConnection, Failure> {
        if let Some(server) = self.serving(array)? {
            return Ok(server);
        }
        let raw: Vec<String> = self.raw_drives(array)?.into_iter().map(|known| known.name).collect();
        if !raw.is_empty() {
            return Err(Failure::refused(format!(
                "{array} is served as raw drives: {}; name one of them to stop it. They have no redundancy, so none can \
                 be failed, replaced or checked",
                raw.join(", ")
            )));
        }
        let known = self.registry.find(array);
        let uuid = known.as_ref().ok().and_then(|known| known.as_ref()?.uuid.as_deref());
        let named = word_of(array, uuid).to_owned();
        if let Some(remembered) = self.offline(array)? {
            return Err(Failure::new(Exit::Failed, offline_text(&remembered)));
        }
        if known?.is_none() {
            return Err(unknown_array(array));
        }
        Err(Failure::cannot_tell(format!("{array} is not served; start it with `{}`", command("serve", [named]))))
    }
}

/// Why an array is not served, and what helps.
pub fn offline_text(array: &ArrayModel) -> String {
    let named = word_of(&array.name, array.uuid.as_deref());
    let (doctor, assemble) = (command("doctor", [named]), command("assemble", [named]));
    let reason = array.offline.as_deref().unwrap_or("the reason is not known");
    format!("{} is OFFLINE: {reason}; see `{doctor}`, then `{assemble}`", array.name)
}
