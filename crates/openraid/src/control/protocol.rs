//! The messages of the control socket.

use serde::{Deserialize, Serialize};

pub use openraid_status::{Command, ReshapePlanModel, ServerModel};

use crate::alarms::test_alarm::TestModel;
use crate::alarms::AlarmModel;
use crate::desired::model::{ConfigModel, ReloadModel};
use crate::failure::{Exit, Failure};
use crate::model::{ArrayModel, JournalModel, LimitModel, LossModel};
use crate::story::{RequestsModel, StoriesModel};

/// The version of the protocol. Program and server are of one release: no other version is understood, so the protocol has no
/// former names of fields. Files that outlast a release (event log, alarms, configuration) do.
pub const VERSION: u32 = 2;
/// Maximum length of a message: an array of 128 members with all its figures takes a tenth of it.
pub const LINE_BYTES_MAX: u64 = 4 << 20;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerAnswer {
    Server(ServerModel),
    Arrays(Vec<ArrayModel>),
    Array(Box<ArrayModel>),
    /// The journal, if there is one.
    Journal(Option<Box<JournalModel>>),
    /// The desired state in force.
    Config(Box<ConfigModel>),
    /// The result of a reload.
    Reloaded(Box<ReloadModel>),
    Alarms(Vec<AlarmModel>),
    /// The names of alarms that the command acknowledged.
    Acknowledged(Vec<String>),
    /// The result of a test alarm.
    Tested(Vec<TestModel>),
    /// The limit of an array.
    Limit(Box<LimitModel>),
    Stories(Box<StoriesModel>),
    /// Requests of hosts.
    Requests(Box<RequestsModel>),
    /// The data that a journal holds for an array, and whether they were discarded.
    Loss(LossModel),
    /// What a change of shape would do.
    ReshapePlan(Box<ReshapePlanModel>),
    /// Nothing was done: a confirmation is needed.
    Confirm {
        /// The data that would be lost.
        text: String,
        /// The command to continue with.
        name: String,
    },
    /// The command was carried out: the result, and the array after it.
    Done {
        text: String,
        /// The array, if it still exists.
        array: Option<Box<ArrayModel>>,
    },
}

#[derive(Serialize, Deserialize)]
struct Request {
    v: u32,
    #[serde(flatten)]
    command: Command,
}

#[derive(Serialize, Deserialize)]
struct ErrorModel {
    exit: u8,
    text: String,
}

#[derive(Serialize, Deserialize)]
struct Response {
    v: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ok: Option<ServerAnswer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorModel>,
}

#[derive(Deserialize)]
struct VersionOnly {
    v: u32,
}

fn check_version(line: &str, other: &str) -> Result<(), Failure> {
    let version: VersionOnly = serde_json::from_str(line)
        .map_err(|error| Failure::failed(format!("the {other} speaks no openraid control protocol: {error}")))?;
    if version.v != VERSION {
        return Err(Failure::failed(format!(
            "the {other} speaks version {} of the control protocol, this program version {VERSION}; use the same \
             release of openraid on both sides",
            version.v
        )));
    }
    Ok(())
}

fn line_of<T: Serialize>(value: &T) -> String {
    let mut line =
        serde_json::to_string(value).unwrap_or_else(|error| panic!("bug: a message that is not JSON: {error}"));
    line.push('\n');
    line
}

/// A request as a line.
pub fn write_request(command: &Command) -> String {
    line_of(&Request { v: VERSION, command: command.clone() })
}

/// A request from a line.
///
/// # Errors
/// The line is not a request; in words.
pub fn read_request(line: &str) -> Result<Command, Failure> {
    check_version(line, "client")?;
    let request: Result<Request, _> = serde_json::from_str(line);
    request.map(|request| request.command).map_err(|error| Failure::usage(format!("unknown request: {error}")))
}

/// An answer as a line.
pub fn write_response(result: Result<ServerAnswer, Failure>) -> String {
    let (ok, error) = match result {
        Ok(answer) => (Some(answer), None),
        Err(failure) => (None, Some(ErrorModel { exit: failure.exit.code(), text: failure.text() })),
    };
    line_of(&Response { v: VERSION, ok, error })
}

/// An answer from a line.
///
/// # Errors
/// The server's refusal, or an answer that cannot be read.
pub fn read_response(line: &str) -> Result<ServerAnswer, Failure> {
    check_version(line, "server")?;
    let response: Response = serde_json::from_str(line)
        .map_err(|error| Failure::cannot_tell(format!("the server's answer is not understood: {error}")))?;
    match (response.ok, response.error) {
        (Some(answer), None) => Ok(answer),
        (_, Some(error)) => Err(Failure::new(Exit::from_code(error.exit), error.text)),
        (None, None) => Err(Failure::cannot_tell("the server's answer is empty")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_answers_come_back_as_they_went() {
        let commands = [
            Command::Hello,
            Command::Show { array: "a".into() },
            Command::Add { array: "a".into(), member: "/x".into(), span: Some(1), overwrite: false, split: false },
            Command::Set { array: "a".into(), settings: vec![("rebuild.rate".into(), "1M".into())], yes: true },
            Command::StopAll { yes: false },
        ];
        for command in commands {
            let line = write_request(&command);
            assert_eq!(line.lines().count(), 1);
            assert_eq!(read_request(&line), Ok(command));
        }
        let answer = ServerAnswer::Done { text: "two\nlines".into(), array: None };
        let line = write_response(Ok(answer.clone()));
        assert_eq!(line.lines().count(), 1);
        assert_eq!(read_response(&line), Ok(answer));
        let failure = Failure::new(Exit::Degraded, "why");
        assert_eq!(read_response(&write_response(Err(failure.clone()))), Err(failure));
    }

    #[test]
    fn the_form_of_a_request_is_the_documented_one() {
        let line = "{\"v\":2,\"do\":\"fail\",\"array\":\"data\",\"member\":\"/srv/d2\"}\n";
        let command = Command::Fail { array: "data".into(), member: "/srv/d2".into(), unsynced: false, device: None };
        assert_eq!(read_request(line), Ok(command.clone()));
        assert_eq!(write_request(&command), line);
    }

    #[test]
    fn invalid_messages_are_refused_with_a_reason() {
        for line in ["", "{", "{}", "[]", "{\"v\":1,\"do\":\"hello\"}", "{\"v\":2}", "{\"v\":2,\"do\":\"explode\"}"] {
            assert!(read_request(line).is_err(), "{line}");
            assert!(read_response(line).is_err(), "{line}");
        }
        assert!(read_request("{\"v\":1,\"do\":\"hello\"}").unwrap_err().text().contains("version 1"));
    }
}
