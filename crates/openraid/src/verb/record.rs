//! `openraid record`: records the requests to a served array as a trace. The trace has times, sizes and addresses, and
//! no data.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Context;
use crate::arguments::RecordArguments;
use crate::control::{Command, ControlConnection, ServerAnswer};
use crate::failure::{Exit, Failure, Outcome};
use crate::quantity::counted;
use crate::story::{RequestModel, RequestsModel};

/// Time between two queries to the server. The steps that the server keeps are enough for about 40,000 requests per
/// second.
const INTERVAL: Duration = Duration::from_millis(100);
/// Unit of addresses in a trace: one sector.
const SECTOR: u64 = 512;
/// File name in the trace. An iolog needs one, and the player replaces it.
const NAME: &str = "array";

/// What was recorded.
#[derive(Serialize, Default, utoipa::ToSchema)]
pub(super) struct RecordBody {
    /// Name of the array.
    array: String,
    /// Path of the file with the recorded requests.
    file: String,
    /// Number of requests that were recorded.
    requests: u64,
    /// Number of trims and zero writes, which a trace cannot hold.
    left_out: u64,
    /// Number of requests that covered no whole sectors; they are recorded with all sectors that they touch.
    widened: u64,
    /// Number of steps that came too fast to be recorded: requests may be missing.
    lost_steps: u64,
    /// Duration of the recording.
    seconds: u64,
    /// Did the server end before the time was over?
    server_ended: bool,
}

/// Runs the verb.
///
/// # Errors
/// No server serves the array, or the file exists already or cannot be written.
pub fn run(arguments: &RecordArguments, context: &Context) -> Outcome {
    let name = arguments.array.as_str();
    let mut server = context.servers.must_serve(name)?;
    // Only requests from now on are recorded, and only if the array exists.
    let mut since = requests(&mut server, name, u64::MAX)?.next;
    let mut log = Log::create(&arguments.out)?;
    let start = Instant::now();
    let over =
        |start: Instant| arguments.seconds.is_some_and(|seconds| start.elapsed() >= Duration::from_secs(seconds));
    let mut body =
        RecordBody { array: name.into(), file: arguments.out.display().to_string(), ..RecordBody::default() };
    context.output.say(&format!("recording {name} into {}; Ctrl-C ends it", body.file));
    loop {
        let last = over(start);
        match requests(&mut server, name, since) {
            Ok(found) => {
                body.lost_steps += found.lost_steps;
                since = found.next;
                for request in &found.requests {
                    log.put(request, &mut body)?;
                }
                log.flush()?;
                if found.more {
                    continue;
                }
            }
            Err(_) if body.requests > 0 || start.elapsed() > INTERVAL => body.server_ended = true,
            Err(error) => return Err(error),
        }
        if last || body.server_ended {
            break;
        }
        std::thread::sleep(INTERVAL);
    }
    body.seconds = start.elapsed().as_secs();
    Ok(context.output.answer(Exit::Fine, &body, &text(&body)))
}

fn requests(server: &mut ControlConnection, array: &str, since: u64) -> Result<RequestsModel, Failure> {
    match server.ask(&Command::Requests { array: array.into(), since })? {
        ServerAnswer::Requests(found) => Ok(*found),
        _ => Err(Failure::cannot_tell("unexpected answer of the server: it may be of another version")),
    }
}

fn text(body: &RecordBody) -> String {
    let mut lines = vec![format!(
        "{}: {} in {} s into {}",
        body.array,
        counted(body.requests, "request", "requests"),
        body.seconds,
        body.file
    )];
    if body.left_out > 0 {
        lines.push(format!(
            "  {} left out: a trace has none",
            counted(body.left_out, "trim or zero write", "trims and zero writes")
        ));
    }
    if body.widened > 0 {
        lines.push(format!(
            "  {} recorded with the whole sectors that they touch",
            counted(body.widened, "request", "requests")
        ));
    }
    if body.lost_steps > 0 {
        lines.push(format!("  CAUTION: requests came too fast and are missing (steps lost: {})", body.lost_steps));
    }
    if body.server_ended {
        lines.push("  the server has ended".into());
    }
    if body.requests == 0 {
        lines.push("  no request came: the file has no requests to play".into());
    }
    lines.join("\n")
}

/// An iolog that is being written.
struct Log<'a> {
    path: &'a Path,
    file: BufWriter<File>,
    /// Time of the first request.
    zero_ns: Option<u64>,
}

impl<'a> Log<'a> {
    fn create(path: &'a Path) -> Result<Self, Failure> {
        let file = File::create_new(path).map_err(|error| {
            Failure::refused(format!(
                "{}: it cannot be made: {error}; name a new file in a folder that exists",
                path.display()
            ))
        })?;
        let mut log = Self { path, file: BufWriter::new(file), zero_ns: None };
        log.line("fio version 3 iolog")?;
        log.line(&format!("0 {NAME} add"))?;
        log.line(&format!("0 {NAME} open"))?;
        Ok(log)
    }

    fn failed(&self, error: &std::io::Error) -> Failure {
        Failure::failed(format!(
            "{}: it cannot be written: {error}; make room or name another file",
            self.path.display()
        ))
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        writeln!(self.file, "{line}").map_err(|error| self.failed(&error))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| self.failed(&error))
    }

    fn put(&mut self, request: &RequestModel, body: &mut RecordBody) -> Result<(), Failure> {
        let Some(line) = line_of(request, body) else { return Ok(()) };
        let zero = *self.zero_ns.get_or_insert(request.at_ns);
        let now_us = request.at_ns.saturating_sub(zero) / 1000;
        body.requests += 1;
        self.line(&format!("{now_us} {NAME} {line}"))
    }
}

/// The words for a request, if a trace can express it.
fn line_of(request: &RequestModel, body: &mut RecordBody) -> Option<String> {
    let word = match request.kind.as_str() {
        "read" => "read",
        "write" => "write",
        "flush" => return Some("sync 0 0".into()),
        _ => {
            body.left_out += 1;
            return None;
        }
    };
    let (first, end) = (request.offset_bytes, request.offset_bytes + request.len_bytes);
    let (whole, whole_end) = (first / SECTOR * SECTOR, end.next_multiple_of(SECTOR));
    body.widened += u64::from((whole, whole_end) != (first, end));
    Some(format!("{word} {whole} {}", whole_end - whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_the_times_sizes_and_places_of_the_requests() {
        let path = std::env::temp_dir().join(format!("openraid-record-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut log = Log::create(&path).expect("made");
        let mut body = RecordBody::default();
        let request = |at_ns, kind: &str, offset_bytes, len_bytes| RequestModel {
            at_ns,
            kind: kind.into(),
            offset_bytes,
            len_bytes,
        };
        for request in [
            request(5_000_000_999, "read", 4096, 8192),
            request(5_000_400_999, "trim", 0, 4096),
            request(5_001_500_999, "write", 1000, 100),
            request(5_001_500_999, "flush", 0, 0),
            request(9_000_000_999, "write", 0, 512),
        ] {
            log.put(&request, &mut body).expect("written");
        }
        log.flush().expect("written");
        assert_eq!((body.requests, body.left_out, body.widened), (4, 1, 1));
        let text = std::fs::read_to_string(&path).expect("there");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "fio version 3 iolog",
                "0 array add",
                "0 array open",
                "0 array read 4096 8192",
                "1500 array write 512 1024",
                "1500 array sync 0 0",
                "4000000 array write 0 512",
            ]
        );
        assert!(Log::create(&path).is_err(), "nothing is overwritten");
        std::fs::remove_file(&path).expect("removed");
    }
}
