//! The verbs of the laboratory: a load file decides the load, contradictory options are refused, nothing is overwritten
//! by accident, and an interrupted run continues.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::Lab;

const SIMULATE: &str = "simulate raid5x4 --system 3ware-9650se --effort quick --json";
const JOBS: &str = "[global]\nioengine=libaio\ndirect=1\nrw=randread\nbs=4k\n[plain]\niodepth=4\n\
                    [paced]\nrate_iops=10\nruntime=60\nramp_time=5\n[part]\noffset=1g\nsize=1g\nthinktime=100000\n";

#[test]
fn a_load_file_decides_the_load() {
    let lab = Lab::new("load");
    fs::write(lab.path("jobs.fio"), JOBS).expect("written");
    let job = |name: &str| lab.line(&format!("{SIMULATE} --load jobs.fio --job {name}")).expect(0).json();
    let paced = job("paced");
    // One each 100 ms, the first after 100 ms and none at 60 s; it ends with the last of them.
    assert_eq!(paced["result"]["requests"], 599);
    assert_eq!(paced["result"]["elapsed_ns"].as_u64().map(|ns| ns / 1_000_000_000), Some(59));
    // One request, some 12 ms, then 100 ms of thought.
    let thinking = job("part")["iops"].as_f64().expect("a number");
    assert!((8.0..10.0).contains(&thinking), "{thinking}");
    assert!(job("plain")["iops"].as_f64().expect("a number") > 100.0);
    lab.line(&format!("{SIMULATE} --load jobs.fio")).refused(64, &["3 loads", "--job", "\"paced\""]);
    lab.line(&format!("{SIMULATE} --load jobs.fio --job x")).refused(64, &["no load \"x\"", "\"plain\""]);
    lab.line(&format!("{SIMULATE} --load database --job x")).refused(64, &["--job", "is not a file"]);
    lab.line(&format!("{SIMULATE} --load jobs.fio --job part --first-32-gb")).refused(64, &["--first-32-gb", "part"]);
    lab.line(&format!("{SIMULATE} --load jobs.fio --job paced --workers 2")).refused(64, &["--workers", "one worker"]);
}

#[test]
fn only_the_wanted_job_of_a_file_has_to_be_understood() {
    let lab = Lab::new("other-job");
    let jobs =
        "# published\n[global]\nioengine=libaio\ndirect=1\n[fill]\nrw=write\nloops=2\n[test]\nrw=randread\niodepth=8\n";
    fs::write(lab.path("jobs.fio"), jobs).expect("written");
    let ran = lab.line(&format!("{SIMULATE} --load jobs.fio --job test")).expect(0).json();
    assert_eq!(ran["result"]["spec"]["axes"]["qd"], 8);
    let why = "line 7: loops=\"2\" changes the load";
    lab.line(&format!("{SIMULATE} --load jobs.fio --job fill")).refused(64, &[why]);
    let listed = format!("name one with --job: \"fill\" (not understood: {why}");
    lab.line(&format!("{SIMULATE} --load jobs.fio")).refused(64, &[&listed, "\"test\""]);
    // A comment before the first line of a trace does not make it a job file.
    fs::write(lab.path("t.csv"), "# recorded\n419,W,8192,16384,1577808144360767\n").expect("written");
    assert_eq!(lab.line(&format!("{SIMULATE} --load t.csv")).expect(0).json()["result"]["requests"], 1);
}

#[test]
fn a_trace_accepts_options_of_the_machine_and_none_of_the_load() {
    let lab = Lab::new("trace");
    let lines: Vec<String> =
        (0..200).map(|n| format!("0,{},4096,W,{}.{:03}\n", n * 997 * 8, n / 20, n % 20 * 50)).collect();
    fs::write(lab.path("t.csv"), lines.concat()).expect("written");
    let run = |more: &str| lab.line(&format!("{SIMULATE} --load t.csv {more}"));
    let plain = run("").expect(0).json();
    assert_eq!(plain["result"]["spec"]["pattern"]["trace"]["name"], "t.csv");
    let through = run("--cache wt").expect(0).json();
    let mean = |json: &serde_json::Value| json["mean_ms"].as_f64().expect("a number");
    assert!(mean(&through) > 2.0 * mean(&plain), "{} {}", mean(&through), mean(&plain));
    for (option, words) in [("--depth 4", "--depth"), ("--reads 50", "--reads"), ("--way write", "--way")] {
        run(option).refused(64, &[words, "the trace t.csv fixes the requests and their times"]);
    }
    run("--bus nonsense").refused(64, &["there is no bus 'nonsense'; choose one of: dmi2"]);
    let text = lab.line(&SIMULATE.replace("--json", "--load t.csv")).expect(0).text();
    assert!(text.contains("t.csv"), "{text}");
}

#[test]
fn a_named_target_that_is_missing_or_of_another_kind_is_wrong_usage() {
    let lab = Lab::new("named");
    fs::write(lab.path("notes"), "buy drives\n").expect("written");
    fs::create_dir(lab.path("folder")).expect("made");
    // A WD740GD has 74 GB.
    fs::write(lab.path("far.csv"), "0,0,4096,R,0.0\n0,163840000000,4096,R,0.1\n").expect("written");
    for (line, words) in [
        (
            "simulate single --load nowhere",
            &["neither a load nor a file", "a fio job, an Iometer .icf, the output of iostat -x, a trace"][..],
        ),
        (
            "simulate single --load notes",
            &["line 1: \"buy drives\" stands before any [section]", "known are a fio job"],
        ),
        ("simulate single --drive wd740gd --load far.csv", &["the trace does not fit: line 2"]),
        ("simulate single --models nowhere", &["nowhere: does not exist"]),
        ("simulate raid0x4 --degraded 1", &["raid0 with 1 drive missing cannot run"]),
        ("simulate raid6x129", &["this level takes 4 to 128"]),
        ("simulate raid60x130", &["130 drives are more than 128"]),
        ("review --target nowhere --methods response-time", &["nowhere: there is no such file or device"]),
        (
            "review --target /dev/null --methods response-time",
            &["/dev/null: this is a", "a target must be a regular file"],
        ),
        ("review --target folder --methods response-time", &["a directory; a target must be"]),
        ("compare nowhere nowhere", &["nowhere: it cannot be read"]),
        ("validate --claims nowhere", &["nowhere: "]),
        ("validate --only x", &["--only x: no claim of the built-in claims"]),
    ] {
        lab.line(line).refused(64, words);
    }
}

#[test]
fn options_that_contradict_or_do_nothing_are_refused() {
    let lab = Lab::new("options");
    let review = "review --target sim:3ware-9650se --arrays single --methods response-time";
    fs::write(lab.path("disk"), vec![0; 1 << 20]).expect("written");
    let real = "review --target disk --methods response-time";
    for (line, words) in [
        ("simulate single --reads 100 --way write", "--way"),
        ("simulate single --load file-server --way write", "--way: sizes and directions are fixed by the file-server"),
        ("simulate single --load sr --way write", "says the direction already"),
        ("simulate single --depth 0", "--depth: 0 is not possible"),
        ("simulate single --block 1000", "--block: give a whole number"),
        ("simulate raid6x3", "takes 4"),
        ("simulate raid10x5", "raid10 cannot be made of 5 drives"),
        ("simulate raid5x4 --degraded 2", "raid5 with 2 drives missing cannot run"),
        ("simulate best15k --drive s3700_400", "--drive: best15k is a drive itself"),
        ("plan --drives 4 --load web-server --reads 50", "--reads: sizes and directions"),
        (
            "simulate single --bus sata3",
            "--bus: sata3 is a link of drives, and no bus towards a host; choose one of: dmi2",
        ),
        ("plan --drives 4 --bus sas6_x4", "Drives on an expander: --system openraid-expander"),
        (&format!("{review} --bus u320"), "--bus: u320 is a link of drives"),
        (&format!("{review} --seconds 5"), "--seconds is for real targets"),
        (&format!("{review} --destroy-data"), "--destroy-data is for real targets"),
        (&format!("{real} --arrays raid5x4"), "--arrays is for simulated targets"),
        (&format!("{real} --effort quick"), "--effort is for simulated targets"),
        ("review --target null: --destroy-data --methods response-time", "holds no data"),
        ("review --methods own-load", "--load"),
        ("review --methods M19", "M19 is a rule that holds for every method"),
        ("review --jobs 0", "--jobs"),
        (&format!("{real} --cache-mib 64"), "--cache-mib is for simulated targets"),
        (&review.replace("single", "single,best15k --drive s3700_400"), "--drive: best15k is a drive itself"),
        (&format!("{real} --drive-state fresh"), "--drive-state is for simulated targets"),
        (&format!("{real} --drive-read-ahead off"), "--drive-read-ahead is for simulated targets"),
        ("simulate single --drive wd740gd --drive-state fresh", "--drive-state: wd740gd is not an SSD"),
        ("plan --drives 4 --drive wd740gd --drive-state fresh", "--drive-state: wd740gd is not an SSD"),
        (&format!("{review} --drive-state fresh"), "--drive-state: wd740gd is not an SSD"),
        ("review --methods all,nonsense", "no method \"nonsense\""),
    ] {
        lab.line(line).refused(64, &[words]);
    }
    lab.line("review --methods database,list").expect(0);
    assert!(!lab.path("review").exists(), "what was refused has made no folder");
    fs::write(lab.path("tiny"), [0; 256]).expect("written");
    lab.line("review --target tiny --methods response-time").refused(4, &["too short to be measured"]);
}

#[test]
fn drives_that_do_not_fit_the_ports_are_refused_and_fitting_ones_are_named() {
    let lab = Lab::new("plugs");
    let out = "--methods response-time --arrays single --effort quick --out";
    let plan = "plan --effort quick --drives 4 --levels 5";
    for (line, words) in [
        (
            "simulate single --system 3ware-9650se --drive p5510_3840".to_owned(),
            [
                "--drive: p5510_3840 (PCI Express, generation 4, 4 lanes) does not fit",
                "3ware-9650se (Serial ATA, 3 Gbit/s)",
            ],
        ),
        (
            format!("{plan} --system 3ware-9650se --drive cheetah_15k7"),
            ["(SAS, 6 Gbit/s) does not fit", "a controller that takes it: lsi-8708em2, lsi-9260-4i"],
        ),
        (
            format!("review --target sim:3ware-9650se --drive st318453lw {out} scsi"),
            ["(Ultra320 SCSI, one channel for its drives) does not fit", "takes it: icp-9014ro"],
        ),
        (
            format!("{plan} --system icp-9024ro --drive wd740gd"),
            ["does not fit the ports of icp-9024ro", "choose a drive that does: atlas10k, cheetah9lp, st318453lw;"],
        ),
    ] {
        lab.line(&line).refused(64, &words);
    }
    assert!(!lab.path("scsi").exists());
    // A SATA drive fits a SAS port, NVMe a slot of the host's, and one that is none fits everywhere.
    lab.line("simulate single --system lsi-9260-8i --drive wd740gd --effort quick").expect(0);
    lab.line("simulate single --drive pm9a3_1920 --effort quick").expect(0);
    lab.line("simulate single --system 3ware-9650se --drive service-fixed --effort quick").expect(0);
    lab.line("simulate raid6x24 --system openraid-expander --drive exos_x18_18tb --effort quick").expect(0);
    let text = lab.line("simulate --list").expect(0).text();
    let line = |begin: &str| text.lines().find(|line| line.starts_with(begin)).map(ToOwned::to_owned).expect("a line");
    assert!(line("buses: ").contains("pcie3_x8") && !line("buses: ").contains("sata3"));
    assert!(line("links of drives: ").contains("sas6_x4"));
}

#[test]
fn every_verb_accepts_the_loads_that_its_help_names() {
    let lab = Lab::new("help");
    let help = |verb: &str| lab.line(&format!("{verb} --help")).expect(0).text();
    assert!(help("simulate").contains("blkparse"));
    let plan = help("plan");
    assert!(plan.contains("a fio job, an Iometer") && plan.contains("trace"), "{plan}");
    lab.line("plan --drives 4 --load nowhere").refused(64, &["neither a load nor a file"]);
}

#[test]
fn nothing_is_overwritten_by_accident() {
    let lab = Lab::new("overwrite");
    let review = "review --arrays single --methods response-time --effort quick";
    lab.line(&format!("{review} --target sim:3ware-9650se --out one")).expect(0);
    let results = fs::read(lab.path("one/results.json")).expect("results");
    lab.line(&format!("{review} --target sim:openraid --out one"))
        .refused(65, &["one: it holds a review of sim:3ware-9650se", "another folder"]);
    assert!(fs::read(lab.path("one/results.json")).expect("results") == results);
    lab.line(&format!("{review} --target sim:3ware-9650se --out one")).expect(0);
    assert!(fs::read(lab.path("one/results.json")).expect("results") == results);
    fs::write(lab.path("disk.img"), vec![7; 8192]).expect("written");
    lab.line("compare one one --out disk.img").refused(65, &["disk.img: it is not a report", "another file"]);
    assert_eq!(fs::read(lab.path("disk.img")).expect("it is there"), vec![7; 8192]);
    lab.line("compare one one --out /dev/null").refused(65, &["not a regular file"]);
    for _ in 0..2 {
        lab.line("compare one one --out page.html").expect(0);
    }
    for name in ["results.json", "fio.json", "report.html"] {
        let folder = format!("of-{name}");
        fs::create_dir(lab.path(&folder)).expect("made");
        fs::write(lab.path(&folder).join(name), "mine").expect("written");
        lab.line(&format!("{review} --target sim:3ware-9650se --out {folder}")).refused(65, &[name, "name another"]);
        assert_eq!(fs::read(lab.path(&folder).join(name)).expect("it is there"), b"mine");
    }
}

#[test]
fn a_real_target_that_is_only_read_is_measured_as_far_as_that_goes() {
    let lab = Lab::new("real");
    fs::write(lab.path("disk"), vec![0x5a; 8 << 20]).expect("written");
    fs::write(lab.path("jobs.fio"), JOBS.replace("runtime=60\nramp_time=5", "runtime=2")).expect("written");
    let line = "review --target disk --methods response-time --load jobs.fio --job paced --seconds 2 --out out";
    let ran = lab.line(line).expect(0);
    assert!(ran.text().contains("3 cells of disk; 1 not applicable, 0 failed"), "{}", ran.text());
    assert!(ran.text().contains("us of processor time for a request"), "{}", ran.text());
    let text = fs::read_to_string(lab.path("out/results.json")).expect("results");
    let results: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let measured = &results["methods"][0]["cells"][0]["outcome"]["measured"];
    assert!((10..=20).contains(&measured["requests"].as_u64().expect("a number")), "{measured}");
    let writing = &results["methods"][1]["cells"][1]["outcome"]["absent"];
    assert!(writing["reason"].as_str().is_some_and(|why| why.contains("--destroy-data")), "{writing}");
    let page = fs::read_to_string(lab.path("out/report.html")).expect("a page");
    assert!(page.contains("disk, writing") && page.contains("OWN A load of your own"));
    assert!(fs::read(lab.path("disk")).expect("it is there") == vec![0x5a; 8 << 20]);
    // The same is not measured again; what could not be written is, once it may be; and so is another file under its name.
    let kept = || fs::read_to_string(lab.path("out/results.json")).expect("results");
    lab.line(line).expect(0);
    assert!(kept().contains(&measured["elapsed_ns"].to_string()));
    let ran = lab.line(&format!("{line} --destroy-data --name disk")).expect(0);
    assert!(ran.text().contains("3 cells of disk; 0 not applicable, 0 failed"), "{}", ran.text());
    assert!(kept().contains(&measured["elapsed_ns"].to_string()));
    assert!(fs::read(lab.path("disk")).expect("it is there") != vec![0x5a; 8 << 20]);
    fs::write(lab.path("other"), vec![0x5a; 8 << 20]).expect("written");
    fs::rename(lab.path("other"), lab.path("disk")).expect("renamed");
    lab.line(line).expect(0);
    assert!(!kept().contains(&measured["elapsed_ns"].to_string()));
}

#[test]
fn repetitions_of_a_cell_are_compared_by_their_median() {
    let lab = Lab::new("median");
    let review = "review --target sim:3ware-9650se --arrays single,raid1x2 --methods response-time --effort quick";
    lab.line(&format!("{review} --out once")).expect(0);
    lab.line(&format!("{review} --repeat 3 --out thrice")).expect(0);
    let compared = lab.line("compare thrice once --out page.html --json").expect(0).json();
    let pairs = compared["pairs"].as_array().expect("a list");
    assert_eq!((pairs.len(), &compared["only_a"], &compared["only_b"]), (4, &0.into(), &0.into()));
    let text = fs::read_to_string(lab.path("thrice/results.json")).expect("results");
    let results: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for pair in pairs {
        let (subject, op) = (&pair["cell"]["subject"], &pair["cell"]["axes"]["op"]);
        let cells = results["methods"][0]["cells"].as_array().expect("cells").iter();
        let mut means: Vec<f64> = cells
            .filter(|known| known["cell"]["subject"] == *subject && known["cell"]["axes"]["op"] == *op)
            .map(|known| known["outcome"]["measured"]["latency"]["mean_ns"].as_f64().expect("a number") / 1e6)
            .collect();
        means.sort_by(f64::total_cmp);
        assert!(means.len() == 3 && means[0] < means[2], "{means:?}");
        assert_eq!(pair["a"].as_f64(), Some(means[1]));
    }
    let page = fs::read_to_string(lab.path("page.html")).expect("a page");
    assert!(!page.contains("in one of the two only") && page.contains("Response time"));
}

#[test]
fn a_review_takes_the_machine_that_simulate_takes() {
    let lab = Lab::new("machine");
    let options = "--drive exos_x18_18tb --cache-mib 64 --chunk 16K --bus pci64_33";
    let review =
        format!("review --target sim:3ware-9650se --arrays raid0x4 --load file-server {options} --effort quick");
    lab.line(&format!("{review} --out other")).expect(0);
    let text = fs::read_to_string(lab.path("other/results.json")).expect("results");
    let results: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let simulate = "simulate raid0x4 --system 3ware-9650se --effort quick --json --load file-server";
    let simulated = lab.line(&format!("{simulate} {options}")).expect(0).json();
    let reviewed = &results["methods"][0]["cells"][0]["outcome"]["measured"];
    assert_eq!((&reviewed["iops"], &reviewed["spec"]), (&simulated["iops"], &simulated["result"]["spec"]));
    let page = fs::read_to_string(lab.path("other/report.html")).expect("a page");
    let drive = results["bed"].to_string();
    assert!(drive.contains("Exos") && page.contains("Exos") && page.contains("64 MiB") && page.contains("16 KiB"));
    let plain = "review --target sim:3ware-9650se --arrays raid0x4 --load file-server --effort quick";
    lab.line(&format!("{plain} --out other"))
        .refused(65, &["with other drives, in another state, or with another bus", "another folder"]);
    lab.line(&format!("{plain} --out plain")).expect(0);
    let compared = lab.line("compare plain other --json").expect(0).json();
    assert_eq!(compared["pairs"].as_array().map(Vec::len), Some(1));
    lab.line("plan --drives 3 --levels 6 --effort quick").expect(65);
    lab.line("plan --drives 1 --effort quick").expect(65);
}

#[test]
fn ssds_are_steady_unless_they_are_said_to_be_fresh() {
    let lab = Lab::new("fresh");
    let load = "--load random --way write --block 4K --depth 32 --effort quick";
    let simulate = |state: &str| {
        let line = format!("simulate raid0x2 --system intel-rst {load} {state} --json");
        lab.line(&line).expect(0).json()["result"].clone()
    };
    let (fresh, steady) = (simulate("--drive-state fresh"), simulate("--drive-state steady"));
    assert_eq!(steady, simulate(""));
    let iops = |result: &serde_json::Value| result["iops"].as_f64().expect("a number");
    assert!(iops(&fresh) > 1.5 * iops(&steady), "{} {}", iops(&fresh), iops(&steady));
    let plan = format!("plan --drives 2 --levels 0 --system intel-rst {load} --json");
    for (state, expected) in [("", &steady), ("--drive-state fresh", &fresh)] {
        let planned = lab.line(&format!("{plan} {state}")).expect(0).json();
        assert_eq!(planned["levels"][0]["possible"]["healthy"]["iops"], expected["iops"], "{state}");
    }
    let review = "review --target sim:intel-rst --arrays single --methods response-time --effort quick";
    for (state, words) in [("", "steady: written over"), ("--drive-state fresh", "fresh: never written full")] {
        let folder = if state.is_empty() { "steady" } else { "fresh" };
        lab.line(&format!("{review} {state} --out {folder}")).expect(0);
        let page = fs::read_to_string(lab.path(folder).join("report.html")).expect("a page");
        assert!(page.contains(words), "{words}");
    }
    lab.line(&format!("{review} --out fresh")).refused(65, &["in another state", "another folder"]);
    let compared = lab.line("compare steady fresh --json").expect(0).json();
    assert_eq!((compared["pairs"].as_array().map(Vec::len), &compared["only_a"]), (Some(2), &0.into()));
    let disks = review.replace("intel-rst", "3ware-9650se");
    lab.line(&format!("{disks} --out disks")).expect(0);
    let page = fs::read_to_string(lab.path("disks/report.html")).expect("a page");
    assert!(!page.contains("written over at least once"));
}

#[test]
fn simulate_shows_the_uncertainty_as_plan_does() {
    let lab = Lab::new("certainty");
    let load = "--system 3ware-9650se --load multi-threaded --way read --depth 1 --effort quick";
    let output = |array: &str| lab.line(&format!("simulate {array} {load}")).expect(0).text();
    let json = lab.line(&format!("simulate raid0x2 {load} --range --json")).expect(0).json();
    let planned = lab.line(&format!("plan --drives 2 --levels 0 --range {load} --json")).expect(0).json();
    let plan = &planned["levels"][0]["possible"];
    let (count, values) = (json["uncertain_values"].clone(), plan["uncertain"].as_array().expect("values"));
    assert_eq!(count, values.len());
    assert_eq!(values[0][0], "3ware-9650se: quirks.read_kib_us, and what was fitted with it");
    // The same cells, the same runs.
    for key in [
        "uncertain",
        "uncertain_percent",
        "chance_percent",
        "low_percent",
        "high_percent",
        "model_percent",
        "unknown_percent",
        "knowledge",
    ] {
        assert_eq!(json["range"][key], plan[key], "{key}");
    }
    assert!(json["range"]["uncertain_percent"].as_f64() > Some(0.0));
    let words = format!("  {count} parameters estimated (not in the drive's data sheet)");
    assert!(output("raid0x2").contains(&format!("{words}; --range says how much they change this\n")));
    let ranged = output("raid1x2 --degraded 1 --range");
    assert!(ranged.contains(&format!("{words}: parameters move requests/s by ")), "{ranged}");
    assert!(
        ranged.contains("; largest uncertainty: 3ware-9650se: quirks.read_kib_us, and what was fitted with it (up to "),
        "{ranged}"
    );
    assert!(output("single --range").contains(": parameters move requests/s by "), "of a single drive, too");
    let known =
        "for the model itself on loads of this kind, and nothing for unknown parts\n  drives: their own profile, with \
               measured values; host, controller and file system: its own profile, with measured values\n";
    assert!(ranged.contains(known), "{ranged}");
    let nearest = output("single --range --nearest drive");
    assert!(
        nearest.contains(" and -44 to +80 % for unknown parts\n  drives: the nearest profile, of other ones;"),
        "{nearest}"
    );
    fs::write(lab.path("t.csv"), "0,0,4096,R,0.0\n").expect("written");
    lab.line("simulate raid0x2 --load t.csv --range").refused(64, &["--range: ", "leave it out"]);
    let replayed = lab.line("simulate raid0x2 --load t.csv").expect(0).text();
    assert!(replayed.contains(" parameters estimated (not in the drive's data sheet)\n"), "{replayed}");
}

#[test]
fn plan_says_what_another_size_of_the_cache_brings_to_the_best_level() {
    let lab = Lab::new("cache-sizes");
    // A small cache is full soon.
    let line = "plan --drives 4 --system 3ware-9650se --cache-mib 32 --levels 0,10 --range --way write --block 64K --depth 16 \
               --effort quick";
    let planned = lab.line(&format!("{line} --json")).expect(0).json();
    let level = |number: usize| &planned["levels"][number]["possible"];
    let sizes = |number: usize| level(number)["cache_sizes"].as_array().expect("a list").clone();
    let mib = |size: &serde_json::Value| size["cache_mib"].as_u64();
    // RAID 0 is faster and survives nothing.
    assert_eq!((sizes(0).len(), level(0)["cache_mib"].as_u64()), (0, Some(32)));
    assert_eq!(sizes(1).iter().map(mib).collect::<Vec<_>>(), [Some(8), Some(128)]);
    // Those are the figures that simulate has for such a cache; its load becomes steady in time.
    let simulate = "simulate raid10x4 --system 3ware-9650se --way write --block 64K --depth 16 --effort quick --json";
    let small = lab.line(&format!("{simulate} --cache-mib 8")).expect(0).json();
    assert_eq!((&sizes(1)[0]["iops"], &sizes(1)[0]["p99_ms"]), (&small["iops"], &small["p99_ms"]));
    let share = small["iops"].as_f64().expect("a number") / level(1)["healthy"]["iops"].as_f64().expect("a number");
    let change = sizes(1)[0]["change_percent"].as_f64().expect("a number");
    assert!((change - (share - 1.0) * 100.0).abs() < 1e-9, "{change}: {share}");
    let advice = planned["advice"].as_array().expect("a list");
    let lines: Vec<&str> =
        advice.iter().filter_map(serde_json::Value::as_str).filter(|one| one.contains(": a cache of ")).collect();
    assert!(lines.len() == 1 && lines[0].starts_with("raid10x4: a cache of 128 MiB instead of 32: "), "{advice:?}");
    // Without a cache there is nothing to say.
    let line = "plan --drives 2 --system intel-rst --levels 1 --range --way write --block 64K --depth 16 --effort quick --json";
    let none = lab.line(line).expect(0).json();
    assert_eq!(none["levels"][0]["possible"]["cache_sizes"].as_array().map(Vec::len), Some(0));
    assert_eq!(none["levels"][0]["possible"]["cache_mib"], 0);
}

#[test]
fn a_plan_is_for_the_served_configuration_and_names_the_caches() {
    let lab = Lab::new("served-plan");
    let plan = "plan --drives 8 --drive exos_x18_18tb --load file-server --depth 16 --levels 10,6 --effort quick";
    let served = lab.line(&format!("{plan} --json")).expect(0).json();
    // `serve` has no cache unless it is given one, and writes through.
    assert_eq!((&served["caches"]["write_back"], &served["caches"]["controller_bytes"]), (&false.into(), &0.into()));
    let text = lab.line(plan).expect(0).text();
    let advice: Vec<&str> =
        served["advice"].as_array().expect("a list").iter().map(|one| one.as_str().expect("a text")).collect();
    assert!(advice.len() == 3 && advice.iter().all(|one| text.contains(one)) && text.contains("P99"), "{text}");
    let first = "8 x exos_x18_18tb, 18.0 TB (16.3 TiB) each, on openraid, write-through, no cache, drive caches on\n";
    assert!(text.starts_with(first), "{text}");
    let pair =
        "plan --drives 2 --drive exos_x18_18tb --load file-server --depth 16 --levels 1 --effort quick --cache wb";
    assert!(lab.line(pair).expect(0).text().starts_with(
        "2 x exos_x18_18tb, 18.0 TB (16.3 TiB) each, on openraid, write-back cache 256 MiB, drive caches on\n"
    ));
    // The ranges say what they know, and what judged them.
    let other = lab.line(&format!("{pair} --nearest drive")).expect(0).text();
    let unknown =
        "drives: the nearest profile, of other ones; host, controller and file system: a profile of the class; \
                   -44 to +80 % of RANGE for unknown parts\n";
    assert!(other.contains(unknown), "{other}");
    let judged = "; say --nearest drive if the profile is of another drive\n38 of 40 figures of the five reviews";
    assert!(text.contains(judged) && text.contains("\n17 of 21 published figures of other machines lie in"), "{text}");
    // Mirrors are a third faster. The text says so and how certain that is.
    let against = &served["comparisons"][0];
    assert_eq!(
        (&against["faster"], &against["than"], &against["clear"]),
        (&"raid10x8".into(), &"raid6x8".into(), &true.into())
    );
    assert!(against["low_percent"].as_f64() > Some(20.0) && text.contains("  against raid6x8: +"), "{text}");
    // Rebuilding an 18 TB drive at 200 MiB/s at most takes at least a day, and longer under a load.
    let level = |number: usize| served["levels"][number]["possible"].clone();
    let hours = |number: usize, which: &str| level(number)["rebuild"][which].as_f64().expect("hours");
    assert!((23.8..30.0).contains(&hours(0, "idle_hours")) && hours(0, "loaded_hours") > hours(0, "idle_hours"));
    let chance = |number: usize, which: &str| level(number)["loss"][which].as_f64().expect("a chance");
    assert!(chance(0, "sector") > 100.0 * chance(1, "sector") && chance(0, "year_high") > chance(0, "year"));
    // One unit a column, named in its head: every cell below is a bare number.
    for (head, unit_free) in [("TB", 1), ("TiB", 2)] {
        let row = text.lines().find(|line| line.starts_with("raid10x8")).expect("a row");
        assert!(row.split_whitespace().nth(unit_free).is_some_and(|cell| cell.parse::<f64>().is_ok()), "{head}: {row}");
    }
    let head = text.lines().find(|line| line.starts_with("ARRAY") && line.contains("REBUILD IDLE, h")).expect("a head");
    assert!(["UNDER LOAD, h", "ARRAY LOST, %", "SECTOR LOST, %"].iter().all(|words| head.contains(words)), "{head}");
    let risks: Vec<&str> = text.lines().filter(|line| line.starts_with("raid10x8")).collect();
    let cells: Vec<&str> = risks[1].split("  ").filter(|cell| !cell.is_empty()).map(str::trim).collect();
    let digits = |word: &str| word.trim_matches(['<', '(', ')']).split_once('.').map(|(_, digits)| digits.len());
    let all = |cell: &str| cell.split_whitespace().filter_map(digits).collect::<Vec<_>>();
    let found: Vec<Vec<usize>> = cells[1..5].iter().map(|cell| all(cell)).collect();
    // A time has its range.
    assert_eq!(found, [vec![1; 3], vec![1; 3], vec![2], vec![2]], "{text}");
    let range = level(0)["rebuild"]["loaded_hours_range"].clone();
    assert!(range[0].as_f64() < Some(hours(0, "loaded_hours")) && range[1].as_f64() > Some(hours(0, "loaded_hours")));
}

#[test]
fn the_fastest_percent_and_the_median_of_random_service_times_are_those_of_their_distribution() {
    let lab = Lab::new("percentiles");
    let line = "simulate single --drive service-exponential --load random --way read --depth 1 --block 4K --json";
    let json = lab.line(line).expect(0).json();
    let of_mean = |key: &str| json[key].as_f64().expect("a latency") / json["mean_ms"].as_f64().expect("a latency");
    // Minus the logarithm of the share that is slower, and up to a hundredth of the mean for host and controller.
    assert!((of_mean("p50_ms") / 2f64.ln() - 1.0).abs() < 0.1, "{json}");
    assert!((0.9..2.0).contains(&(of_mean("p1_ms") / -0.99f64.ln())), "{json}");
}

#[test]
fn no_rate_is_above_what_the_members_can_carry() {
    let lab = Lab::new("ceiling");
    let line = "simulate raid5x4 --drive exos_x18_18tb --load sequential --way write --block 2K --cache wb --json";
    let json = lab.line(line).expect(0).json();
    // Three drives hold data, at 270 MB/s in their outermost zone.
    assert!(json["mbps"].as_f64() <= Some(3.0 * 270.0 * 1.03), "{}", json["mbps"]);
    assert_eq!(json["caches"]["write_back"], true);
}

#[test]
fn simulate_names_the_agreed_bus_and_the_busiest_of_mixed_drives() {
    let lab = Lab::new("agreed-bus");
    // The card has eight lanes, its slot gave it four.
    let line = "simulate single --system 3ware-9650se --load response-time --effort quick --json";
    let bus = lab.line(line).expect(0).json()["bus"].as_str().expect("a bus").to_owned();
    assert!(
        bus.contains("4 lanes: 750 MB/s read") && bus.contains("the card has PCI Express, generation 1, 8 lanes"),
        "{bus}"
    );
    let line = "simulate raid5x4 --load database --depth 16 --effort quick --drive 3xexos_x18_18tb+1xwdredplus_4tb";
    let mixed = lab.line(&format!("{line} --json")).expect(0).json();
    assert_eq!(mixed["busiest_drive"], "wdredplus_4tb");
    let alike = lab.line(&line.replace("3xexos_x18_18tb+1xwdredplus_4tb", "exos_x18_18tb --json")).expect(0).json();
    assert!(
        alike.get("busiest_drive").is_none() && alike["bus"].as_str().is_some_and(|bus| !bus.contains("the card has"))
    );
}

#[test]
fn a_journal_with_its_own_drive_is_the_limit_of_drives_that_take_more() {
    let lab = Lab::new("plan-journal");
    let line = "plan --drives 2 --levels 0 --drive s3500_480 --load random --way write --block 4K --depth 2 --effort quick --json";
    let json = lab.line(&format!("{line} --journal service-fixed")).expect(0).json();
    assert_eq!(json["caches"]["journal"], "service-fixed");
    let plan = &json["levels"][0]["possible"];
    // An entry takes two commands of 1 ms, and has no more writes than there are.
    let (with, without) = (plan["healthy"]["iops"].as_f64(), plan["journal"]["without"]["iops"].as_f64());
    assert!(with <= Some(2.0 / 2e-3) && without > with, "{with:?} {without:?}");
    let advice = json["advice"].to_string();
    assert!(advice.contains("the journal is the limit; a faster device for it brings more"), "{advice}");
    assert!(advice.contains("the journal costs speed: -"), "{advice}");
    for (option, words) in [
        ("--journal 3xs3500_480", &["--journal: ", "one device or on two"][..]),
        ("--journal nothing", &["no drive profile 'nothing'"]),
        ("--journal s3500_480 --cache wb", &["--cache: wb, and a journal", "give one of them"]),
        ("--journal st318453lw", &["--journal: st318453lw", "does not fit the ports of openraid"]),
    ] {
        lab.line(&format!("{line} {option}")).refused(64, words);
    }
    lab.line("simulate raid5x3 --system intel-rst --journal s3500_480").refused(64, &["has no journal; openraid has"]);
}

#[test]
fn a_method_for_which_the_target_is_too_small_is_named_and_the_others_are_measured() {
    let lab = Lab::new("small");
    fs::write(lab.path("small"), vec![0x5a; 64 << 10]).expect("written");
    let ran = lab.line("review --target small --methods transfer-graph,response-time --seconds 1 --out out").expect(0);
    assert!(ran.text().contains("3 cells of small; 2 not applicable, 0 failed"), "{}", ran.text());
    let text = fs::read_to_string(lab.path("out/results.json")).expect("results");
    assert!(text.contains("the target holds 65536 bytes, less than one request of 1048576 bytes; use a larger target"));
    // The host's memory, which could be a cache, and that it was passed by.
    let meminfo = fs::read_to_string("/proc/meminfo").expect("Linux");
    let kib = meminfo.split_whitespace().nth(1).and_then(|word| word.parse::<f64>().ok()).expect("MemTotal");
    // Rounded down to a tenth.
    let gib = (kib / f64::from(1 << 20) * 10.0).floor() / 10.0;
    let gib = format!("memory of this machine: {gib:.1} GiB; its page cache is passed by");
    assert!(kib < f64::from(1 << 20) || text.contains(&gib), "no {gib}");
}

#[test]
fn iostat_and_blkparse_are_loads_and_bad_lines_are_named() {
    let lab = Lab::new("recordings");
    let simulate = "simulate raid1x2 --drive wd740gd --effort quick --json";
    let table = "Device r/s rkB/s w/s wkB/s aqu-sz\nsda 140 1120 60 960 2.6\nsdb 1 4 1 4 0.1\n";
    fs::write(lab.path("iostat.txt"), table).expect("written");
    lab.line(&format!("{simulate} --load iostat.txt --job sda")).refused(64, &["its one report", "iostat -xy 10 1"]);
    // The first report covers the time since the start of the machine.
    fs::write(lab.path("iostat.txt"), format!("{table}\n{table}\n")).expect("written");
    fs::write(lab.path("b.txt"), "8,0 3 1 0.000000000 697 Q W 8 + 8 [x]\n8,0 3 2 0.1 697 Q R 64 + 8 [x]\n")
        .expect("written");
    fs::write(lab.path("bad.txt"), "8,0 3 1 0.000000000 697 Q W 8 + 8 [x]\nnonsense\n").expect("written");
    let result = lab.line(&format!("{simulate} --load iostat.txt --job sda")).expect(0).json()["result"].clone();
    let share = result["reads"]["requests"].as_f64().expect("reads") / result["requests"].as_f64().expect("all");
    assert!((share - 0.7).abs() < 0.02 && result["spec"]["axes"]["qd"] == 3, "{share}");
    lab.line(&format!("{simulate} --load iostat.txt")).refused(64, &["holds 2 loads", "--job"]);
    assert_eq!(lab.line(&format!("{simulate} --load b.txt")).expect(0).json()["result"]["requests"], 2);
    // One write at a time, and a flush after each: the pace is that of both, and only one of them has a latency.
    fs::write(lab.path("sync.fio"), "[log]\nrw=randwrite\nbs=4k\ndirect=1\niodepth=1\nfsync=1\nsize=1g\n")
        .expect("written");
    let synced = lab.line("simulate raid1x2 --drive wd740gd --effort quick --load sync.fio").expect(0).text();
    let line = synced.lines().find(|line| line.contains("flushes: ")).unwrap_or_else(|| panic!("{synced}"));
    assert!(line.ends_with("each second; their time is in the requests/s, and not in the latency"), "{line}");
    lab.line(&format!("{simulate} --load bad.txt")).refused(64, &["line 2: ", "not an event of blkparse"]);
}

#[test]
fn a_load_that_cannot_be_measured_is_wrong_usage_with_a_reason() {
    let lab = Lab::new("absent");
    fs::write(lab.path("disk"), vec![0x5a; 8 << 20]).expect("written");
    fs::write(lab.path("jobs.fio"), JOBS).expect("written");
    // Sectors of 512 bytes: the second line reaches beyond the end of 8 MiB.
    fs::write(lab.path("far.csv"), "0,0,4096,R,0.0\n0,16384,4096,R,0.1\n").expect("written");
    fs::write(lab.path("writes.csv"), "0,0,4096,W,0.0\n").expect("written");
    for (load, words) in [
        ("far.csv", "1 cell not applicable: the trace does not fit: line 2: it reaches to byte 8392704"),
        ("writes.csv", "1 cell not applicable: disk was opened for reading; writing needs --destroy-data"),
        ("jobs.fio --job part", "1 cell not applicable: the load uses bytes 1073741824 to"),
    ] {
        let folder = load.replace([' ', '.'], "-");
        // As simulate says of a load that does not fit.
        let ran = lab.line(&format!("review --target disk --load {load} --seconds 1 --out {folder}")).expect(65);
        assert!(ran.text().contains(words), "{load}: {}", ran.text());
    }
    // Where something was measured it is no failure.
    let line =
        "review --target sim:3ware-9650se --arrays single,raid6x4 --effort quick --methods response-time --out x";
    let ran = lab.line(line).expect(0);
    assert!(ran.text().contains("4 cells of sim:3ware-9650se; 2 not applicable") && ran.text().contains("RAID 6"));
    let json = lab.line(&format!("{line} --json")).expect(0).json();
    assert_eq!((&json["absent"][0]["cells"], &json["absent"][1]), (&2.into(), &serde_json::Value::Null));
}

#[test]
fn a_killed_review_continues_and_has_the_same_result() {
    let lab = Lab::new("killed");
    let review = "review --target sim:3ware-9650se --arrays single --methods sequential --effort quick --jobs 1";
    let words = format!("{review} --out cut");
    let mut child = lab
        .command(&words.split_whitespace().collect::<Vec<_>>())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let cells = lab.path("cut/cells");
    let kept = || fs::read_dir(&cells).map_or(0, |all| all.filter_map(Result::ok).filter(is_cell).count());
    let until = Instant::now() + Duration::from_secs(60);
    while kept() < 3 {
        assert!(Instant::now() < until, "no cell is kept");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("killed");
    child.wait().expect("waited for");
    let before = kept();
    assert!((3..24).contains(&before) && !lab.path("cut/results.json").exists(), "{before} cells");
    let first = fs::read_dir(&cells).expect("cells").filter_map(Result::ok).find(is_cell).expect("a cell").path();
    let written = fs::metadata(&first).and_then(|known| known.modified()).expect("a time");
    lab.line(&words).expect(0);
    assert_eq!(fs::metadata(&first).and_then(|known| known.modified()).expect("a time"), written);
    lab.line(&format!("{review} --out whole")).expect(0);
    let read = |name: &str| fs::read(lab.path(name).join("results.json")).expect("results");
    assert!(read("cut") == read("whole"), "an interruption changes no byte");
}

#[test]
fn a_target_that_disappears_ends_a_review_and_the_same_command_line_continues_it() {
    let far = Lab::new("far-target");
    fs::write(far.path("x"), vec![0x5a; 8 << 20]).expect("written");
    far.line("create drive --level jbod x").expect(0);
    let server = far.serve(&["drive"]);
    let uri = server.ready["arrays"][0]["addresses"][0].as_str().expect("an address").to_owned();
    let lab = Lab::new("near-target");
    let line = format!("review --target {uri} --methods response-time --repeat 3 --seconds 2 --out cut");
    let child = lab
        .command(&line.split_whitespace().collect::<Vec<_>>())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let kept = || {
        let all = fs::read_dir(lab.path("cut/cells"));
        all.map_or_else(
            |_| Vec::new(),
            |all| all.filter_map(Result::ok).filter(is_cell).map(|one| one.path()).collect(),
        )
    };
    let until = Instant::now() + Duration::from_secs(60);
    while kept().is_empty() {
        assert!(Instant::now() < until, "no cell is kept");
        std::thread::sleep(Duration::from_millis(2));
    }
    // Two seconds of the next cell are to come.
    std::thread::sleep(Duration::from_millis(300));
    server.kill();
    let ended = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(74), "{error}");
    // Between two cells there is no measurement that it could be in the middle of.
    assert!(error.contains("gone in the middle of the measurement") || error.contains("cannot connect"), "{error}");
    assert!(
        error.contains(&uri) && error.contains("kept in cut/cells: the same command line continues there"),
        "{error}"
    );
    let written = |path: &std::path::Path| fs::metadata(path).and_then(|known| known.modified()).expect("a time");
    let before: Vec<_> = kept().into_iter().map(|path| (written(&path), path)).collect();
    assert!(!lab.path("cut/results.json").exists() && (1..3).contains(&before.len()), "{} cells", before.len());
    // While the server is gone the verb cannot know the result. The measured cells stay.
    lab.line(&line).refused(4, &[&uri]);
    let server = far.serve(&["drive"]);
    assert_eq!(server.ready["arrays"][0]["addresses"][0], uri.as_str());
    let ran = lab.line(&line).expect(0);
    assert!(ran.text().contains("6 cells of") && ran.text().contains("3 not applicable, 0 failed"), "{}", ran.text());
    assert!(before.iter().all(|(time, path)| written(path) == *time), "a cell was measured twice");
    server.stop();
}

fn is_cell(entry: &fs::DirEntry) -> bool {
    entry.path().extension().is_some_and(|extension| extension == "json")
}

#[test]
fn a_simulated_array_tells_the_same_stories_in_its_own_time() {
    let lab = Lab::new("explain-simulated");
    let load = "--drive service-fixed --way write --block 4K --cache wt --effort quick --seed 3";
    let line = format!("simulate raid5x4 {load} --explain 2 --json");
    let answer = lab.line(&line).expect(0).json();
    assert_eq!(answer, lab.line(&line).expect(0).json(), "the same seed, the same stories");
    let stories = answer["stories"].as_array().expect("stories");
    assert_eq!(stories.len(), 2);
    let steps = stories[1]["steps"].as_array().expect("steps");
    let of = |word: &str| steps.iter().filter(|step| step["step"] == word).count();
    // One of three columns: two reads, then data and parity, each of a millisecond.
    assert_eq!((of("arrived"), of("plan"), of("member-read"), of("parity"), of("member-write")), (1, 1, 2, 1, 2));
    for step in steps {
        if step["slot"].is_u64() {
            assert_eq!(step["queued_ns"].as_u64(), Some(0), "{step}");
            assert!((1_000_000..1_100_000).contains(&step["took_ns"].as_u64().expect("it ended")), "{step}");
        }
    }
    assert!(lab.line(&line.replace(" --json", "")).expect(0).text().contains("the client has its answer: ok"));
}
