//! Sinks: the messages to a program, a web server, a mail server and the journal of systemd. The test has small
//! servers of its own.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::mpsc::{channel, Receiver};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::{Lab, Server};
use serde_json::Value;

/// The end of each alert in seconds and the whole of it, by its labels.
type Alerts = BTreeMap<String, (u64, Value)>;

/// A message that is not there after this time does not come.
const PATIENCE: Duration = Duration::from_secs(120);

fn array(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab
}

/// A service with these sinks.
fn serve(lab: &Lab, sinks: &str) -> Server {
    lab.configure(sinks);
    lab.serve_configured()
}

/// A program that writes down how it was called, a line each.
fn program(lab: &Lab) -> String {
    let path = lab.path("program");
    let script = format!(
        "#!/bin/sh\nprintf '%s|' \"$@\" >> {0}\nprintf '%s %s\\n' \"$OPENRAID_STATE\" \"$OPENRAID_LEVEL\" >> {0}\n",
        lab.path("calls").display()
    );
    fs::write(&path, script).expect("room");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    path.display().to_string()
}

/// The lines of a file, when there are at least `count`.
#[track_caller]
fn lines(lab: &Lab, name: &str, count: usize) -> Vec<String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(lab.path(name)).unwrap_or_default();
        if text.lines().count() >= count {
            return text.lines().map(ToOwned::to_owned).collect();
        }
        assert!(Instant::now() < until, "{count} lines are not in {text}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A web server that answers with this line. Returns the bodies that it receives.
fn web(listener: TcpListener, answer: &'static str) -> Receiver<(String, Value)> {
    let (sender, bodies) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            let mut reader = BufReader::new(&stream);
            let (mut first, mut len) = (String::new(), 0);
            reader.read_line(&mut first).expect("a request");
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a header");
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    len = value.trim().parse().expect("a number");
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; len];
            reader.read_exact(&mut body).expect("a body");
            write!(&stream, "HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").expect("it listens");
            let body = serde_json::from_slice(&body).expect("JSON");
            if sender.send((first.trim().to_owned(), body)).is_err() {
                return;
            }
        }
    });
    bodies
}

/// A mail server. Returns the lines of each session. With `refuses` it refuses all receivers.
fn mail(listener: TcpListener, refuses: bool) -> Receiver<Vec<String>> {
    let (sender, sessions) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            let mut out = &stream;
            let mut said = Vec::new();
            out.write_all(b"220 fake\r\n").expect("it listens");
            let mut in_data = false;
            for line in BufReader::new(&stream).lines().map_while(Result::ok) {
                let verb = line.get(..4).unwrap_or_default().to_ascii_uppercase();
                let answer = match verb.as_str() {
                    _ if in_data && line != "." => "",
                    _ if in_data => {
                        in_data = false;
                        "250 taken\r\n"
                    }
                    "DATA" => {
                        in_data = true;
                        "354 go on\r\n"
                    }
                    "RCPT" if refuses => "550 no such user\r\n",
                    "QUIT" => "221 bye\r\n",
                    _ => "250 fine\r\n",
                };
                let ends = verb == "QUIT" && !in_data;
                said.push(line);
                let _ = out.write_all(answer.as_bytes());
                if ends {
                    break;
                }
            }
            if sender.send(said).is_err() {
                return;
            }
        }
    });
    sessions
}

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

/// The alerts of a message, by their labels: when each ends, in seconds since 1970. They have the form of Alertmanager's API v2.
fn alerts(message: &Value) -> Alerts {
    let seconds = |alert: &Value, key: &str| -> u64 {
        let time = alert[key].as_str().expect("a time");
        assert!(time.len() == 20 && time.as_bytes()[10] == b'T' && time.ends_with('Z'), "{time} is not of RFC 3339");
        let output = Command::new("date").args(["-u", "+%s", "-d", time]).output().expect("date runs");
        String::from_utf8_lossy(&output.stdout).trim().parse().expect("a time")
    };
    let is_name = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let of = |alert: &Value| {
        let keys: Vec<&String> = alert.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["annotations", "endsAt", "labels", "startsAt"]);
        for set in ["labels", "annotations"] {
            for (name, value) in alert[set].as_object().expect("an object") {
                assert!(is_name(name) && value.as_str().is_some_and(|text| !text.is_empty()), "{name}: {value}");
            }
        }
        let (starts, ends) = (seconds(alert, "startsAt"), seconds(alert, "endsAt"));
        assert!(starts <= ends, "{alert:#}");
        (alert["labels"].to_string(), (ends, alert["annotations"].clone()))
    };
    let found: BTreeMap<_, _> = message.as_array().expect("a list").iter().map(of).collect();
    assert_eq!(found.len(), message.as_array().map_or(0, Vec::len), "each alert once: {message:#}");
    found
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

#[test]
fn an_alertmanager_gets_what_holds_again_with_the_same_labels_whatever_the_name_is_and_the_end_of_another_level() {
    let lab = Lab::new("alertmanager");
    lab.line("create data --level 6 --chunk 64K --assume-clean --file-size 16M d0 d1 d2 d3").expect(0);
    let (listener, port) = listener();
    let messages = web(listener, "200 OK");
    let sink = "[sinks.am]\nkind = \"webhook\"\nform = \"alertmanager\"\n";
    let server = serve(&lab, &format!("{sink}url = \"http://127.0.0.1:{port}/api/v2/alerts\"\n"));
    let uuid = lab.show("data")["uuid"].as_str().expect("a UUID").to_owned();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name").trim().to_owned();
    let degraded = |level: &str| {
        let labels = [("alertname", "DegradedArray"), ("array_uuid", &uuid), ("instance", &host), ("severity", level)];
        let labels: serde_json::Map<String, Value> =
            labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Value::Object(labels).to_string()
    };
    let until = |is_it: &dyn Fn(&Alerts) -> bool| loop {
        let (request, message) = messages.recv_timeout(PATIENCE).expect("a message");
        assert_eq!(request, "POST /api/v2/alerts HTTP/1.1");
        let found = alerts(&message);
        if is_it(&found) {
            return found;
        }
    };
    lab.line("fail data d1").expect(0);
    let first = until(&|found| found.contains_key(&degraded("warning")));
    assert!((seconds()..seconds() + 241).contains(&first[&degraded("warning")].0), "it ends by itself: {first:#?}");
    lab.line("fail data d2").expect(0);
    let worse = until(&|found| found.contains_key(&degraded("critical")));
    assert!(worse[&degraded("warning")].0 <= seconds(), "the alert with the other label is over: {worse:#?}");
    assert!(worse[&degraded("critical")].0 > seconds(), "{worse:#?}");
    lab.line("rename data fresh").expect(0);
    let again = until(&|found| found.contains_key(&degraded("critical")));
    let standing = |found: &BTreeMap<String, (u64, Value)>| {
        let all = found.iter().filter(|(labels, _)| !labels.contains("\"warning\""));
        all.map(|(labels, _)| labels.clone()).collect::<Vec<_>>()
    };
    assert_eq!(standing(&again), standing(&worse), "nothing is new, and the labels are the same");
    let (before, (after, notes)) = (worse[&degraded("critical")].0, &again[&degraded("critical")]);
    assert!(*after > before, "{before} and {after}");
    assert_eq!((&notes["array"], &notes["alarm"]), (&"fresh".into(), &"fresh:DegradedArray".into()));
    // A test ends by itself: an alert that is over when it arrives would be told to no receiver.
    lab.line("alarm test am").expect(0);
    let test = until(&|found| found.keys().any(|labels| labels.contains("TestMessage")));
    let ends = test.values().next().expect("one").0;
    assert!((seconds()..seconds() + 241).contains(&ends), "{ends}");
    server.stop();
}

#[test]
fn a_state_that_is_over_at_once_reaches_programs_and_web_servers() {
    let lab = array("brief");
    let (json, port) = listener();
    let json = web(json, "200 OK");
    let sinks = format!(
        "[sinks.script]\nkind = \"exec\"\nprogram = {:?}\n[sinks.hook]\nkind = \"webhook\"\n\
         url = \"http://127.0.0.1:{port}/hook\"\n",
        program(&lab)
    );
    let server = serve(&lab, &sinks);
    let d1 = lab.path("d1").display().to_string();
    lab.line("fail data d1").expect(0);
    lab.line("remove data d1").expect(0);
    let call = format!("Fail|data|{d1}|over critical");
    let until = Instant::now() + PATIENCE;
    while !lines(&lab, "calls", 1).iter().any(|line| *line == call || *line == call.replace("over", "holds")) {
        assert!(Instant::now() < until, "{:?}", lines(&lab, "calls", 1));
    }
    let mut heard = Vec::new();
    while !heard.contains(&("Fail".to_owned(), false)) {
        heard.extend(events(&json.recv_timeout(PATIENCE).expect("a message").1));
    }
    // A receiver of states gets the end of a test, too.
    lab.line("alarm test hook").expect(0);
    let mut tests = Vec::new();
    while tests.len() < 2 {
        let found = events(&json.recv_timeout(PATIENCE).expect("a message").1);
        tests.extend(found.into_iter().filter(|(event, _)| event == "TestMessage").map(|(_, holds)| holds));
    }
    assert_eq!(tests, [true, false]);
    server.stop();
}

fn events(message: &Value) -> Vec<(String, bool)> {
    let alarms = message["alarms"].as_array().expect("a list").iter();
    alarms.map(|alarm| (alarm["event"].as_str().expect("text").to_owned(), alarm["until_seconds"].is_null())).collect()
}

#[test]
fn a_program_is_called_as_mdadm_calls_it_and_a_web_server_gets_both_forms() {
    let lab = array("sinks");
    let ((json, json_port), (alerts, alerts_port)) = (listener(), listener());
    let (json, alerts) = (web(json, "200 OK"), web(alerts, "200 OK"));
    let sinks = format!(
        "[sinks.script]\nkind = \"exec\"\nprogram = {:?}\nlevel = \"info\"\n[sinks.hook]\nkind = \"webhook\"\n\
         url = \"http://127.0.0.1:{json_port}/hook\"\n[sinks.am]\nkind = \"webhook\"\nform = \"alertmanager\"\n\
         url = \"http://127.0.0.1:{alerts_port}/api/v2/alerts\"\nlevel = \"critical\"\n",
        program(&lab)
    );
    let server = serve(&lab, &sinks);
    lab.line("fail data d1").expect(0);
    let d1 = lab.path("d1").display().to_string();
    let mut calls = lines(&lab, "calls", 2);
    calls.sort();
    assert_eq!(calls, ["DegradedArray|data|holds critical".to_owned(), format!("Fail|data|{d1}|holds critical")]);
    let (request, message) = json.recv_timeout(PATIENCE).expect("a message");
    assert_eq!((request.as_str(), &message["schema"]), ("POST /hook HTTP/1.1", &"openraid/alarm-message/2".into()));
    assert_eq!(events(&message), [("DegradedArray".into(), true), ("Fail".into(), true)], "one message for both");
    let (request, message) = alerts.recv_timeout(PATIENCE).expect("a message");
    assert_eq!(request, "POST /api/v2/alerts HTTP/1.1");
    let labels = &message[0]["labels"];
    assert_eq!((&labels["alertname"], &labels["severity"]), (&"DegradedArray".into(), &"critical".into()));
    assert_eq!(message[0]["annotations"]["next_step"], "openraid add data DRIVE");
    let starts = message[0]["startsAt"].as_str().expect("a time");
    assert!(starts.len() == 20 && starts.as_bytes()[10] == b'T' && starts.ends_with('Z'), "{starts}");
    assert!(message[0]["endsAt"].as_str() > Some(starts), "it is not over: {message:#}");
    // Sinks that got the beginning get the end.
    lab.line("remove data d1").expect(0);
    lab.line("add data --file-size 16M d3").expect(0);
    lab.wait_for("data", |array| array["health"] == "optimal");
    let mut over = Vec::new();
    while over.len() < 2 {
        let (_, message) = json.recv_timeout(PATIENCE).expect("a message");
        over.extend(events(&message).into_iter().filter(|(_, holds)| !holds).map(|(event, _)| event));
    }
    over.sort();
    assert_eq!(over, ["DegradedArray", "Fail"]);
    // A test alarm reaches every sink, whatever its level is.
    let tested = lab.line("alarm test --json").expect(0).json();
    let sinks = tested["sinks"].as_array().expect("a list").clone();
    assert!(sinks.len() == 3 && sinks.iter().all(|sink| sink["error"].is_null()), "{sinks:#?}");
    let until = Instant::now() + PATIENCE;
    while !lines(&lab, "calls", 2).contains(&"TestMessage|server|holds info".into()) {
        assert!(Instant::now() < until);
    }
    lab.line("alarm test nowhere").refused(65, &["there is no sink nowhere", "script"]);
    server.stop();
    // Without a server the file says where to.
    lab.line("alarm test hook --config openraid.toml").expect(0).says(&["hook (webhook): delivered"]);
}

#[test]
fn a_mail_server_and_journald_get_alarms_in_their_protocols_and_many_alarms_share_one_message() {
    let lab = array("mail");
    for nth in 0..8 {
        lab.line(&format!("create a{nth} --level 1 --assume-clean --file-size 16M x{nth} y{nth}")).expect(0);
        fs::remove_file(lab.path(&format!("y{nth}"))).expect("it was there");
    }
    let (smtp, port) = listener();
    let sessions = mail(smtp, false);
    let journal = UnixDatagram::bind(lab.path("journal")).expect("a socket");
    journal.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let sinks = format!(
        "[sinks.mail]\nkind = \"mail\"\nserver = \"127.0.0.1:{port}\"\ntls = \"none\"\nfrom = \"raid@example.org\"\n\
         to = [\"a@example.org\", \"b@example.org\"]\n[sinks.log]\nkind = \"journald\"\nsocket = {:?}\n\
         [sinks.script]\nkind = \"exec\"\nprogram = {:?}\nlevel = \"critical\"\n",
        lab.path("journal"),
        program(&lab)
    );
    let server = serve(&lab, &sinks);
    // A fault that exists at the start arrives, too.
    let session = sessions.recv_timeout(PATIENCE).expect("a mail");
    for line in ["MAIL FROM:<raid@example.org>", "RCPT TO:<a@example.org>", "RCPT TO:<b@example.org>"] {
        assert!(session.iter().any(|said| said.starts_with(line)), "{line} is not in {session:#?}");
    }
    let header = |name: &str| {
        let found = session.iter().filter_map(|line| line.strip_prefix(name)).collect::<Vec<_>>();
        assert_eq!(found.len(), 1, "{name} is not once in {session:#?}");
        found[0].to_owned()
    };
    let id = header("Message-ID: ");
    assert!(id.starts_with('<') && id.ends_with('>') && id.matches('@').count() == 1, "{id}");
    assert!(header("Date: ").ends_with(" +0000"));
    let text = session.join("\n").replace("=\n", "");
    assert!(text.contains("Subject: openraid on"), "{text}");
    for nth in 0..8 {
        assert!(text.contains(&format!("acknowledge: openraid alarms acknowledge a{nth}:DegradedArray")), "{text}");
    }
    let summary = &lines(&lab, "calls", 1)[0];
    assert!(
        summary.starts_with("AlarmSummary|server|8 alarms, 0 of them ended; the worst: critical DegradedArray: a"),
        "{summary}"
    );
    let mut bytes = [0; 4096];
    let mut entry = || {
        let len = journal.recv(&mut bytes).expect("an entry");
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    };
    let degraded = std::iter::repeat_with(&mut entry).find(|text| text.contains("OPENRAID_EVENT=DegradedArray\n"));
    let degraded = degraded.expect("it comes");
    assert!(
        degraded.starts_with("MESSAGE=critical DegradedArray: a") && degraded.contains("\nPRIORITY=2\n"),
        "{degraded}"
    );
    server.stop();
}

#[test]
fn a_sink_that_hangs_or_refuses_holds_up_neither_the_others_nor_clients_and_gets_its_messages_after_a_restart() {
    let lab = array("hang");
    // One takes connections and never answers, one refuses the receiver, one is not there yet.
    let ((hangs, hang_port), (refusing, refusing_port), (late, late_port)) = (listener(), listener(), listener());
    drop(late);
    let _sessions = mail(refusing, true);
    let sinks = format!(
        "[sinks.hang]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:{hang_port}/\"\n[sinks.mail]\nkind = \"mail\"\n\
         server = \"127.0.0.1:{refusing_port}\"\ntls = \"none\"\nfrom = \"raid@example.org\"\nto = \"a@example.org\"\n\
         level = \"critical\"\n[sinks.late]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:{late_port}/\"\n\
         level = \"critical\"\n[sinks.script]\nkind = \"exec\"\nprogram = {:?}\n",
        program(&lab)
    );
    let mut server = serve(&lab, &sinks);
    lab.line("fail data d1").expect(0);
    server.wait_for_news("SinkFailed", 2);
    support::write_some(&lab, &server);
    let answer = lab.line("alarms --json").expect(0).json();
    let failed = |name: &str| {
        let id = format!("server:SinkFailed:{name}");
        answer["alarms"].as_array().expect("a list").iter().find(|alarm| alarm["id"] == id.as_str()).cloned()
    };
    let mail = failed("mail").expect("it refuses");
    assert!(mail["text"].as_str().is_some_and(|text| text.contains("no such user")), "{mail:#}");
    assert_eq!(failed("late").expect("it is not there")["next_step"], "openraid alarms test late");
    // The failure itself is an alarm for sinks that work.
    let until = Instant::now() + PATIENCE;
    while !lines(&lab, "calls", 2).iter().any(|call| call.starts_with("SinkFailed|server|late|")) {
        assert!(Instant::now() < until, "{:?}", lines(&lab, "calls", 2));
    }
    lab.line("alarm test late").refused_aloud(74, &["late (webhook): NOT delivered"]);
    let since = answer["alarms"].as_array().expect("a list").iter().find(|alarm| alarm["id"] == "data:DegradedArray");
    let since = since.expect("it is degraded")["since_seconds"].clone();
    drop(hangs);
    server.kill();
    let listener = TcpListener::bind(("127.0.0.1", late_port)).expect("the port is free again");
    let late = web(listener, "204 No Content");
    let mut server = serve(&lab, &sinks);
    let (_, message) = late.recv_timeout(PATIENCE).expect("it was not forgotten");
    let alarms = message["alarms"].as_array().expect("a list");
    let degraded = alarms.iter().find(|alarm| alarm["id"] == "data:DegradedArray").expect("it is degraded");
    assert_eq!(degraded["since_seconds"], since);
    server.wait_for_news("SinkFailed", 1);
    // Sinks can be taken out under way.
    fs::write(lab.path("openraid.toml"), format!("[server]\nnbd-unix = {:?}\n", lab.path("nbd.sock"))).expect("room");
    lab.line("reload").expect(0);
    let answer = lab.line("alarms --json").expect(0).json();
    let ids: Vec<&str> =
        answer["alarms"].as_array().expect("a list").iter().filter_map(|alarm| alarm["id"].as_str()).collect();
    assert!(ids.iter().all(|id| !id.contains("SinkFailed")), "{ids:?}");
    lab.line("alarm test").refused(65, &["the configuration file has no sinks"]);
    server.stop();
}
