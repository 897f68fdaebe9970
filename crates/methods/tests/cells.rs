//! Cells on simulated machines: the same cell gives the same bytes, and figures agree with what can be counted.

mod noting;

use noting::{Notes, Noting};
use openraid_methods::cell::{
    ceilings, machine_spec, measure, replay, run_cell, run_trace, ArrayState, Axes, CacheMode, CellError, CellSpec,
    Direction, Effort, Flag, Pattern, TraceName,
};
use openraid_methods::load::{one_size, AccessManner, AccessSpec, WAITING_MAX};
use openraid_methods::method::{find, Suite};
use openraid_methods::reader::{read_trace, TraceFormat, LENGTH_MAX};
use openraid_methods::run::{fingerprint, CellStore, Measurement};
use openraid_methods::target::QueueServers;
use openraid_models::Library;
use openraid_units::{Bytes, Nanos};

fn cell(subject: &str, pattern: Pattern, axes: Axes) -> CellSpec {
    let cell = CellSpec::new("3ware-9650se", subject.parse().unwrap(), pattern).with(axes);
    CellSpec { effort: Effort { requests: 2_000, ..Effort::QUICK }, ..cell }
}

#[test]
fn equal_cells_have_equal_bytes_and_seeds_matter() {
    let library = Library::builtin();
    let cell = cell("raid5x4", Pattern::Database, Axes { qd: Some(16), ..Axes::default() });
    let bytes = |cell: &CellSpec| serde_json::to_string(&run_cell(&library, cell).unwrap()).unwrap();
    assert_eq!(bytes(&cell), bytes(&cell));
    assert_ne!(bytes(&cell), bytes(&CellSpec { seed: 2, ..cell.clone() }));
}

#[test]
fn a_larger_cache_is_measured_when_it_is_steady_too() {
    let library = Library::builtin();
    let suite = Suite::new("3ware-9650se", vec!["single".parse().unwrap()], Effort::QUICK, 1);
    let database = |cell: &CellSpec| cell.pattern == Pattern::Database && cell.axes.cache_mib >= Some(256);
    let cells = find("cache-sizes").unwrap().cells(&suite).into_iter().filter(database);
    let results: Vec<_> = cells.map(|cell| run_cell(&library, &cell).unwrap()).collect();
    assert!(results.len() == 3 && results.iter().all(|result| !result.is_unsteady()));
    // The load leaves a few MB in the cache, so a larger cache makes no difference.
    for larger in &results[1..] {
        assert!((larger.iops / results[0].iops - 1.0).abs() < 0.05, "{} and {}", larger.iops, results[0].iops);
    }
}

#[test]
fn write_through_raid_5_reads_two_and_writes_two_for_each_small_write() {
    let library = Library::builtin();
    let axes = Axes { rd: Some(0), cache: Some(CacheMode::WriteThrough), cache_mib: Some(0), ..Axes::default() };
    let result = run_cell(&library, &cell("raid5x4", Pattern::Database, axes)).unwrap();
    let writes: u64 = result.members.iter().map(|member| member.writes).sum();
    let per_write = |count: u64| count as f64 / result.writes.requests as f64;
    // One request may extend past each end of the measurement.
    assert!((result.reads_per_write().unwrap() - 2.0).abs() < 0.005, "{:?}", result.reads_per_write());
    assert!((per_write(writes) - 2.0).abs() < 0.005, "{}", per_write(writes));
}

#[test]
fn writes_in_order_are_never_faster_than_the_members_take_them() {
    let library = Library::builtin();
    let write = |subject: &str, bs: u32, effort: Effort| {
        let axes = Axes { op: Some(Direction::Write), bs: Some(bs), qd: Some(1), ..Axes::default() };
        let cell = CellSpec::new("openraid", subject.parse().unwrap(), Pattern::Sequential).with(axes);
        run_cell(&library, &CellSpec { effort, ..cell }).unwrap()
    };
    let single = write("single", 64 << 10, Effort::QUICK).mbps;
    for (subject, members, parities) in [("raid0x4", 4.0, 0.0), ("raid5x4", 4.0, 1.0)] {
        let quick = write(subject, 4096, Effort::QUICK);
        let most = (members - parities) * single;
        assert!(quick.mbps <= most * 1.03, "{subject}: {} of {most} MB/s; {:?}", quick.mbps, quick.notes);
        // The host's writes were written to the members, except for the growth of the cache's content.
        let sectors: u64 = quick.members.iter().map(|member| member.sectors).sum();
        let host = quick.writes.bytes as f64 / 512.0 * members / (members - parities);
        assert!(host <= sectors as f64 * 1.1, "{subject}: {host} sectors of {sectors}");
        let normal = write(subject, 4096, Effort::NORMAL).mbps;
        assert!((quick.mbps / normal - 1.0).abs() < 0.05, "{subject}: {} and {normal} MB/s", quick.mbps);
    }
}

#[test]
fn no_stream_of_writes_is_above_what_the_media_or_a_bus_can_carry() {
    let library = Library::builtin();
    let mut random = openraid_sim::Random::derived(24, 4);
    let mut one_of = |all: &[&str]| all[usize::try_from(random.below(all.len() as u64)).unwrap()].to_owned();
    for number in 0..24 {
        let subject =
            one_of(&["single", "raid0x4", "raid1x2", "raid10x4", "raid5x4", "raid5x8", "raid6x6", "raid50x8"]);
        let drive = one_of(&["exos_x18_18tb", "hus728t8", "wd740gd", "pm893_960"]);
        let bs = one_of(&["512", "2048", "4096", "20480", "65536", "1048576"]).parse().unwrap();
        let depth = one_of(&["1", "4", "32"]).parse().unwrap();
        let cache = if one_of(&["wb", "wt"]) == "wb" { CacheMode::WriteBack } else { CacheMode::WriteThrough };
        let axes = Axes {
            op: Some(Direction::Write),
            bs: Some(bs),
            qd: Some(depth),
            cache: Some(cache),
            drive: Some(drive),
            ..Axes::default()
        };
        let cell = CellSpec::new("openraid", subject.parse().unwrap(), Pattern::Sequential).with(axes);
        let cell = CellSpec { effort: Effort::QUICK, seed: number, ..cell };
        let result = run_cell(&library, &cell).unwrap();
        let ceilings = ceilings(&library, &machine_spec(&library, &cell).unwrap(), &cell).unwrap();
        for ceiling in ceilings {
            let most = ceiling.write_mbps * 1.03;
            let rate = result.writes.bytes as f64 * 1e3 / result.elapsed_ns as f64;
            assert!(rate <= most, "{}: {rate} MB/s of {} {most}: {:?}", cell.identity(), ceiling.name, result.notes);
        }
        assert!(!result.flags.iter().any(|flag| matches!(flag, Flag::AboveCeiling { .. })), "{:?}", result.flags);
    }
}

#[test]
fn no_load_in_any_state_is_above_what_a_part_can_carry() {
    let library = Library::builtin();
    let mut random = openraid_sim::Random::derived(24, 66);
    let mut one_of = |all: &[&str]| all[usize::try_from(random.below(all.len() as u64)).unwrap()].to_owned();
    for number in 0..16 {
        let (subject, members) = [("raid0x4", 4), ("raid1x2", 2), ("raid10x4", 4), ("raid5x4", 4), ("raid6x6", 6)]
            [usize::try_from(number % 5).unwrap()];
        let pattern = if one_of(&["random", "sequential"]) == "random" { Pattern::Random } else { Pattern::Sequential };
        let drive = one_of(&["exos_x18_18tb", "wd740gd", "pm893_960", "mixed"]);
        // The first members are the missing ones: a small drive could not be filled with the data of a large one.
        let drive = if drive == "mixed" { format!("{}xexos_x18_18tb+wd740gd", members - 1) } else { drive };
        let state = match one_of(&["healthy", "degraded", "rebuilding"]).as_str() {
            "degraded" if number % 5 > 0 => ArrayState::Degraded(1),
            "rebuilding" if number % 5 > 0 => ArrayState::Rebuilding,
            _ => ArrayState::Healthy,
        };
        let axes = Axes {
            rd: Some(one_of(&["0", "50", "100"]).parse().unwrap()),
            bs: Some(one_of(&["4096", "65536", "1048576"]).parse().unwrap()),
            qd: Some(one_of(&["1", "16"]).parse().unwrap()),
            drive: Some(drive),
            bus: (one_of(&["usual", "slow"]) == "slow").then(|| "pci64_66".into()),
            ..Axes::default()
        };
        let cell = CellSpec::new("openraid", subject.parse().unwrap(), pattern).with(axes);
        let effort = Effort { requests: 2_000, seconds_max: 20, warm_seconds_max: 60 };
        let cell = CellSpec { effort, seed: number, state, ..cell };
        let result = run_cell(&library, &cell).unwrap();
        let above = result.flags.iter().find(|flag| matches!(flag, Flag::AboveCeiling { .. }));
        assert_eq!(above, None, "{}: {:?}", cell.identity(), result.notes);
    }
}

#[test]
fn random_reads_that_no_arm_can_do_are_flagged() {
    let library = Library::builtin();
    let axes = Axes { op: Some(Direction::Read), bs: Some(4096), qd: Some(1), ..Axes::default() };
    let cell = CellSpec::new("openraid", "raid5x4".parse().unwrap(), Pattern::Random).with(axes);
    let cell = CellSpec { effort: Effort::QUICK, ..cell };
    let ceilings = ceilings(&library, &machine_spec(&library, &cell).unwrap(), &cell).unwrap();
    let mut result = run_cell(&library, &cell).unwrap();
    let is_flag = |flag: &Flag| matches!(flag, Flag::AboveCeiling { part, .. } if part == "positions of the members");
    assert!(!result.flags.iter().any(is_flag), "{:?}", result.flags);
    // A third less time: some of the bytes came from a cache.
    result.elapsed_ns = result.elapsed_ns / 3 * 2;
    openraid_methods::cell::flag(&mut result, &ceilings);
    assert!(result.flags.iter().any(is_flag), "{} requests/s", result.iops);
}

#[test]
fn a_load_that_syncs_counts_its_flushes_apart_and_is_slower() {
    let library = Library::builtin();
    let run = |flush_every| {
        let spec = one_size("log", 4096, 0, 0).in_manner(AccessManner { flush_every, ..AccessManner::default() });
        let axes = Axes { qd: Some(1), drive: Some("wd740gd".into()), ..Axes::default() };
        let cell = CellSpec::new("openraid", "raid1x2".parse().unwrap(), Pattern::Custom(spec)).with(axes);
        run_cell(&library, &CellSpec { effort: Effort::QUICK, ..cell }).unwrap()
    };
    let (plain, synced) = (run(None), run(Some(1)));
    assert_eq!(plain.flushes, 0);
    // One flush for each write. One of the two may extend past an end of the measurement.
    assert!(synced.flushes.abs_diff(synced.writes.requests) <= 1, "{} {}", synced.flushes, synced.writes.requests);
    // Each write reaches the platters, so there is at most one per turn of 6 ms.
    assert!(synced.iops < 1.05 / 0.006 && plain.iops > 5.0 * synced.iops, "{} {}", plain.iops, synced.iops);
}

#[test]
fn a_load_that_writes_is_measured_with_a_full_cache_whatever_the_seed() {
    let library = Library::builtin();
    let axes = Axes { rd: Some(40), qd: Some(16), ..Axes::default() };
    let cell = CellSpec::new("3ware-9650se", "raid1x2".parse().unwrap(), Pattern::Database).with(axes);
    let iops = |seed| run_cell(&library, &CellSpec { effort: Effort::QUICK, seed, ..cell.clone() }).unwrap().iops;
    let found = [1, 2, 3].map(iops);
    let (low, high) = (found.iter().copied().fold(f64::MAX, f64::min), found.iter().copied().fold(0.0, f64::max));
    // Three standard errors of a mean of 6000 requests are less.
    assert!(high / low < 1.08, "{found:?}");
}

#[test]
fn the_transfer_graph_of_an_array_is_what_its_drives_deliver() {
    let library = Library::builtin();
    let begin = |subject: &str| {
        let cell = CellSpec::new("lsi-9260-8i", subject.parse().unwrap(), Pattern::TransferGraph);
        run_cell(&library, &CellSpec { effort: Effort::QUICK, ..cell }).unwrap().curve[0].value
    };
    let (one, eight) = (begin("single"), begin("raid5x8"));
    assert!(eight <= 7.0 * one * 1.02, "{eight} MB/s from seven times {one}");
}

#[test]
fn an_impossible_cell_has_a_reason() {
    let library = Library::builtin();
    let refused = |subject: &str, pattern: Pattern, axes: Axes| run_cell(&library, &cell(subject, pattern, axes));
    let error = refused("raid6x4", Pattern::Database, Axes::default()).unwrap_err();
    assert!(matches!(&error, CellError::Impossible(reason) if reason.contains("refused")), "{error}");
    let error = refused("single", Pattern::FileServer, Axes { bs: Some(512), ..Axes::default() }).unwrap_err();
    assert!(matches!(error, CellError::Axis(_)), "{error}");
    let unknown = Axes { ctl: Some("abacus".into()), ..Axes::default() };
    let error = refused("single", Pattern::Database, unknown).unwrap_err();
    assert!(matches!(&error, CellError::Unknown(reason) if reason.contains("abacus")), "{error}");
}

#[test]
fn every_pattern_has_a_result_and_the_rate_is_requests_by_time() {
    let library = Library::builtin();
    for pattern in Pattern::ALL {
        let result = run_cell(&library, &cell("raid0x2", pattern.clone(), Axes::default())).unwrap();
        let name = pattern.name();
        assert!(result.requests > 0 && result.mbps > 0.0 && result.errors == 0, "{name}");
        let rate = result.requests as f64 * 1e9 / result.elapsed_ns as f64;
        assert!((result.iops - rate).abs() < 1e-6 * rate, "{name}");
        assert_eq!(result.latency.count, result.requests, "{name}");
        assert!(result.components.iter().all(|part| (0.0..=1.0).contains(&part.busy)), "{name}");
        assert_eq!(result.score.is_some(), pattern == Pattern::Application);
        assert_eq!(result.curve.is_empty(), pattern != Pattern::TransferGraph);
    }
}

#[test]
fn a_missing_member_costs_reads_and_a_rebuild_costs_more() {
    let library = Library::builtin();
    let reads = Axes { rd: Some(100), qd: Some(16), ..Axes::default() };
    let healthy = cell("raid5x4", Pattern::Database, reads);
    let iops = |state| run_cell(&library, &CellSpec { state, ..healthy.clone() }).unwrap().iops;
    let degraded = iops(ArrayState::Degraded(1));
    assert!(iops(ArrayState::Healthy) > degraded * 1.2);
    assert!(iops(ArrayState::Rebuilding) < degraded * 1.05);
}

#[test]
fn kept_cells_are_found_again_and_others_are_not() {
    let folder = std::env::temp_dir().join(format!("openraid-methods-store-{}", std::process::id()));
    let library = Library::builtin();
    let store = CellStore::open(&folder, &fingerprint(&library)).unwrap();
    let cell = cell("single", Pattern::ResponseTime, Axes { op: Some(Direction::Read), ..Axes::default() });
    assert_eq!(store.get(&cell), None);
    let outcome = Measurement::from(run_cell(&library, &cell));
    store.put(&cell, &outcome).unwrap();
    let same = serde_json::to_string(&store.get(&cell).unwrap()).unwrap();
    assert_eq!(same, serde_json::to_string(&outcome).unwrap());
    let absent = CellSpec { seed: 9, ..cell.clone() };
    assert_eq!(store.get(&absent), None);
    store.put(&absent, &Measurement::from(Err(CellError::NotApplicable("it was opened for reading".into())))).unwrap();
    assert_eq!(store.get(&absent), None, "the next time it may be another reason, or none");
    assert_eq!(CellStore::open(&folder, "another version").unwrap().get(&cell), None);
    for entry in std::fs::read_dir(&folder).unwrap() {
        std::fs::write(entry.unwrap().path(), "{\"schema\":").unwrap();
    }
    assert_eq!(store.get(&cell), None, "half a file is not a result");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn pauses_rates_and_places_of_a_load_of_ones_own_are_kept() {
    let run = |spec: AccessSpec, axes: Axes| {
        let notes = Notes::default();
        let mut target = Noting::new(1, Nanos::from_millis(1), Bytes::gib(4), true, &notes);
        let result = measure(&mut target, &cell("single", Pattern::Custom(spec), axes)).unwrap();
        (result, notes.take())
    };
    let spec = |manner| one_size("own", 4096, 100, 100).in_manner(manner);
    // Two requests of 1 ms, then a pause of 8 ms: 200 per second.
    let (thinking, _) =
        run(spec(AccessManner { think: Some((2, 8_000_000)), ..AccessManner::default() }), Axes::default());
    assert!((thinking.iops - 200.0).abs() < 0.5, "{}", thinking.iops);
    // One request every 10 ms: each takes 1 ms, at every depth.
    let timed = Axes { secs: Some(20), warm_s: Some(1), qd: Some(4), ..Axes::default() };
    let (paced, _) = run(spec(AccessManner { rate: Some(100), ..AccessManner::default() }), timed.clone());
    assert_eq!((paced.requests, paced.latency.min_ns, paced.latency.max_ns), (1999, 1_000_000, 1_000_000));
    assert!((paced.iops - 100.0).abs() < 0.1, "{}", paced.iops);
    // Twice the rate of the server: request n of two per millisecond waits for those before it, and all are counted.
    let (late, _) =
        run(spec(AccessManner { rate: Some(2000), ..AccessManner::default() }), Axes { secs: Some(1), ..timed });
    assert!((late.iops - 1000.0).abs() < 1.0 && late.latency.max_ns > 990_000_000, "{}", late.iops);
    assert!(late.notes.iter().any(|note| note.to_string().contains("too slow for it")), "{:?}", late.notes);
    let part = AccessManner { start: Some(1 << 30), len: Some(1 << 20), ..AccessManner::default() };
    let (_, asked) = run(spec(part), Axes { qd: Some(4), ..Axes::default() });
    assert!(asked.len() > 2000);
    assert!(asked.iter().all(|io| io.offset >= 1 << 30 && io.end() <= (1 << 30) + (1 << 20)));
    let beyond = AccessManner { start: Some(5 << 30), ..AccessManner::default() };
    let mut target = QueueServers::constant(1, Nanos::from_millis(1), Bytes::gib(4));
    let error = measure(&mut target, &cell("single", Pattern::Custom(spec(beyond)), Axes::default())).unwrap_err();
    assert!(matches!(&error, CellError::NotApplicable(reason) if reason.contains("use a larger target")), "{error}");
}

#[test]
fn rates_of_a_real_target_that_a_cache_or_no_link_can_have_given_are_flagged() {
    let axes = Axes { secs: Some(2), warm_s: Some(1), qd: Some(4), ..Axes::default() };
    let load = cell("single", Pattern::Custom(one_size("own", 4096, 100, 100)), axes);
    let flags = |target: Noting| {
        let mut target = target;
        measure(&mut target, &load).unwrap().flags
    };
    // Four servers of 1 ms give 16.4 MB/s.
    let real = || Noting::new(4, Nanos::from_millis(1), Bytes::gib(4), false, &Notes::default());
    assert_eq!(flags(real()), []);
    assert_eq!(flags(real().on_a_host(17.0)), [Flag::PageCache]);
    let above = flags(real().on_a_host(10.0));
    assert!(above.contains(&Flag::PageCache), "{above:?}");
    let is_link = |flag: &Flag| matches!(flag, Flag::AboveCeiling { part, way, .. } if part == "link of the device" && way == "read");
    assert!(above.iter().any(is_link), "{above:?}");
}

#[test]
fn specifications_are_written_down_with_their_manner_and_plain_ones_as_ever() {
    let plain = one_size("own", 4096, 100, 0);
    let text = serde_json::to_string(&plain).unwrap();
    assert_eq!(text, r#"{"name":"own","lines":[{"bytes":4096,"share":100,"read":100,"random":0}]}"#);
    let paced = plain.clone().in_manner(AccessManner { rate: Some(5), start: Some(512), ..AccessManner::default() });
    let text = serde_json::to_string(&paced).unwrap();
    assert!(text.ends_with(r#""manner":{"rate":5,"start":512}}"#), "{text}");
    assert_eq!(serde_json::from_str::<AccessSpec>(&text).unwrap(), paced);
    assert_ne!(paced, plain);
}

#[test]
fn a_trace_as_long_as_one_may_be_is_played_to_its_end() {
    let text = format!("0,h,0,Write,0,4096,1\n{},h,0,Read,1048576,4096,1\n", LENGTH_MAX.get() / 100);
    let trace = read_trace(TraceFormat::MsrCsv, text.as_bytes()).unwrap();
    let name = TraceName { name: "long".into(), digest: format!("{:016x}", trace.digest()) };
    let cell = CellSpec::new("openraid", "raid5x4".parse().unwrap(), Pattern::Trace(name));
    let result = run_trace(&Library::builtin(), &cell, &trace).unwrap();
    assert_eq!((result.requests, result.elapsed_ns >= LENGTH_MAX.get()), (2, true));
}

#[test]
fn a_trace_too_fast_for_its_target_counts_the_requests_that_were_never_issued() {
    let name = |text: &str| TraceName { name: text.into(), digest: "0".repeat(16) };
    let played = |requests: usize| {
        let text = "0,h,0,Read,0,4096,1\n".repeat(requests) + &"10000000,h,0,Read,4096,4096,1\n".repeat(3);
        let trace = read_trace(TraceFormat::MsrCsv, text.as_bytes()).unwrap();
        let cell = CellSpec::new("openraid", "single".parse().unwrap(), Pattern::Trace(name("far")));
        let result = replay(&mut QueueServers::constant(4096, Nanos(1000), Bytes::gib(4)), &cell, &trace).unwrap();
        assert_eq!(result.requests + result.never_asked, trace.records().len() as u64);
        result
    };
    // All requests arrive at once: as many as may wait are accepted. The others, and the three of a second later, are
    // not.
    let cut = played(WAITING_MAX + 1000);
    assert_eq!(cut.never_asked, 1003);
    assert!(
        cut.notes.iter().any(|note| note.to_string().ends_with("1003 of 1049579 were never issued")),
        "{:?}",
        cut.notes
    );
    // With one fewer, all requests are sent in the end.
    let whole = played(WAITING_MAX - 1);
    assert_eq!(whole.never_asked, 0);
    assert!(!whole.notes.iter().any(|note| note.to_string().contains("never issued")), "{:?}", whole.notes);
    let json = |result| serde_json::to_value(result).unwrap();
    assert_eq!((&json(&cut)["never_asked"], json(&whole).get("never_asked")), (&1003.into(), None));
}

#[test]
fn a_shingled_disk_is_not_measured_before_its_cliff_or_says_so() {
    let library = Library::builtin();
    let measured = |array: &str, pattern, axes: Axes| {
        let cell = CellSpec::new("openraid", array.parse().unwrap(), pattern);
        let axes = Axes { drive: Some("smr".into()), ..axes };
        run_cell(&library, &CellSpec { effort: Effort::QUICK, ..cell.with(axes) }).unwrap()
    };
    // Each write of 64 KiB needs the room of a piece: a band has 182,000 * 2 / 254,000 of them, and is rewritten in half a
    // second. Before the cliff the disk makes 286 of these writes a second.
    let writes = Axes { op: Some(Direction::Write), bs: Some(65_536), qd: Some(8), ..Axes::default() };
    let single = measured("single", Pattern::Random, writes);
    assert!((2.0..6.0).contains(&single.iops), "{} {:?}", single.iops, single.notes);
    // A load that does not come so far within its warm-up.
    let files = measured("raid5x4", Pattern::FileServer, Axes { qd: Some(8), ..Axes::default() });
    let cached = files.flags.iter().any(|flag| matches!(flag, Flag::StillInCaches { .. }));
    assert!(cached && !files.steady, "{:?} {:?}", files.flags, files.notes);
}
