//! The HTTP API: signing in, reading, changing, the stream of events, metrics, refusals.

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::web::{head, Web};
use crate::support::{noise, Lab, Server, READ, WRITE};
use serde_json::{json, Value};

fn array(name: &str) -> Lab {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    lab
}

/// A server with a console, and a client that has signed in by the link of the first start.
fn serve(lab: &Lab, more: &[&str]) -> (Server, Web) {
    let server = lab.serve(&[&["data", "--http", "127.0.0.1:0"], more].concat());
    let mut web = Web::at(&server.ready["console"]);
    let link = server.ready["login"].as_str().expect("there are no users").to_owned();
    let secret = link.split("#login=").nth(1).expect("a secret");
    let body = json!({ "one_time": secret }).to_string();
    let begun = web.post("/api/v1/session", &body).expect(201);
    let cookie = begun.header("set-cookie").expect("a cookie");
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    web.token = begun.json()["token"].as_str().map(str::to_owned);
    web.post("/api/v1/session", &body).refused(401, &["was used", "openraid login"]);
    (server, web)
}

/// The view of an administrator, without counters, which grow between two looks.
fn settled(mut array: Value) -> Value {
    for key in ["host", "cache", "reasons", "adaptive", "events", "active", "bitmap", "last_check"] {
        array[key] = Value::Null;
    }
    for member in array["members"].as_array_mut().expect("a list") {
        for key in ["reads", "writes", "flushes", "read_bytes", "written_bytes", "outstanding"] {
            member[key] = Value::Null;
        }
    }
    array
}

/// Wait until the log has this event.
#[track_caller]
fn wait_for_event(web: &Web, words: &[&str]) -> Value {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = web.get("/api/v1/events?limit=1000").expect(200).json();
        let has =
            |event: &&Value| words.iter().all(|word| event["text"].as_str().is_some_and(|text| text.contains(word)));
        if let Some(event) = answer["events"].as_array().expect("a list").iter().find(has) {
            return event.clone();
        }
        assert!(Instant::now() < until, "{words:?} is not in {answer:#}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Look until it is so: an interface may show a state that is 200 ms old.
#[track_caller]
fn until(look: impl Fn() -> Result<(), String>) {
    let end = Instant::now() + Duration::from_secs(60);
    while let Err(why) = look() {
        assert!(Instant::now() < end, "{why}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_array_is_read_and_changed_as_by_the_command_line_and_each_change_is_in_the_log() {
    let lab = array("http");
    lab.drives(&["d3"], 16);
    let (server, web) = serve(&lab, &[]);
    let one = web.get("/api/v1/arrays/data").expect(200);
    assert_eq!(settled(one.json()), settled(lab.show("data")));
    let version = one.header("etag").expect("a version").to_owned();
    // Clients that only read and write do not change the version.
    support::write_some(&lab, &server);
    assert_eq!(web.get("/api/v1/arrays/data").header("etag"), Some(version.as_str()));
    let set = r#"{"settings": {"rebuild.rate": "50M"}}"#;
    let matching = |version: &str, body: &str, path: &str, method: &str| {
        web.ask_with(method, path, Some(body), &[("If-Match", version)])
    };
    let path = "/api/v1/arrays/data/settings";
    matching(&version, set, path, "PATCH").expect(200);
    assert_eq!(lab.show("data")["settings"]["rebuild_rate"], 50 << 20);
    matching(&version, set, path, "PATCH").refused(412, &["data has changed", "look again"]);
    let event = wait_for_event(&web, &["Administrator by HTTP", "set rebuild.rate=50M", "done"]);
    assert_eq!((&event["event"], &event["array"]), (&"Changed".into(), &"data".into()));
    // A member is failed only if the name is typed.
    let fail = |confirm: &str| {
        web.post("/api/v1/arrays/data/fail", &json!({"member": "slot:1", "confirm": confirm}).to_string())
    };
    fail("date").refused(428, &["type the name of the array, data"]);
    assert_eq!(web.get("/api/v1/arrays/data").json()["health"], "optimal");
    let failed = fail("data").expect(200).json();
    assert_eq!(failed["array"]["health"], "degraded");
    lab.wait_for("data", |array| {
        array["members"].as_array().is_some_and(|all| all.iter().any(|member| member["state"] == "faulty"))
    });
    until(|| {
        (settled(web.get("/api/v1/arrays/data").json()) == settled(lab.show("data")))
            .then_some(())
            .ok_or("differ".into())
    });
    let gone = lab.path("d1").display().to_string();
    let fresh = lab.path("d3").display().to_string();
    web.post("/api/v1/arrays/data/remove", &json!({ "member": gone }).to_string()).expect(200);
    web.post("/api/v1/arrays/data/add", &json!({ "member": fresh }).to_string()).expect(200);
    lab.wait_for("data", |array| array["health"] == "optimal");
    web.post("/api/v1/arrays/data/check", "{}").expect(200);
    lab.wait_for("data", |array| array["last_check"]["outcome"] == "clean");
    // A refusal is the server's own, and stands in the log as well.
    web.post("/api/v1/arrays/data/remove", r#"{"member": "slot:0"}"#).refused(409, &["d0"]);
    let event = wait_for_event(&web, &["remove slot:0", "refused"]);
    let number = &event["number"];
    web.post("/api/v1/events/acknowledge", &json!({ "from": number }).to_string()).expect(200);
    let open = lab.line("events --json --unacknowledged").expect(0).json();
    assert!(open["events"].as_array().expect("a list").iter().all(|event| event["number"] != *number));
    web.ask_with("DELETE", "/api/v1/arrays/data", Some(r#"{"confirm": "data"}"#), &[]).expect(200);
    assert_eq!(web.get("/api/v1/arrays").json()["arrays"], json!([]));
    drop(server);
}

#[test]
fn an_array_is_planned_and_made_and_the_stripe_map_tells_where_a_byte_is() {
    let lab = array("http-make");
    lab.drives(&["m0", "m1", "m2", "m3"], 8);
    let (server, web) = serve(&lab, &[]);
    let members: Vec<String> = ["m0", "m1", "m2", "m3"].map(|name| lab.path(name).display().to_string()).into();
    let input = json!({"name": "more", "level": "6", "chunk": "64K", "members": members});
    let plan = web.post("/api/v1/plan", &input.to_string()).expect(200).json();
    assert_eq!((&plan["survives"], &plan["holds"]), (&2.into(), &json!([])));
    web.post("/api/v1/arrays", &input.to_string()).expect(201);
    let made = lab.wait_for("more", |array| array["survives"] == 2);
    assert_eq!(plan["size_bytes"], made["size_bytes"]);
    assert!(plan["command"].as_str().expect("a line").starts_with("openraid create --level 6 --chunk 64K more "));
    // What stands on the members now is not overwritten without a word.
    let again = json!({"name": "third", "level": "6", "chunk": "64K", "members": members});
    let status = web.post("/api/v1/arrays", &again.to_string()).status;
    assert!([409, 500].contains(&status), "{status}");
    // The byte that the map names is the one that was written.
    let pattern = noise(7, 65536);
    let at = 192 * 1024;
    let mut client = support::client::Client::open(&lab.path("nbd.sock"), "more");
    assert_eq!(client.ask(WRITE, at, &pattern), 0);
    assert_eq!(client.ask(support::FLUSH, 0, &[]), 0);
    assert_eq!(client.ask(READ, at, &[0; 65536]), 0);
    let place = web.get(&format!("/api/v1/arrays/more/place?offset={at}")).expect(200).json();
    let found = place["members"].as_array().expect("a list");
    let roles: Vec<&str> = found.iter().map(|span| span["role"].as_str().expect("a word")).collect();
    assert_eq!(roles.iter().filter(|role| **role == "data").count(), 1, "{place}");
    assert!(roles.contains(&"p") && roles.contains(&"q") && roles.contains(&"other"), "{place}");
    let data = found.iter().find(|span| span["role"] == "data").expect("it");
    let offset = data["member_offset_bytes"].as_u64().expect("a number");
    let member = data["member"].as_str().expect("a path");
    let bytes = fs::read(member).expect("a file");
    let start = bytes.windows(64).position(|window| window == &pattern[..64]).expect("it is on that member") as u64;
    // The data area begins where mdadm says.
    let examined = lab.run(&["examine", member, "--json"]).json();
    let begin = examined.to_string();
    assert_eq!((start - offset) % 512, 0);
    assert!(
        begin.contains(&format!("{}", (start - offset) / 512)) || begin.contains(&format!("{}", start - offset)),
        "{begin}"
    );
    web.get("/api/v1/arrays/more/place?offset=99999999999").refused(400, &["offset=99999999999"]);
    server.stop();
}

#[test]
fn invalid_and_foreign_requests_are_refused_with_a_reason() {
    let lab = array("http-bad");
    let (server, web) = serve(&lab, &[]);
    let stranger = Web { token: None, ..web.clone() };
    for path in ["/api/v1/arrays", "/api/v1/events", "/api/v1/users", "/api/v1/stream"] {
        stranger.get(path).refused(401, &["openraid login"]);
    }
    let token = lab.line("login --token --role ReadOnly").expect(0).text();
    let reader = Web { token: Some(token.trim().into()), ..web.clone() };
    reader.get("/api/v1/arrays").expect(200);
    reader.post("/api/v1/arrays/data/pause", "{}").refused(403, &["needs the role Operator"]);
    reader.get("/api/v1/users").refused(403, &["needs the role Administrator"]);
    web.get("/api/v1/arrays/none").refused(404, &["no array named \"none\""]);
    web.get("/api/v1/nothing").refused(404, &["openapi.json"]);
    let wrong = web.ask_with("PUT", "/api/v1/arrays", Some("{}"), &[]);
    wrong.refused(405, &["GET, POST"]);
    assert_eq!(wrong.header("allow"), Some("GET, POST"));
    for path in ["/../etc/passwd", "/console/..%2f..%2fCargo.toml", "/console/%2e%2e/x", "//x", "/api/v1/arrays/%00"] {
        web.get(path).refused(400, &["the path has parts"]);
    }
    web.get("/api/v1/arrays?x=1").refused(400, &["takes no query"]);
    web.get("/api/v1/events?limit=0").refused(400, &["use 1 to 1000"]);
    web.get("/api/v1/events?level=loud").refused(400, &["info, warning, critical"]);
    let path = "/api/v1/arrays/data/settings";
    let set = |body: &str| web.ask_with("PATCH", path, Some(body), &[]);
    set("{").refused(400, &["the body"]);
    set("[]").refused(400, &["the body"]);
    set(r#"{"settings": {"rebuild.rate": 5}}"#).refused(400, &["expected a string"]);
    set(r#"{"settings": {"rebuild.rate": "fast"}}"#).refused(400, &["fast"]);
    set(r#"{"settings": {"rebuild.rat": "5M"}}"#).refused(400, &["unknown setting"]);
    set(r#"{"settings": {"rebuild.rate": "5M"}, "force": true}"#).refused(400, &["unknown field `force`"]);
    let large = format!(r#"{{"settings": {{"rebuild.rate": "{}"}}}}"#, "1".repeat(70_000));
    set(&large).refused(413, &["65536"]);
    let typed = [("Content-Type", "text/plain")];
    web.ask_with("PATCH", path, Some("{}"), &typed).refused(415, &["application/json"]);
    for headers in [[("Origin", "http://evil.example")], [("Sec-Fetch-Site", "cross-site")], [("Origin", "null")]] {
        web.ask_with("PATCH", path, Some("{}"), &headers).refused(403, &["pages of other sites"]);
    }
    web.ask_with("GET", "/", None, &[("Host", "evil.example")]).refused(421, &["management.names"]);
    // Too large a head, and no HTTP at all.
    let head = format!("GET / HTTP/1.1\r\nHost: {}\r\nX: {}\r\n\r\n", web.host, "x".repeat(20_000));
    assert_eq!(web.raw(head.as_bytes()).status, 431);
    assert_eq!(web.raw(b"\x16\x03\x01\x00\x05hello\r\n\r\n").status, 400);
    // None of these requests changed anything.
    assert_eq!(lab.show("data")["profile"]["changes"], json!([]));
    assert_eq!(lab.show("data")["health"], "optimal");
    server.stop();
}

#[test]
fn users_have_passwords_and_roles_in_a_file_that_others_cannot_read() {
    let lab = array("http-users");
    let (server, web) = serve(&lab, &[]);
    let user = |name: &str, role: &str, password: &str| {
        web.post("/api/v1/users", &json!({"name": name, "role": role, "password": password}).to_string())
    };
    user("ann", "Administrator", "short").refused(400, &["10 characters"]);
    user("a b", "Operator", "long enough").refused(400, &["letters, digits"]);
    assert_eq!(user("ann", "King", "long enough").status, 400);
    user("ann", "Administrator", "correct horse").expect(201);
    user("olaf", "Operator", "battery staple").expect(201);
    user("ann", "Operator", "long enough").refused(409, &["already"]);
    let file = lab.path("state/openraid/registry.json.management/users.json");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&file).expect("text");
    assert!(text.contains("$argon2id$") && !text.contains("correct horse"), "{text}");
    let sign = |name: &str, password: &str| {
        let stranger = Web { token: None, ..web.clone() };
        stranger.post("/api/v1/session", &json!({"name": name, "password": password}).to_string())
    };
    let begun = sign("olaf", "battery staple").expect(201).json();
    assert_eq!(begun["role"], "Operator");
    let olaf = Web { token: begun["token"].as_str().map(str::to_owned), ..web.clone() };
    olaf.post("/api/v1/arrays/data/pause", "{}").expect(200);
    olaf.ask_with("DELETE", "/api/v1/arrays/data", Some(r#"{"confirm":"data"}"#), &[]).refused(403, &["Administrator"]);
    // The last administrator stays. A user that is locked is signed out at once.
    web.ask_with("DELETE", "/api/v1/users/ann", None, &[]).refused(409, &["no administrator"]);
    web.ask_with("PATCH", "/api/v1/users/olaf", Some(r#"{"locked":true}"#), &[]).expect(200);
    assert_eq!(olaf.get("/api/v1/arrays").status, 401);
    sign("olaf", "battery staple").refused(401, &["wrong"]);
    for _ in 0..5 {
        sign("ann", "wrong password").refused(401, &["wrong"]);
    }
    // A process of this machine does not keep its administrator out: sign-ins take turns.
    std::thread::scope(|scope| {
        (0..8).for_each(|_| _ = scope.spawn(|| sign("ann", "wrong password").refused(401, &["wrong"])));
        scope.spawn(|| sign("ann", "correct horse").expect(201));
    });
    // After a restart there is no link, and a session goes on.
    server.stop();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("own file");
    let server = lab.serve(&["data", "--http", "127.0.0.1:0"]);
    lab.wait_for_alarms(|text| text.contains("mode is 644") && text.contains("chmod 600"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("own file");
    lab.wait_for_alarms(|text| !text.contains("chmod 600"));
    server.stop();
    let server = lab.serve(&["data", "--http", "127.0.0.1:0"]);
    assert_eq!(server.ready["login"], Value::Null);
    let again = Web { host: Web::at(&server.ready["console"]).host, ..web.clone() };
    assert_eq!(again.get("/api/v1/session").expect(200).json()["by_link"], true);
    again.ask_with("DELETE", "/api/v1/session", None, &[]).expect(204);
    assert_eq!(again.get("/api/v1/arrays").status, 401);
    server.stop();
}

/// The console's files are compressed, and kept by browsers below addresses with their version; the event log is searched.
#[test]
fn files_of_the_console_are_compressed_and_kept_and_events_are_found_by_their_words() {
    let lab = array("http-files");
    let (server, web) = serve(&lab, &[]);
    let page = web.get("/").expect(200).text();
    let path = page.split('"').find(|part| part.ends_with("/main.js")).expect("the address of a module").to_owned();
    let asked = |path: &str, takes: &str| web.ask_with("GET", path, None, &[("Accept-Encoding", takes)]).expect(200);
    let (plain, packed) = (asked(&path, "identity"), asked(&path, "br, gzip"));
    assert_eq!((plain.header("content-encoding"), packed.header("content-encoding")), (None, Some("gzip")));
    assert_eq!(plain.header("vary"), Some("accept-encoding"));
    assert!(plain.header("cache-control").is_some_and(|value| value.contains("immutable")), "{path}");
    let text = include_str!("../../../management/console/main.js");
    assert_eq!(plain.text(), text);
    fs::write(lab.path("packed.gz"), &packed.body).expect("room");
    let unpacked = Command::new("gzip").args(["-dc", &lab.path("packed.gz").display().to_string()]).output();
    assert_eq!(String::from_utf8_lossy(&unpacked.expect("gzip").stdout), text);
    // The page of another version gets the present file, and keeps it not.
    let other = asked("/console/0123456789abcdef/main.js", "identity");
    assert_eq!((other.text().as_str(), other.header("cache-control")), (text, Some("no-store")));
    web.get("/console/0123456789abcdef/index.html").refused(404, &["no file index.html"]);

    lab.line("fail data d1").expect(0);
    wait_for_event(&web, &["failed", "by administrator"]);
    wait_for_event(&web, &["degraded"]);
    let found = |words: &str| web.get(&format!("/api/v1/events?text={words}")).expect(200).json();
    for words in ["BY%20ADMINISTRATOR", "degradedarray"] {
        let events = found(words)["events"].as_array().expect("a list").clone();
        assert!(!events.is_empty() && events.iter().all(|event| event["array"] == "data"), "{words}: {events:?}");
    }
    assert_eq!(found("no%20such%20words")["events"], json!([]));
    server.stop();
}

/// Readers of systemd's journal are not administrators. The output is the journal if `JOURNAL_STREAM` names its stream.
#[test]
fn a_server_that_writes_to_the_journal_prints_no_link() {
    let lab = array("http-journal");
    let served = lab.command(&["serve", "data", "--json", "--http", "127.0.0.1:0", "--nbd", "127.0.0.1:0"]);
    let (output, errors) = ("$(stat -Lc %d:%i /proc/$$/fd/1)", "$(stat -Lc %d:%i /proc/$$/fd/2)");
    for (stream, has_link) in [(output, false), (errors, false), ("8:1234567", true)] {
        let mut command = Command::new("sh");
        let script = format!("JOURNAL_STREAM={stream} exec \"$@\"");
        command.args(["-c", &script, "sh"]).arg(served.get_program()).args(served.get_args());
        command.current_dir(served.get_current_dir().expect("the folder of the lab"));
        command.envs(served.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let server = Server::started(&mut command).expect("ready");
        assert_eq!(server.ready["login"].is_string(), has_link, "{stream}");
        server.stop();
    }
}

/// The lines of a stream of events.
fn stream(web: &Web, path: &str, headers: &str) -> impl Iterator<Item = String> {
    let mut stream = web.connect();
    let token = web.token.as_deref().expect("signed in");
    let text = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n{headers}\r\n", web.host);
    stream.write_all(text.as_bytes()).expect("sent");
    let mut reader = BufReader::new(stream);
    let (status, headers) = head(&mut reader);
    assert_eq!(status, 200, "{headers:?}");
    assert!(headers.iter().any(|(name, value)| name == "content-type" && value == "text/event-stream"));
    reader.lines().map(|line| line.expect("a line"))
}

#[test]
fn a_token_lasts_over_a_crash_until_it_is_revoked_and_metrics_take_a_password() {
    let lab = array("http-tokens");
    let (server, web) = serve(&lab, &[]);
    web.post(
        "/api/v1/users",
        &json!({"name": "ann", "role": "Administrator", "password": "correct horse"}).to_string(),
    )
    .expect(201);
    lab.line("login --name backup").refused(64, &["--token"]);
    lab.line("login --token --name a/b").refused(65, &["letters, digits"]);
    let secret = lab.line("login --token --name backup --role Operator").expect(0).text().trim().to_owned();
    lab.line("login --token --name backup").refused(65, &["backup already"]);
    let made = web.post("/api/v1/tokens", r#"{"name": "scrape", "role": "ReadOnly"}"#).expect(201).json();
    let listed = web.get("/api/v1/tokens").expect(200);
    assert!(!listed.text().contains(&secret), "a secret is shown once");
    let names: Vec<Value> =
        listed.json()["tokens"].as_array().expect("a list").iter().map(|t| t["name"].clone()).collect();
    assert_eq!(names, ["backup", "scrape"]);
    let file = lab.path("state/openraid/registry.json.management/tokens.json");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&file).expect("text").contains(&secret[9..]), "only digests are stored");
    server.kill();

    let server = lab.serve(&["data", "--http", "127.0.0.1:0"]);
    let at = |token: &str| Web { host: Web::at(&server.ready["console"]).host, token: Some(token.into()) };
    let (backup, scrape) = (at(&secret), at(made["token"].as_str().expect("a token")));
    backup.post("/api/v1/arrays/data/pause", "{}").expect(200);
    backup.get("/api/v1/users").refused(403, &["Administrator"]);
    scrape.get("/metrics").expect(200);
    scrape.post("/api/v1/arrays/data/resume", "{}").refused(403, &["token scrape has ReadOnly"]);
    let mut states = stream(&scrape, "/api/v1/stream", "").filter(|line| line == "event: status");
    assert!(states.next().is_some() && states.next().is_some(), "a stream of a token goes on");
    let mut lives = stream(&scrape, "/redfish/v1/EventService/SSE", "").filter(|line| line == ": nothing new");
    assert!(lives.next().is_some() && lives.next().is_some(), "a stream of a token goes on");
    lab.line("login --revoke scrape").expect(0);
    // What was sent before is read first.
    assert!(states.take(30).count() < 30 && lives.take(30).count() < 30, "a stream ends when its token is revoked");
    let scrape = at(lab.line("login --token --name scrape --role ReadOnly").expect(0).text().trim());
    assert_eq!(at(&format!("{secret}0")).get("/api/v1/arrays").status, 401);
    lab.line("login --revoke backup").expect(0);
    assert_eq!(backup.get("/api/v1/arrays").status, 401);
    lab.line("login --revoke backup").refused(65, &["there are: scrape"]);
    let text = |accept: &str| scrape.ask_with("GET", "/metrics", None, &[("Accept", accept)]).expect(200);
    let classic = text("text/plain;version=0.0.4;q=0.9,*/*;q=0.1");
    assert_eq!(classic.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let page = classic.text();
    assert!(page.contains("# TYPE openraid_host_requests_total counter\n") && !page.contains("# EOF"), "{page}");
    let both = text("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4").text();
    assert!(both.contains("# TYPE openraid_host_requests counter\n") && both.ends_with("# EOF\n"), "{both}");
    // ann:correct horse, and ann:wrong horse.
    let nobody = Web { token: None, ..backup.clone() };
    let basic = |words: &str| nobody.ask_with("GET", "/metrics", None, &[("Authorization", words)]).status;
    assert_eq!((basic("Basic YW5uOmNvcnJlY3QgaG9yc2U="), basic("Basic YW5uOndyb25nIGhvcnNl")), (200, 401));
    server.stop();
}

#[test]
fn a_broken_event_stream_continues_where_it_was() {
    let lab = array("http-stream");
    let (server, web) = serve(&lab, &[]);
    let mut lines = stream(&web, "/api/v1/stream", "");
    let mut find = |word: &str| lines.find(|line| line.contains(word)).expect("it comes");
    find("event: status");
    lab.line("fail data d1").expect(0);
    let data = find("\"event\":\"Fail\"");
    let event: Value = serde_json::from_str(data.trim_start_matches("data: ")).expect("JSON");
    let number = event["number"].as_u64().expect("a number");
    drop(lines);
    lab.line("set data rebuild.rate=7M").expect(0);
    wait_for_event(&web, &["rebuild.rate", "7"]);
    let mut lines = stream(&web, "/api/v1/stream", &format!("Last-Event-ID: {number}\r\n"));
    let ids: Vec<u64> = lines
        .by_ref()
        .take_while(|line| line != "event: status")
        .filter_map(|line| line.strip_prefix("id: ")?.parse().ok())
        .collect();
    assert!(!ids.is_empty() && ids[0] == number + 1 && ids.windows(2).all(|pair| pair[1] > pair[0]), "{ids:?}");
    server.stop();
}

#[test]
fn redfish_is_read_and_its_errors_and_sessions_have_the_standards_form() {
    let lab = array("http-redfish");
    let (server, web) = serve(&lab, &[]);
    let stranger = Web { token: None, ..web.clone() };
    assert_eq!(stranger.get("/redfish").expect(200).json(), json!({"v1": "/redfish/v1/"}));
    let root = stranger.get("/redfish/v1/").expect(200);
    assert_eq!(root.header("odata-version"), Some("4.0"));
    let refused = stranger.get("/redfish/v1/Systems").expect(401).json();
    assert_eq!(refused["error"]["code"], "Base.1.18.GeneralError");
    assert!(refused["error"]["@Message.ExtendedInfo"][0]["Message"]
        .as_str()
        .is_some_and(|text| text.contains("sign in")));
    stranger.get("/redfish/v1/?unknown=1").expect(200);
    stranger.get("/redfish/v1/?$unknown=1").expect(501);
    stranger.ask_with("GET", "/redfish/v1/", None, &[("OData-Version", "4.1")]).expect(412);
    let user = json!({"name": "rf", "role": "ReadOnly", "password": "correct horse"}).to_string();
    web.post("/api/v1/users", &user).expect(201);
    let sessions = "/redfish/v1/SessionService/Sessions";
    let begun = stranger.post(sessions, r#"{"UserName": "rf", "Password": "correct horse"}"#).expect(201);
    let token = begun.header("x-auth-token").expect("a token").to_owned();
    let location = begun.header("location").expect("a session").to_owned();
    let ask = |method: &str, path: &str| stranger.ask_with(method, path, None, &[("X-Auth-Token", &token)]);
    let system = ask("GET", "/redfish/v1/Systems/1").expect(200).json();
    let storage = ask("GET", system["Storage"]["@odata.id"].as_str().expect("a link")).expect(200).json();
    assert_eq!(storage["Members"], json!([{"@odata.id": "/redfish/v1/Systems/1/Storage/openraid"}]));
    let volume = ask("GET", "/redfish/v1/Systems/1/Storage/openraid/Volumes/data").expect(200).json();
    assert_eq!((&volume["RAIDType"], &volume["StripSizeBytes"]), (&"RAID5".into(), &65536.into()));
    assert_eq!(volume["Links"]["Drives"].as_array().map(Vec::len), Some(3));
    // A reader sees the own session only, and ends it.
    assert_eq!(ask("GET", sessions).json()["Members"], json!([{ "@odata.id": location }]));
    ask("DELETE", &location).expect(204);
    assert_eq!(ask("GET", "/redfish/v1/Systems").status, 401);
    server.stop();
}

/// The output of a foreign program.
fn said(program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let out = Command::new(program).args(arguments).output().ok()?;
    Some((out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()))
}

#[test]
fn beyond_the_loopback_there_is_only_tls_with_a_certificate_that_is_made_once() {
    let lab = array("http-tls");
    let server = lab.serve(&["data", "--http", "0.0.0.0:0"]);
    let url = server.ready["console"].as_str().expect("an address").to_owned();
    assert!(url.starts_with("https://"), "{url}");
    let port = url.trim_end_matches('/').rsplit(':').next().expect("a port").to_owned();
    let folder = lab.path("state/openraid/registry.json.management");
    let key = folder.join("key.pem");
    assert_eq!(fs::metadata(&key).expect("a file").permissions().mode() & 0o777, 0o600);
    let made = fs::read(folder.join("certificate.pem")).expect("a file");
    let page = format!("https://localhost:{port}/");
    let metrics = format!("https://localhost:{port}/metrics");
    let plain = format!("http://localhost:{port}/");
    let file = folder.join("certificate.pem").display().to_string();
    let Some((trusted, text)) = said("curl", &["-sS", "--max-time", "20", "--cacert", &file, &page]) else {
        return support::missing("curl is not installed");
    };
    assert!(trusted && text.contains("openraid"), "{text}");
    let old = said("curl", &["-sS", "--max-time", "20", "-k", "--tls-max", "1.1", &page]).expect("curl");
    assert!(!old.0, "TLS 1.1 is refused: {}", old.1);
    let (fine, text) = said("curl", &["-sS", "--max-time", "20", &plain]).expect("curl");
    assert!(!fine, "no answer without TLS: {text}");
    // Metrics need a sign-in here.
    let (_, text) = said("curl", &["-sS", "--max-time", "20", "-k", &metrics]).expect("curl");
    assert!(text.contains("not-signed-in"), "{text}");
    server.stop();
    let server = lab.serve(&["data", "--http", "0.0.0.0:0"]);
    assert_eq!(fs::read(folder.join("certificate.pem")).expect("a file"), made);
    server.stop();
}

/// A key and a certificate: of a new authority with this name, or signed by the given one.
fn certify(lab: &Lab, name: &str, authority: Option<&str>) -> Option<bool> {
    let path = |end: &str| lab.path(&format!("{name}{end}")).display().to_string();
    let (subject, key, out) = (format!("/CN={name}"), path(".key"), path(".pem"));
    let mut words =
        vec!["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    words.extend(["-subj", &subject, "-keyout", &key, "-out", &out]);
    let signer =
        authority.map(|name| ["pem", "key"].map(|end| lab.path(&format!("{name}.{end}")).display().to_string()));
    if let Some([certificate, key]) = &signer {
        words.extend(["-addext", "basicConstraints=critical,CA:FALSE", "-CA", certificate, "-CAkey", key]);
    }
    said("openssl", &words).map(|(fine, text)| assert!(fine, "{text}")).map(|()| true)
}

#[test]
fn with_a_client_authority_only_clients_with_its_certificate_get_an_answer() {
    let lab = array("http-clients");
    for (name, authority) in [("ca", None), ("other", None), ("scraper", Some("ca")), ("stranger", Some("other"))] {
        if certify(&lab, name, authority).is_none() {
            return support::missing("openssl is not installed");
        }
    }
    fs::write(lab.path("empty.pem"), "").expect("room");
    for (file, words) in [("empty.pem", "no certificate in PEM form"), ("none.pem", "none.pem: ")] {
        lab.configure(&format!("[management]\nlisten = \"127.0.0.1:0\"\nclient-ca = \"@/{file}\"\n"));
        lab.serve_without_console(&[file, words]);
        lab.line("config check openraid.toml").refused(65, &["line 5: management.client-ca", file, words]);
    }
    // What a start would refuse is found without one.
    let files = |certificate: &str, key: &str| {
        let (certificate, key) = (format!("certificate = \"@/{certificate}\""), format!("key = \"@/{key}\""));
        lab.configure(&format!(
            "[management]\nlisten = \"127.0.0.1:0\"\n{certificate}\n{key}\nclient-ca = \"@/ca.pem\"\n"
        ));
    };
    for (certificate, key, words) in [
        ("none.pem", "ca.key", ["management.certificate: ", "none.pem: No such file"]),
        ("empty.pem", "ca.key", ["management.certificate: ", "no certificate in PEM form"]),
        ("ca.pem", "ca.pem", ["management.key: ", "no private key in PEM form"]),
        ("ca.pem", "other.key", ["management.key: ", "this is not the key of the certificate in"]),
    ] {
        files(certificate, key);
        lab.line("config check openraid.toml").refused(65, &[words[0], words[1], "1 problem"]);
        lab.serve_without_console(&[words[1]]);
    }
    files("ca.pem", "ca.key");
    lab.line("config check openraid.toml").expect(0);
    lab.configure("[management]\nlisten = \"127.0.0.1:0\"\nclient-ca = \"@/ca.pem\"\n");
    let server = lab.serve_configured();
    let url = server.ready["console"].as_str().expect("an address").to_owned();
    assert!(url.starts_with("https://"), "{url}");
    let file = lab.path("state/openraid/registry.json.management/certificate.pem").display().to_string();
    let ask = |client: Option<&str>, path: &str, more: &[&str]| {
        let files =
            client.map(|name| ["pem", "key"].map(|end| lab.path(&format!("{name}.{end}")).display().to_string()));
        let address = format!("{url}{path}");
        let mut words = vec!["-sS", "--max-time", "20", "--cacert", &file];
        words.extend(files.iter().flat_map(|[certificate, key]| ["--cert", certificate, "--key", key]));
        words.extend(more);
        words.push(&address);
        said("curl", &words)
    };
    let Some((fine, text)) = ask(Some("scraper"), "", &[]) else {
        return support::missing("curl is not installed");
    };
    assert!(fine && text.contains("openraid"), "{text}");
    for version in ["1.2", "1.3"] {
        for client in [None, Some("stranger")] {
            let (fine, text) = ask(client, "", &["--tls-max", version]).expect("curl");
            assert!(!fine && !text.contains("<html"), "{client:?} by TLS {version}: {text}");
        }
    }
    // The certificate is no sign-in.
    let (_, text) = ask(Some("scraper"), "api/v1/arrays", &[]).expect("curl");
    assert!(text.contains("not-signed-in"), "{text}");
    let token = lab.line("login --token --role ReadOnly").expect(0).text();
    let header = format!("Authorization: Bearer {}", token.trim());
    let (_, text) = ask(Some("scraper"), "api/v1/arrays", &["-H", &header]).expect("curl");
    assert!(text.contains("\"data\""), "{text}");
    server.stop();
}

#[test]
fn each_alert_rule_fires_in_its_state_and_asks_for_metrics_that_there_are() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/prometheus");
    let rules = fs::read_to_string(format!("{folder}/alerts.yml")).expect("the rules");
    let lab = array("http-rules");
    let (server, web) = serve(&lab, &[]);
    let metrics = web.get("/metrics").expect(200).text();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for word in rules.split(|c: char| !is_name(c)).filter(|word| word.starts_with("openraid_")) {
        // A server without a journal and without tasks has no such series.
        let family = word.strip_suffix("_total").unwrap_or(word);
        let known = metrics.contains(&format!("# TYPE {family} ")) || word.starts_with("openraid_journal");
        assert!(known, "{word} is not in the metrics");
    }
    server.stop();
    match said("promtool", &["test", "rules", &format!("{folder}/alerts-test.yml")]) {
        Some((fine, text)) => assert!(fine, "{text}"),
        None => support::missing("promtool is not installed (package prometheus)"),
    }
}

/// The differences between the four.
fn compared(lab: &Lab, web: &Web) -> Result<(), String> {
    let metrics = web.get("/metrics").expect(200).text();
    assert!(metrics.ends_with("# EOF\n"));
    let mut wrong = String::new();
    let mut same = |what: String, a: Value, b: Value| {
        if a != b {
            wrong.push_str(&format!("{what}: {a} and {b}\n"));
        }
    };
    let figure = |line: &str| -> u64 {
        let found = metrics.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(' '));
        found.unwrap_or_else(|| panic!("{line} is not there")).parse().expect("a number")
    };
    let listed = lab.line("list --json");
    let api = web.get("/api/v1/arrays").expect(200).json();
    for array in listed.json()["served"].as_array().expect("a list") {
        let name = array["name"].as_str().expect("a name");
        let served = api["arrays"].as_array().expect("a list").iter().find(|array| array["name"] == name).expect("it");
        same(format!("{name} by the API"), settled(served.clone()), settled(array.clone()));
        let survives = figure(&format!("openraid_array_survives{{array=\"{name}\"}}"));
        same(format!("{name} survives"), survives.into(), array["survives"].clone());
        for health in ["optimal", "degraded", "failed"] {
            let level = array["level"].as_str().expect("a word");
            let line = format!("openraid_array_health{{array=\"{name}\",level=\"{level}\",health=\"{health}\"}}");
            same(format!("{name} {health}"), figure(&line).into(), u64::from(array["health"] == health).into());
        }
        let redfish = "/redfish/v1/Systems/1/Storage/openraid/Volumes";
        let volume = web.get(&format!("{redfish}/{name}")).expect(200).json();
        let health = match array["health"].as_str().expect("a word") {
            "optimal" => "OK",
            "degraded" => "Warning",
            _ => "Critical",
        };
        same(format!("{name} by Redfish"), volume["Status"]["Health"].clone(), health.into());
        same(format!("{name}, size by Redfish"), volume["CapacityBytes"].clone(), array["size_bytes"].clone());
        let sets: Vec<&Value> = match array["spans"].as_array().expect("a list").as_slice() {
            [] => vec![array],
            spans => spans.iter().collect(),
        };
        let all = || sets.iter().flat_map(|set| set["members"].as_array().expect("a list"));
        for (word, state) in [("removed", "missing"), ("in-sync", "in-sync"), ("faulty", "faulty"), ("spare", "spare")]
        {
            let count = all().filter(|member| member["state"] == state).count() as u64;
            let shown = figure(&format!("openraid_members{{array=\"{name}\",state=\"{word}\"}}"));
            same(format!("{name} {word}"), shown.into(), count.into());
        }
        let there = all().filter(|member| !member["drive"].is_null()).count();
        let count = |key: &str| volume["Links"][key].as_array().map_or(0, Vec::len);
        same(
            format!("{name}, drives by Redfish"),
            (count("Drives") + count("DedicatedSpareDrives")).into(),
            there.into(),
        );
        let active = all().filter(|member| member["state"] == "in-sync").count() as u64;
        let removed = array["slots"].as_u64().expect("a number") - active;
        let shown = figure(&format!("node_md_disks{{device=\"{name}\",state=\"removed\"}}"));
        same(format!("{name} removed"), shown.into(), removed.into());
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong)
    }
}

#[test]
fn metrics_the_api_redfish_and_the_command_line_say_the_same_in_each_state() {
    let lab = Lab::new("http-states");
    lab.line("create data --level 6 --chunk 64K --assume-clean --file-size 16M d0 d1 d2 d3 --spare d4").expect(0);
    lab.line("create pair --level 1 --assume-clean --file-size 16M p0 p1").expect(0);
    lab.line("create wide --level 50 --spans 2 --chunk 64K --assume-clean --file-size 16M w0 w1 w2 w3 w4 w5").expect(0);
    let (server, web) = serve(&lab, &["pair", "wide", "--metrics-md"]);
    let settle = || {
        for name in ["data", "pair", "wide"] {
            lab.wait_for(name, |array| {
                array["task"].is_null()
                    && array["spans"].as_array().is_some_and(|spans| spans.iter().all(|span| span["task"].is_null()))
            });
        }
    };
    until(|| compared(&lab, &web));
    for step in [
        "fail data d1",
        "fail data d2",
        "remove data d1",
        "add data d1",
        "fail pair p1",
        "remove pair p1",
        "set pair access=read-only",
        "set pair access=blocked",
        "set data profile=protection",
        "fail wide w1",
        "fail wide w4",
        "remove wide w1",
        "add wide w1 --yes --overwrite",
        "check data",
        "stop pair",
    ] {
        let ran = lab.line(step);
        assert!([0, 1, 65].contains(&ran.code), "{step}: {ran:?}");
        settle_without(&lab, step, &settle);
        until(|| compared(&lab, &web));
    }
    server.stop();
}

fn settle_without(lab: &Lab, step: &str, settle: &dyn Fn()) {
    if step == "stop pair" {
        lab.wait_for("data", |array| array["task"].is_null());
        return;
    }
    settle();
}

#[test]
fn a_support_archive_has_all_but_secrets_and_events_are_lines_with_commas() {
    let lab = array("http-support");
    lab.configure(
        "[management]\nlisten = \"127.0.0.1:0\"\n[sinks.chat]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/secret-token\"\n",
    );
    let server = lab.serve_configured();
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Operator").expect(0).text().trim().into());
    web.get("/api/v1/support").refused(403, &["Administrator"]);
    web.token = Some(lab.line("login --token --role Administrator").expect(0).text().trim().into());
    lab.line("alarms test").expect(74).says(&["secret-token"]);
    lab.line("check data --follow").expect(0);
    lab.line("fail data d1").expect(0);
    let found = web.get("/api/v1/support").expect(200);
    assert!(found.header("content-disposition").is_some_and(|value| value.contains("openraid-support.json")));
    assert!(!found.text().contains("secret-token"), "{}", found.text());
    let found = found.json();
    assert_eq!((&found["schema"], &found["missing"]), (&"openraid/support/1".into(), &json!([])));
    let parts = &found["parts"];
    assert_eq!(parts["arrays"][0]["uuid"], lab.show("data")["uuid"]);
    assert_eq!(parts["checks data"]["sets"][0]["checks"][0]["outcome"], "clean");
    assert_eq!(parts["sinks"][0]["name"], "chat");
    for part in ["server", "settings", "alarms", "events", "schedules", "explain data", "lab"] {
        assert!(!parts[part].is_null(), "{part} is not in it");
    }
    // Commas in a text do not part it.
    wait_for_event(&web, &["failed", "by administrator"]);
    let known = web.get("/api/v1/events?level=critical").expect(200).json();
    let event = known["events"][0].clone();
    let text = web.get("/api/v1/events.csv?level=critical").expect(200).text();
    let mut lines = text.split("\r\n");
    assert_eq!(lines.next(), Some("number,time,level,event,array,span,slot,member,text,acknowledged"));
    let line = lines.next().expect("an event");
    let begin = format!("{},20", event["number"]);
    assert!(line.starts_with(&begin) && line.ends_with(",false") && line.contains(",critical,Fail,data,,1,"), "{line}");
    assert!(line.contains(event["text"].as_str().expect("a text")), "{line}");
    web.get("/api/v1/events.csv?limit=0").refused(400, &["use 1 to"]);
    server.stop();
}

#[test]
fn a_hundred_slow_clients_disturb_neither_the_data_path_nor_other_clients_for_long() {
    let lab = array("http-slow");
    let (server, web) = serve(&lab, &[]);
    let another = || {
        let mut stream = web.connect();
        let _ = stream.write_all(b"GET /api/v1/arrays HTTP/1.1\r\nHost: x\r\n");
        stream
    };
    let mut slow: Vec<_> = (0..120).map(|_| another()).collect();
    // More than there are places; one of them makes room for each client that sends a request, while more of them come.
    let mut stays = BufReader::new(web.connect());
    let host = &web.host;
    let token = web.token.clone().expect("a token");
    let request = format!("GET /api/v1/arrays HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n");
    for _ in 0..30 {
        web.get("/api/v1/arrays").expect(200);
        slow.extend((0..16).map(|_| another()));
        // A client that has signed in keeps its connection.
        stays.get_mut().write_all(request.as_bytes()).expect("sent");
        assert_eq!(support::web::read(&mut stays).status, 200);
    }
    // The data path does not know of them.
    support::write_some(&lab, &server);
    support::ask(&lab, &server, &[(READ, 4096, &[0; 4096])]);
    // Each is disconnected, after its time at the latest.
    for stream in &mut slow {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    web.get("/api/v1/arrays").expect(200);
    server.stop();
}
