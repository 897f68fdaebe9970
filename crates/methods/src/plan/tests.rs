use super::*;
use openraid_models::Library;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

fn request(level: Level) -> PlanRequest {
    PlanRequest {
        system: "intel-rst".into(),
        drive: Some("s3500_480".into()),
        drives: 6,
        levels: vec![level],
        pattern: Pattern::Random,
        axes: Axes { rd: Some(100), bs: Some(4096), qd: Some(64), workers: Some(2), ..Axes::default() },
        effort: Effort { requests: 2_000, ..Effort::QUICK },
        seed: 1,
        thorough: true,
        trace: None,
        replacement_hours: 0,
        stand_ins: StandIns::default(),
    }
}

fn plans(request: &PlanRequest) -> Vec<Planned> {
    request.run(&Library::builtin(), 2, |_, _| {}).unwrap()
}

fn possible(planned: &Planned) -> &LevelPlan {
    match planned {
        Planned::Possible(plan) => plan,
        Planned::Impossible { array, reason } => panic!("{array}: {reason}"),
    }
}

#[test]
fn the_time_of_the_host_makes_the_answer_uncertain_if_the_host_is_the_limit() {
    let reported = Mutex::new(Vec::new());
    let progress = |done, all| reported.lock().unwrap().push((done, all));
    let plans = request(Level::Raid0).run(&Library::builtin(), 2, progress).unwrap();
    let plan = possible(&plans[0]);
    let host = Library::builtin().host("win7-haswell").unwrap().clone();
    let (low, high) = (host.read.low.0 as f64, host.read.high.0 as f64);
    let now = host.read.value.0 as f64;
    // With a lower cost of the thread the rate is higher, unless another part is then the limit.
    let (least, most) = ((1.0 - now / high) * 100.0, (now / low - 1.0) * 100.0);
    assert!(plan.uncertain_percent >= least * 0.9, "{:?}", plan.uncertain);
    let (value, change) = &plan.uncertain[0];
    assert_eq!(value, "win7-haswell: cost.read_us");
    assert!(*change >= least * 0.9 && *change <= most * 1.1, "{change} of {least} to {most}");
    // At the start no run is finished. Every run is counted: the healthy one, two more seeds, and both ends of each
    // value.
    let (reported, runs) = (reported.into_inner().unwrap(), 3 + 2 * plan.uncertain.len());
    assert_eq!((reported.len(), reported.iter().max()), (1 + runs, Some(&(runs, runs))));
    let words: Vec<_> = plan.missing.iter().map(|missing| (missing.what.as_str(), missing.reason.as_str())).collect();
    assert!(
        words.contains(&("degraded", "data lost")) && words.contains(&("write_back_ratio", "no write cache")),
        "{words:?}"
    );
}

#[test]
fn the_time_of_firmware_makes_the_answer_uncertain_if_firmware_is_the_limit() {
    let request = PlanRequest {
        system: "3ware-9650se".into(),
        drive: None,
        drives: 2,
        pattern: Pattern::MultiThreaded,
        axes: Axes { op: Some(crate::cell::Direction::Read), qd: Some(1), ..Axes::default() },
        ..request(Level::Raid0)
    };
    let plans = plans(&request);
    let plan = possible(&plans[0]);
    let library = Library::builtin();
    // One request of 64 KiB at a time: each takes the processor, and waits for all of its bytes.
    let micros = |kib_us: f64, command_us: f64| 64.0 * kib_us + command_us;
    let at = |end| {
        let other =
            if end == openraid_models::Edge::Low { openraid_models::Edge::High } else { openraid_models::Edge::Low };
        let edges = [("quirks.read_kib_us".to_owned(), end), ("cpu.command_us".to_owned(), other)].into();
        let controller = library.controller_at("3ware-9650se", &edges).unwrap();
        micros(controller.quirk_number("read_kib_us").unwrap(), controller.cpu.command.value.get() as f64 / 1e3)
    };
    let now = micros(13.5, 40.0);
    let took = 1e6 / plan.healthy.iops;
    let least = took - (now - at(openraid_models::Edge::Low));
    let most = took + (at(openraid_models::Edge::High) - now);
    let (faster, slower) = (took / least - 1.0, 1.0 - took / most);
    let (value, change) = &plan.uncertain[0];
    assert_eq!(value, "3ware-9650se: quirks.read_kib_us, and what was fitted with it");
    assert!((change / 100.0 / faster.max(slower) - 1.0).abs() < 0.2, "{change}: {faster} {slower}");
    assert!(plan.uncertain_percent >= *change);
}

#[test]
fn values_that_one_figure_fixed_give_that_figure_at_both_ends() {
    let library = Library::builtin();
    let axes = Axes { op: Some(crate::cell::Direction::Read), bs: Some(64 << 10), qd: Some(1), ..Axes::default() };
    let cell = CellSpec::new("3ware-9650se", "single".parse().unwrap(), Pattern::Sequential).with(axes);
    let cell = CellSpec { effort: Effort::QUICK, ..cell };
    let values = uncertain(&library, &cell).unwrap();
    let value = values.iter().find(|value| value.field == "quirks.read_kib_us").unwrap();
    assert!(values.iter().all(|value| value.field != "cpu.command_us"));
    for end in [openraid_models::Edge::Low, openraid_models::Edge::High] {
        let mut spec = crate::cell::machine_spec(&library, &cell).unwrap();
        value.put(&library, &mut spec, end).unwrap();
        let found = crate::cell::run_cell_with(&library, &cell, &spec).unwrap().mbps;
        // The review has 63 MB/s.
        assert!((found / 63.0 - 1.0).abs() < 0.1, "{found} at {end:?}");
    }
}

#[test]
fn the_rate_of_a_shared_channel_makes_the_answer_uncertain_if_the_channel_is_the_limit() {
    let sequential = Axes { op: Some(crate::cell::Direction::Read), qd: Some(64), ..Axes::default() };
    let request = PlanRequest {
        system: "icp-9024ro".into(),
        drive: Some("mba3073rc".into()),
        drives: 7,
        pattern: Pattern::MultiThreaded,
        axes: sequential,
        ..request(Level::Raid0)
    };
    let plans = plans(&request);
    let plan = possible(&plans[0]);
    let library = Library::builtin();
    let link = library.bus("u320").unwrap();
    // 64 KiB on a channel take the time of their bytes, and half of the time of a command for the reply.
    let took = |rate: u64| 65_536e9 / rate as f64 + link.command.value.0 as f64 / 2.0;
    let now = took(link.read.value.0);
    let (faster, slower) = (now / took(link.read.high.0) - 1.0, 1.0 - now / took(link.read.low.0));
    let (value, change) = &plan.uncertain[0];
    assert_eq!(value, "u320: bus.u320.read_mbs");
    assert!((change / 100.0 / faster.max(slower) - 1.0).abs() < 0.1, "{change}: {faster} {slower}");
    // Its directions take turns, so neither this link nor the bus has a second rate that could be uncertain.
    let cell = request.cell(Level::Raid0, ArrayState::Healthy);
    let healthy = CellSpec { axes: Axes { op: Some(crate::cell::Direction::Write), ..cell.axes.clone() }, ..cell };
    let listed = uncertain(&library, &healthy).unwrap();
    assert!(listed.iter().any(|value| value.field == "bus.u320.command_us"), "{listed:?}");
    let base = crate::cell::run_cell(&library, &healthy).unwrap();
    for (part, whose) in
        [(uncertain_values::ProfilePart::Link, "u320"), (uncertain_values::ProfilePart::Bus, "pcix64_133")]
    {
        let field = format!("bus.{whose}.write_mbs");
        let value = Uncertain { part, whose: whose.into(), field, against: Vec::new() };
        assert!(!listed.contains(&value), "{value}");
        for end in [openraid_models::Edge::Low, openraid_models::Edge::High] {
            let mut spec = crate::cell::machine_spec(&library, &healthy).unwrap();
            value.put(&library, &mut spec, end).unwrap();
            let at_the_end = crate::cell::run_cell_with(&library, &healthy, &spec).unwrap();
            assert_eq!((at_the_end.iops, at_the_end.mbps), (base.iops, base.mbps), "{value} at {end:?}");
        }
    }
    // If each drive has a link of its own, the drive's profile has the rate of that link.
    let values = uncertain(&library, &self::request(Level::Raid0).cell(Level::Raid0, ArrayState::Healthy)).unwrap();
    assert!(values.iter().all(|value| !value.to_string().contains("sata")), "{values:?}");
}

#[test]
fn a_value_that_the_load_never_meets_is_not_uncertain_however_few_requests_are_measured() {
    // 7 MB/s on eight slow drives: the bus rate only changes which request comes first.
    let request = PlanRequest {
        system: "openraid".into(),
        drive: Some("exos_x18_18tb".into()),
        drives: 8,
        levels: vec![Level::Raid60],
        pattern: Pattern::FileServer,
        axes: Axes { qd: Some(16), ..Axes::default() },
        effort: Effort::QUICK,
        seed: 2,
        thorough: true,
        trace: None,
        replacement_hours: 0,
        stand_ins: StandIns::default(),
    };
    let plans = plans(&request);
    let plan = possible(&plans[0]);
    assert!(plan.chance_percent > 0.5, "6,000 requests leave something to chance: {}", plan.chance_percent);
    for (value, change) in &plan.uncertain {
        assert!(!value.contains("sheet."), "no model reads {value}");
        let idle = value.contains("link_rate") || value.contains("read_mbs") || value.contains("xor.");
        assert!(!idle || *change == 0.0, "{value}: {change}, chance {}", plan.chance_percent);
    }
}

#[test]
fn levels_survive_what_their_redundancy_covers() {
    assert_eq!(survives(Level::Raid0, 4), (0, 0));
    assert_eq!(survives(Level::Raid1, 3), (2, 2));
    assert_eq!(survives(Level::Raid10, 8), (1, 4));
    assert_eq!(survives(Level::Raid6, 8), (2, 2));
    assert_eq!(survives(Level::Raid60, 8), (2, 4));
}

#[test]
fn a_quick_plan_is_bounded_in_runs_and_in_simulated_events() {
    // The plan of the README: six levels on eight drives.
    let request = PlanRequest {
        system: "openraid".into(),
        drive: Some("exos_x18_18tb".into()),
        drives: 8,
        levels: vec![Level::Raid0, Level::Raid10, Level::Raid5, Level::Raid6, Level::Raid50, Level::Raid60],
        pattern: Pattern::FileServer,
        axes: Axes { qd: Some(16), ..Axes::default() },
        effort: Effort { requests: 100, seconds_max: 1, warm_seconds_max: 1 },
        seed: 1,
        thorough: false,
        trace: None,
        replacement_hours: 0,
        stand_ins: StandIns::default(),
    };
    let runs = AtomicUsize::new(0);
    let ended = |done, _| {
        runs.fetch_max(done, Ordering::Relaxed);
    };
    request.run(&Library::builtin(), 2, ended).unwrap();
    // Each level has three seeds. Each of the five that survive a failure has one degraded run, six runs for the
    // rebuild, and at most six more seeds to distinguish the levels.
    let runs = runs.into_inner();
    assert!((6 * 3 + 5 * 7..=6 * 3 + 5 * 13).contains(&runs), "{runs} runs");
    let cell = CellSpec { effort: Effort::QUICK, ..request.cell(Level::Raid5, ArrayState::Healthy) };
    let library = Library::builtin();
    let spec = crate::cell::machine_spec(&library, &cell).unwrap();
    let mut target = crate::target::SimTarget::new("plan", &spec, &library).unwrap();
    let result = crate::cell::measure(&mut target, &cell).unwrap();
    let events = target.machine_counters().events;
    // The warm-up before the measurement takes at most the same time.
    assert!(events < 2_000_000, "{events} events for {} requests", result.requests);
}

#[test]
fn a_plan_begins_no_run_after_its_limit_of_events_and_names_the_missing_ones() {
    let request = PlanRequest {
        system: "openraid".into(),
        drive: Some("exos_x18_18tb".into()),
        drives: 4,
        levels: vec![Level::Raid0, Level::Raid10, Level::Raid5, Level::Raid6],
        pattern: Pattern::FileServer,
        axes: Axes { qd: Some(4), ..Axes::default() },
        effort: Effort { requests: 100, seconds_max: 1, warm_seconds_max: 1 },
        seed: 1,
        thorough: false,
        trace: None,
        replacement_hours: 0,
        stand_ins: StandIns::default(),
    };
    let library = Library::builtin();
    let within = |events_max, threads| {
        let runs = AtomicUsize::new(0);
        let ended = |done, _| {
            runs.fetch_max(done, Ordering::Relaxed);
        };
        let planned = request.run_within(&library, threads, events_max, ended).unwrap();
        let left_out = |plan: &LevelPlan| plan.missing.iter().filter(|run| run.reason == EVENT_LIMIT).count();
        let left_out: Vec<usize> = planned.iter().map(|planned| left_out(possible(planned))).collect();
        (runs.into_inner(), left_out, serde_json::to_string(&planned).unwrap())
    };
    // The healthy run of each level, and no others. Left out are two seeds of each level, and for the levels that
    // survive a failure the degraded array and its rebuild at three positions, with and without the load.
    let (runs, left_out, _) = within(1, 2);
    assert_eq!((runs, left_out), (4, vec![2, 11, 11, 11]));
    // A limit within a run: at most the run that passes it is more than the limit. The runs of the levels differ.
    let (runs, left_out, _) = within(request.events_max() / 1000, 1);
    assert!(runs < 4 + 29 && left_out.iter().sum::<usize>() > 0, "{runs} {left_out:?}");
    assert_eq!(within(request.events_max() / 1000, 2).1, left_out, "the threads do not change it");
    let (runs, left_out, one) = within(u64::MAX, 1);
    assert!(runs >= 4 + 29 && left_out == [0; 4], "{runs} {left_out:?}");
    assert_eq!(within(request.events_max(), 2), (runs, left_out, one), "neither threads nor the usual limit change it");
}
