//! Plans over several machines, parts of reviews and plans that are joined, and loads recorded on served arrays.

use crate::support;

use std::fs;
use std::time::{Duration, Instant};

use crate::support::Lab;
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_plan_has_several_drive_counts_prices_five_years_and_a_recommendation() {
    let lab = Lab::new("several-machines");
    let line = "plan --drives 4,6 --drive exos_x18_18tb --levels 10,6 --load backup --effort quick --price 250 --kwh-price 0.3";
    let plan = lab.line(&format!("{line} --json")).expect(0).json();
    assert_eq!((&plan["drives"], &plan["more"][0]["drives"], &plan["more"][1]), (&4.into(), &6.into(), &Value::Null));
    let level = &plan["levels"][0]["possible"];
    let (loss, energy) = (&level["loss"], &level["energy"]);
    let (year, five) = (number(&loss["year"]), number(&loss["five_years"]));
    assert!((five - (1.0 - (1.0 - year).powi(5))).abs() < 1e-9 && five > year, "{loss}");
    // Four drives between 5.3 and 9.4 W.
    assert!(number(&energy["idle_watts"]) > 21.1 && number(&energy["watts"]) <= 37.6 + 1e-9, "{energy}");
    let price = number(&plan["prices"][0]["per_tb"]);
    assert!((price - 4.0 * 250.0 / (number(&level["capacity"]) / 1e12)).abs() < 1e-6, "{price}");
    // Mirrors are twice as fast, and lose data in about 1 of 100 cases.
    assert_eq!(plan["recommendation"]["array"], "raid10x4", "{}", plan["recommendation"]);
    let (array, sector) = (number(&loss["array_five_years"][0]), number(&loss["sector_five_years"][0]));
    assert!((five - (1.0 - (1.0 - array) * (1.0 - sector))).abs() < 1e-9 && array < sector, "{loss}");
    assert_eq!((&level["by_throughput"], &plan["outstanding"]), (&true.into(), &8.into()));
    assert!(number(&plan["more"][0]["levels"][0]["possible"]["loss"]["five_years"]) > five, "more drives, more losses");
    let across = plan["across"].as_array().expect("a list");
    assert!(across[0].as_str().is_some_and(|line| line.starts_with("raid10x4 to raid10x6: ")), "{across:?}");
    let text = lab.line(line).expect(0).text();
    for words in [
        "IN 5 YEARS",
        "PRICE A TB",
        "recommended: raid",
        "RECOMMENDED  ROOM",
        "6 x exos_x18_18tb on pcie3_x8",
        " MB/s, ",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.contains("backup, 8 outstanding: MB/s / requests/s / mean latency in ms"), "{text}");
}

#[test]
fn a_plan_compares_caches_chunks_and_spares_in_one_answer() {
    let lab = Lab::new("spares");
    let line = "plan --drives 4 --drive wd740gd --levels 5 --load random --effort quick";
    let asked = format!("{line} --caches wt,wb:64 --chunks 64K,256K --spares 0,1");
    let plan = lab.line(&format!("{asked} --json")).expect(0).json();
    let more = plan["more"].as_array().expect("a list");
    let of = |machine: &Value| (machine["cache"].clone(), machine["chunk_bytes"].clone(), machine["spares"].clone());
    assert_eq!(more.len(), 7);
    assert_eq!(of(&plan), ("write-through".into(), 65_536.into(), 0.into()));
    assert_eq!(of(&more[6]), ("write-back 64 MiB".into(), 262_144.into(), 1.into()));
    // Without a spare a day goes by before the rebuild.
    assert_eq!((&plan["replacement_hours"], &more[0]["replacement_hours"]), (&24.into(), &0.into()));
    let window = |machine: &Value| number(&machine["levels"][0]["possible"]["loss"]["window_hours"]);
    assert!(window(&plan) > 24.0 && window(&more[0]) < window(&plan), "{} {}", window(&plan), window(&more[0]));
    assert_eq!((&plan["drives"], &more[0]["drives"]), (&4.into(), &3.into()));
    let across = plan["across"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let begin = "write-through, chunk 64 KiB: raid5x3 with 1 spare instead of raid5x4 with no spare: ";
    assert_eq!(across.filter(|line| line.starts_with(begin)).count(), 1, "{plan}");
    for (options, words) in [
        ("--caches xb", &["wt or wb, or with a size in MiB"][..]),
        ("--caches wb --cache wt", &["cannot be used with"]),
        ("--spares 4", &["of 4 drives none is left for an array"]),
    ] {
        lab.line(&format!("{line} {options}")).refused(64, words);
    }
}

#[test]
fn a_plan_says_which_level_carries_the_rate_of_iostat() {
    let lab = Lab::new("rate");
    let report = |reads: u32, writes: u32| {
        format!("Device r/s rkB/s w/s wkB/s aqu-sz\nsda {reads} {} {writes} {} 2\n\n", reads * 8, writes * 8)
    };
    let text = format!("Linux 6.1 (host)\n\n{}{}", report(1, 1), report(100, 50));
    fs::write(lab.path("iostat"), text).expect("written");
    let line = "plan --drives 4 --drive exos_x18_18tb --levels 10,6 --from iostat --effort quick";
    let plan = lab.line(&format!("{line} --json")).expect(0).json();
    // The mean queue of two says nothing about the most that an array carries.
    assert_eq!((&plan["rate"], &plan["outstanding"]), (&150.0.into(), &32.into()));
    let (level, reserve) = (&plan["levels"][0]["possible"], &plan["reserves"][0]);
    let free = (1.0 - 150.0 / number(&level["healthy"]["iops"])) * 100.0;
    assert!((number(&reserve["healthy_percent"]) - free).abs() < 1e-9 && free > 30.0, "{reserve}");
    let text = lab.line(line).expect(0).text();
    assert!(text.contains("150 requests/s must be carried") && text.contains("raid10x4: carries it with "), "{text}");
    let more = lab.line(&format!("{line} --rate 5000")).expect(0).text();
    assert!(
        more.contains("raid10x4: does not carry it: ")
            && more.contains("no level that survives a failure carries 5000 requests/s"),
        "{more}"
    );
}

#[test]
fn a_named_load_has_the_depth_of_its_use_and_drives_in_slots_share_no_bus() {
    let lab = Lab::new("depth");
    let plan = lab.line("plan --drives 2 --levels 1 --drive wd740gd --load file-server --effort quick --json");
    assert_eq!(plan.expect(0).json()["outstanding"], 16);
    let line =
        "plan --drives 4 --levels 0 --drive 980pro_1tb --load sequential --block 1M --depth 32 --effort quick --json";
    let plan = lab.line(line).expect(0).json();
    let mbps = number(&plan["levels"][0]["possible"]["healthy"]["mbps"]);
    assert!(plan["bus"] == "slots" && mbps > 25_000.0, "four times 7 GB/s: {mbps} on {}", plan["bus"]);
}

#[test]
fn plans_for_several_buses_say_which_bus_each_is_for() {
    let lab = Lab::new("buses");
    let line = "plan --drives 4 --system intel-rst --levels 0 --load backup --effort quick --bus";
    let text = lab.line(&format!("{line} dmi2,pcie3_x8")).expect(0).text();
    for words in ["on intel-rst with dmi2, write-through", "on intel-rst with pcie3_x8, write-through"] {
        assert_eq!(text.matches(words).count(), 1, "{words}: {text}");
    }
    let one = lab.line(&format!("{line} dmi2")).expect(0).text();
    assert!(one.contains("on intel-rst, write-through"), "{one}");
}

#[test]
fn an_index_that_lacks_the_single_drive_says_so() {
    let lab = Lab::new("index");
    let line = "review --target sim:openraid --methods file-server --effort quick --rank R5-light --out";
    let text = lab.line(&format!("{line} pair --arrays raid0x2")).expect(0).text();
    assert!(text.contains("nothing is ranked by R5-light: its formula compares with the single drive"), "{text}");
    let text = lab.line(&format!("{line} both --arrays single,raid0x2")).expect(0).text();
    assert!(text.contains("by R5-light: (q1/s1"), "{text}");
}

#[test]
fn mixed_drives_go_as_the_slowest_and_are_checked() {
    let lab = Lab::new("mixed");
    let two = "plan --drives 4 --levels 10 --effort quick --drive exos_x18_18tb,wdredplus_4tb";
    lab.line(&format!("{two} --price 280")).refused(64, &["1 price for 2 drive profiles", "a price for each"]);
    let line = "plan --drives 4 --levels 5 --load web-server --depth 16 --effort quick --json";
    let mixed = lab.line(&format!("{line} --drive 3xexos_x18_18tb+1xwdredplus_4tb")).expect(0).json();
    let plan = &mixed["levels"][0]["possible"];
    assert_eq!(plan["weakest"][0], "wdredplus_4tb", "{}", plan["weakest"]);
    // The large drives use their outer fourth only: they are faster than the small one, which is what all wait for.
    let small = lab.line(&format!("{line} --drive wdredplus_4tb")).expect(0).json();
    let iops = |json: &Value| number(&json["levels"][0]["possible"]["healthy"]["iops"]);
    assert!(iops(&small) < iops(&mixed), "{} {}", iops(&small), iops(&mixed));
    assert_eq!(small["levels"][0]["possible"]["capacity"], plan["capacity"]);
    lab.line(&format!("{line} --drive 3xexos_x18_18tb+2xmg08_16tb"))
        .refused(64, &["--drive: 5 drives are given for an array of 4"]);
    lab.line(&format!("{line} --drive 2xexos_x18_18tb+2xnothing")).refused(64, &["nothing"]);
}

#[test]
fn a_trace_is_planned_with_by_its_latency() {
    let lab = Lab::new("planned-trace");
    // One write each 50 ms.
    let lines: Vec<String> =
        (0..100).map(|n| format!("0,{},4096,W,{}.{:03}\n", n * 997 * 8, n / 20, n % 20 * 50)).collect();
    fs::write(lab.path("t.csv"), lines.concat()).expect("written");
    let line =
        "plan --drives 4 --drive exos_x18_18tb --levels 10,6 --effort quick --cache wt --drive-cache off --from t.csv";
    let plan = lab.line(&format!("{line} --json")).expect(0).json();
    let level = |number: usize| &plan["levels"][number]["possible"];
    let mean = |at: usize| number(&level(at)["healthy"]["mean_ms"]);
    assert_eq!((&plan["load"], &level(0)["by_latency"]), (&"t.csv".into(), &true.into()));
    // The requests come as often on both; what differs is how long they take.
    assert!((number(&level(0)["healthy"]["iops"]) - number(&level(1)["healthy"]["iops"])).abs() < 1.0);
    assert!(mean(1) > 1.1 * mean(0), "{} {}", mean(1), mean(0));
    let text = lab.line(line).expect(0).text();
    assert!(text.contains("at its own times") && text.contains(" ms in the mean)"), "{text}");
    lab.line(&format!("{line} --depth 4")).refused(64, &["--depth", "t.csv fixes the requests"]);
    lab.line("plan --drives 4 --from nowhere").refused(64, &["nowhere: it cannot be read"]);
}

#[test]
fn parts_of_a_review_are_joined_to_what_one_run_has() {
    let lab = Lab::new("review-parts");
    let line =
        "review --target sim:3ware-9650se --arrays single,raid1x2 --methods response-time,low-level --effort quick";
    lab.line(&format!("{line} --out whole")).expect(0);
    for part in 1..=3 {
        let output = lab.line(&format!("{line} --shard {part}/3 --out part{part}")).expect(0).text();
        assert!(output.contains(&format!("part {part}/3: ")) && output.contains(" left to others"), "{output}");
    }
    lab.line("merge part1 part3 --out joined").refused(64, &["of 3 parts these are missing: 2"]);
    lab.line("merge part1 part1 part2 part3 --out joined").refused(64, &["part 1/3 is there twice"]);
    lab.line("merge part1 part2 part3 whole --out joined").refused(64, &["a whole review"]);
    lab.line("merge part1 part2 part3").refused(64, &["--out"]);
    lab.line("merge part1 part2 part4 --out joined").refused(64, &["part4: there is no such part"]);
    lab.line("merge part3 part1 part2 --out joined").expect(0);
    let read = |name: &str| fs::read(lab.path(name).join("results.json")).expect("results");
    assert!(read("joined") == read("whole"), "a review in parts has every byte of one in one piece");
    // Parts of another program, and of another review.
    let path = lab.path("part2/results.json");
    let text = fs::read_to_string(&path).expect("results");
    let other: Value = serde_json::from_str(&text).expect("JSON");
    let stamp = other["stamp"].as_str().expect("a stamp");
    fs::write(&path, text.replace(stamp, "0.0.9 0 0")).expect("written");
    lab.line("merge part1 part2 part3 --out again").refused(64, &["different programs", "0.0.9"]);
    assert!(!lab.path("again").exists(), "nothing is made for parts that are refused");
    fs::write(&path, text.replace("\"seed\":1", "\"seed\":2")).expect("written");
    lab.line("merge part1 part2 part3 --out again").refused(64, &["different reviews"]);
    lab.line(&format!("{line} --shard 4/3 --out x")).refused(64, &["--shard"]);
    fs::write(lab.path("disk"), vec![0; 1 << 20]).expect("written");
    lab.line("review --target disk --methods response-time --shard 1/2 --out x").refused(64, &["one simulated target"]);
}

#[test]
fn parts_of_a_plan_are_joined() {
    let lab = Lab::new("plan-parts");
    let line = "plan --drives 3,4,5 --levels 5 --system 3ware-9650se --load database --effort quick --json";
    let whole = lab.line(line).expect(0).json();
    for part in 1..=2 {
        fs::write(lab.path(&format!("{part}.json")), lab.line(&format!("{line} --shard {part}/2")).expect(0).out)
            .expect("written");
    }
    let joined = lab.line("merge 2.json 1.json --json").expect(0).json();
    let machines = |plan: &Value| -> Vec<Value> {
        let more = plan["more"].as_array().expect("a list").iter();
        std::iter::once(plan["levels"].clone()).chain(more.map(|one| one["levels"].clone())).collect()
    };
    assert_eq!((machines(&joined), &joined["across"]), (machines(&whole), &whole["across"]));
    lab.line("merge 1.json").refused(64, &["missing: 2"]);
    let other = line.replace("--levels 5", "--levels 0");
    fs::write(lab.path("3.json"), lab.line(&format!("{other} --shard 2/2")).expect(0).out).expect("written");
    lab.line("merge 1.json 3.json").refused(64, &["parts of different plans"]);
    // A part of another version of the program, and one that was cut off.
    let part = fs::read_to_string(lab.path("2.json")).expect("a part");
    let known: Value = serde_json::from_str(&part).expect("JSON");
    let stamp = known["part"]["stamp"].as_str().expect("a stamp");
    fs::write(lab.path("old.json"), part.replace(stamp, "0.0.9 0 0")).expect("written");
    lab.line("merge 1.json old.json").refused(64, &["1.json and old.json were made by different programs"]);
    fs::write(lab.path("cut.json"), &part[..part.len() / 2]).expect("written");
    lab.line("merge 1.json cut.json").refused(64, &["cut.json: no part of a plan"]);
    fs::write(lab.path("4.json"), "{}").expect("written");
    lab.line("merge 1.json 4.json").refused(64, &["4.json: no part of a plan"]);
    lab.line(&format!("{line} --shard 1/4")).refused(64, &["there are 3"]);
}

#[test]
fn a_served_array_is_recorded_without_its_data_and_the_record_is_played() {
    let lab = Lab::new("record");
    lab.line("create data --level 5 --chunk 64K --file-size 16M d0 d1 d2").expect(0);
    lab.line("record data --out early").refused(4, &["data"]);
    let server = lab.serve(&["data"]);
    let block = [0xa5; 4096];
    let (recorded, json) = std::thread::scope(|scope| {
        let recording = scope.spawn(|| lab.line("record data --out t.iolog --seconds 3 --json").expect(0).json());
        let until = Instant::now() + Duration::from_secs(60);
        while !lab.path("t.iolog").exists() {
            assert!(Instant::now() < until, "nothing is recorded");
            std::thread::sleep(Duration::from_millis(5));
        }
        let requests: Vec<(u16, u64, &[u8])> = (0..20).map(|n| (support::WRITE, n * 65_536, &block[..])).collect();
        support::ask(&lab, &server, &requests);
        support::ask(&lab, &server, &[(support::FLUSH, 0, &[])]);
        let json = recording.join().expect("it ends");
        (fs::read_to_string(lab.path("t.iolog")).expect("a trace"), json)
    });
    assert_eq!((&json["requests"], &json["lost_steps"]), (&21.into(), &0.into()), "{recorded}");
    let words = |line: &str| line.split_once(' ').map(|(_, words)| words.to_owned()).expect("a time and words");
    let writes: Vec<String> = recorded.lines().filter(|line| line.contains(" write ")).map(words).collect();
    assert_eq!(
        (writes[0].as_str(), writes[19].as_str(), writes.len()),
        ("array write 0 4096", "array write 1245184 4096", 20)
    );
    assert_eq!(recorded.lines().last().map(words).as_deref(), Some("array sync 0 0"));
    // Nothing is overwritten.
    lab.line("record data --out t.iolog --seconds 1").refused(65, &["t.iolog", "name a new file"]);
    server.stop();
    let played = lab.line("simulate raid5x3 --load t.iolog --json").expect(0).json();
    assert_eq!(played["result"]["requests"], 21);
    lab.line("plan --drives 3 --levels 5 --from t.iolog --effort quick").expect(0);
    // fio plays it: it complains about no line, and does all of it.
    fs::write(lab.path("array"), vec![0; 48 << 20]).expect("written");
    let options =
        ["--name=play", "--ioengine=sync", "--read_iolog=t.iolog", "--filename=array", "--output-format=json"];
    let job = &fio(&lab, &options)["jobs"][0];
    assert_eq!((&job["write"]["total_ios"], &job["read"]["total_ios"]), (&20.into(), &0.into()));
}

/// Runs fio in the folder of the test. Any complaint of it is a failure.
fn fio(lab: &Lab, options: &[&str]) -> Value {
    let output =
        std::process::Command::new("fio").args(options).current_dir(lab.path(".")).output().expect("fio starts");
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !complaint.contains("bad"), "{said}{complaint}");
    let json = said.find('{').map_or("", |start| &said[start..]);
    assert!(!said.contains("bad iolog"), "{said}");
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn what_fio_records_is_played_at_its_times() {
    let lab = Lab::new("fio-trace");
    fs::write(lab.path("data"), vec![0; 4 << 20]).expect("written");
    let options =
        ["--name=record", "--filename=data", "--rw=randread", "--bs=4k", "--number_ios=100", "--rate_iops=50"];
    fio(&lab, &[&options[..], &["--write_iolog=t.iolog", "--output-format=json"]].concat());
    let played = lab.line("simulate raid5x3 --load t.iolog --json").expect(0).json();
    // fio's times on a busy machine are not exact.
    let rate = number(&played["iops"]);
    assert!(played["result"]["requests"] == 100 && rate > 25.0 && rate < 75.0, "{rate}");
}
