//! The laboratory by HTTP: jobs in processes of their own, their reports, predictions.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use crate::support::web::Web;
use crate::support::{Lab, Server};
use serde_json::{json, Value};

fn serve(name: &str) -> (Lab, Server, Web) {
    let lab = Lab::new(name);
    lab.line("create data --level 5 --chunk 64K --assume-clean --file-size 16M d0 d1 d2").expect(0);
    let server = lab.serve(&["data", "--http", "127.0.0.1:0"]);
    let mut web = Web::at(&server.ready["console"]);
    web.token = Some(lab.line("login --token --role Operator").expect(0).text().trim().into());
    (lab, server, web)
}

/// Look until it is so.
#[track_caller]
fn until(look: impl Fn() -> Result<Value, Value>) -> Value {
    let end = Instant::now() + Duration::from_secs(600);
    loop {
        match look() {
            Ok(found) => return found,
            Err(last) => assert!(Instant::now() < end, "{last:#}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The newest job, when it has ended.
#[track_caller]
fn ended(web: &Web) -> Value {
    until(|| {
        let lab = web.get("/api/v1/lab").expect(200).json();
        let job = lab["jobs"][0].clone();
        if job["state"] == "running" {
            Err(lab)
        } else {
            Ok(job)
        }
    })
}

fn review(name: &str, arrays: &[&str]) -> String {
    json!({"name": name, "drive": "wd740gd", "arrays": arrays, "methods": ["latency"]}).to_string()
}

#[test]
fn reviews_run_as_jobs_one_at_a_time_and_their_reports_are_read_compared_and_removed() {
    let (lab, server, web) = serve("lab-jobs");
    let token = lab.line("login --token --role ReadOnly").expect(0).text();
    let reader = Web { token: Some(token.trim().into()), ..web.clone() };
    assert_eq!(reader.get("/api/v1/lab").expect(200).json()["jobs"], json!([]));
    reader.post("/api/v1/lab/reviews", &review("one", &["single"])).refused(403, &["Operator"]);
    let jobs = "/api/v1/lab/reviews";
    web.post(jobs, &review("one", &["single"])).expect(201);
    let job = ended(&web);
    assert_eq!((&job["state"], &job["name"]), (&"done".into(), &"one".into()), "{job:#}");
    web.post(jobs, &review("one", &["single"])).refused(409, &["a report one exists already"]);
    web.post(jobs, &review("two", &["single"])).expect(201);
    // A second job while the first one runs. The first may be quick: then the answer is another one.
    let second = web.post(jobs, &review("three", &["single"]));
    assert!(second.status == 201 || second.text().contains("one job at a time"), "{}", second.text());
    ended(&web);
    web.post("/api/v1/lab/comparisons", &json!({"name": "both", "a": "one", "b": "two"}).to_string()).expect(201);
    assert_eq!(ended(&web)["state"], "done");
    let listed = web.get("/api/v1/lab").expect(200).json();
    let kind = |name: &str| {
        let reports = listed["reports"].as_array().expect("a list");
        reports.iter().find(|report| report["name"] == name).map(|report| report["kind"].clone())
    };
    assert_eq!((kind("one"), kind("both")), (Some("review".into()), Some("comparison".into())));
    // The report is the one that the command line makes of the same words.
    let report = reader.get("/api/v1/lab/reports/one/report.html").expect(200);
    let policy = report.header("content-security-policy").expect("a policy");
    assert!(
        policy.contains("sandbox") && !policy.contains("allow-scripts") && !policy.contains("script-src"),
        "{policy}"
    );
    lab.line("review --drive wd740gd --arrays single --methods latency --effort quick --out own").expect(0);
    assert_eq!(report.body, fs::read(lab.path("own/report.html")).expect("a report"));
    // Nothing else can be read from there.
    let folder = lab.path("state/openraid/registry.json.reports");
    symlink(lab.path("d0"), folder.join("one/plan.json")).expect("a link");
    for path in ["one/plan.json", "one/job.json", "one/cells", "own/report.html", "one/..%2f..%2fregistry.json"] {
        let status = reader.get(&format!("/api/v1/lab/reports/{path}")).status;
        assert!([400, 404].contains(&status), "{path}: {status}");
    }
    let remove = |body: &str| web.ask_with("DELETE", "/api/v1/lab/reports/one", Some(body), &[]);
    remove("{\"confirm\": \"two\"}").refused(428, &["type the name of the report, one"]);
    remove("{\"confirm\": \"one\"}").expect(204);
    remove("{\"confirm\": \"one\"}").refused(404, &["no report"]);
    assert!(!folder.join("one").exists() && lab.path("d0").exists());
    until(|| {
        let events = web.get("/api/v1/events?limit=1000").expect(200).json();
        let text = events.to_string();
        let has = |what: &str| text.contains(&format!("report \\\"one\\\": {what}"));
        if ["begun: openraid-lab review", "refused", "removed"].into_iter().all(has) {
            Ok(Value::Null)
        } else {
            Err(events)
        }
    });
    server.stop();
}

#[test]
fn a_job_is_cancelled_and_goes_when_the_server_is_killed() {
    let (lab, server, web) = serve("lab-cancel");
    let long = json!({"name": "long", "drive": "wd740gd", "arrays": ["raid5x16", "raid6x16"], "methods": ["database"], "thorough": true});
    let begin = || web.post("/api/v1/lab/reviews", &long.to_string()).expect(201).json();
    let number = begin()["number"].clone();
    let path = format!("/api/v1/lab/jobs/{number}");
    web.ask_with("DELETE", &path, None, &[]).expect(200);
    assert_eq!(ended(&web)["state"], "cancelled");
    web.ask_with("DELETE", &path, None, &[]).refused(404, &["no job"]);
    // It can be begun again, because it has not ended. Its process has the lowest priority.
    begin();
    let child = until(|| children(&server.pid()).first().copied().map(Value::from).ok_or(Value::Null))
        .as_u64()
        .expect("a process");
    let stat = fs::read_to_string(format!("/proc/{child}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    assert_eq!(fields[16], "19", "{stat}");
    server.kill();
    until(|| {
        let state = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z ") {
            Ok(Value::Null)
        } else {
            Err(state.into())
        }
    });
    drop(lab);
}

/// Child processes of a process.
fn children(of: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("a folder").flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |number: &u32| -> Option<u32> {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
    };
    numbers.filter(|number| parent(number).is_some_and(|of_process| of_process.to_string() == of)).collect()
}

#[test]
fn levels_are_predicted_as_plan_predicts_them() {
    let (lab, server, web) = serve("lab-predict");
    lab.drives(&["m0", "m1", "m2"], 16);
    let members: Vec<String> = ["m0", "m1", "m2"].map(|name| lab.path(name).display().to_string()).into();
    let creation = json!({"name": "more", "level": "5", "members": members});
    let ask = |more: Value| {
        let mut body = json!({ "creation": creation });
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        web.post("/api/v1/predictions", &body.to_string())
    };
    let answer = until(|| {
        let answer = ask(json!({"drive": "wd740gd"})).expect(200).json();
        if answer["waits"] == true {
            Err(answer)
        } else {
            Ok(answer)
        }
    });
    assert_eq!((&answer["error"], &answer["drive"]), (&Value::Null, &"wd740gd".into()));
    // The command that it names says the same.
    let command = answer["command"].as_str().expect("a line").strip_prefix("openraid-lab ").expect("it").to_owned();
    let plan = lab.line(&format!("{command} --json")).expect(0).json();
    for level in answer["levels"].as_array().expect("a list") {
        let array = format!("raid{}x3", level["level"].as_str().expect("a word"));
        let planned =
            plan["levels"].as_array().expect("a list").iter().find(|plan| plan["possible"]["array"] == array.as_str());
        let Some(planned) = planned else {
            assert!(level["impossible"].is_string(), "{level}");
            continue;
        };
        let possible = &planned["possible"];
        assert_eq!(level["healthy"]["iops"], possible["healthy"]["iops"], "{array}");
        let scaled = possible["rebuild"]["idle_hours"]
            .as_f64()
            .map(|hours| hours * f64::from(16 << 20) / plan["drive_bytes"].as_f64().expect("bytes"));
        let close = match (level["rebuild_hours"].as_f64(), scaled) {
            (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b,
            (a, b) => a == b,
        };
        assert!(close, "{level} {scaled:?}");
    }
    // Plans of the same drives at the same time do not find them in use.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| web.post("/api/v1/plan", &creation.to_string()).expect(200));
        }
    });
    // Files have no model, and that is said.
    let files = ask(json!({})).expect(200).json();
    assert!(files["why"].as_str().is_some_and(|why| why.contains("files")), "{files}");
    ask(json!({"load": "/etc/passwd"})).refused(400, &["no load"]);
    ask(json!({"drive": "nothing"})).refused(400, &["nothing"]);
    server.stop();
}
