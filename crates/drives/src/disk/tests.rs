//! Closed forms of a disk: rotation, seeks, sorting, sequential reads.

use super::*;
use crate::one_drive_load::{closed, command};
use openraid_models::{ArmMotion, DriveKind, DriveProfile, Library, Sourced};

/// A profile with a firmware, buffers and a link that take no time: only the mechanism remains.
fn bare(name: &str) -> (DiskProfile, Sectors) {
    let DriveProfile { kind, capacity, .. } = Library::builtin().drive(name).unwrap().clone();
    let DriveKind::Disk(disk) = kind else { panic!("{name} is a disk") };
    let mut disk = *disk;
    for time in [&mut disk.command, &mut disk.cached_command, &mut disk.write_command, &mut disk.cached_write_command] {
        *time = Sourced::exact(Nanos::ZERO);
    }
    (disk.positioning_margin, disk.flush) = (Sourced::exact(Nanos::ZERO), Sourced::exact(Nanos::ZERO));
    disk.queue_age = Sourced::exact(Nanos::from_secs(1000));
    disk.link_rate = Sourced::exact(Rate::mbs(900_000));
    disk.read_ahead = Sourced::exact(Bytes::ZERO);
    disk.read_ahead_least = Sourced::exact(Bytes::ZERO);
    disk.queue_depth = Sourced::exact(256);
    disk.sorting_window = Sourced::exact(256);
    (disk, capacity.value)
}

fn disk(profile: &DiskProfile, capacity: Sectors, index: u64) -> Disk {
    let options = DriveOptions { seed: 5, index, ..DriveOptions::default() };
    Disk::new(Arc::new(DiskTables::new(profile, capacity)), &options, &mut Random::derived(5, index))
}

fn close(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{found} is not within {share} of {expected}");
}

/// The time at which a disk has completed all commands.
fn finish(disk: &mut Disk) -> Instant {
    let (mut now, mut done) = (Instant::ZERO, Vec::new());
    while let Some(next) = disk.next() {
        now = next;
        disk.advance(now, &mut done);
    }
    now
}

/// Sectors of the first track.
fn track(disk: &Disk) -> u64 {
    (0..).find(|lba| disk.tables.geometry.place(*lba).head == 1).unwrap()
}

#[test]
fn the_wait_for_a_sector_is_uniform_over_a_turn() {
    let (profile, capacity) = bare("wd740gd");
    let mut disk = disk(&profile, capacity, 1);
    let turn = f64::from(disk.tables.geometry.turn());
    let track = track(&disk);
    let mut random = Random::new(1);
    let (mut now, mut waits) = (Instant::ZERO, Vec::new());
    for number in 0..40_000 {
        // On one track the arm does not move. The host waits for a random time.
        now = now + Nanos(random.below(50_000_000));
        disk.submit(now, &command(number, DriveOp::Read, random.below(track), 1));
        let end = finish(&mut disk);
        waits.push((end.0 - now.0) as f64);
        now = end;
    }
    let waits = &waits[1..];
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    let variance = waits.iter().map(|wait| (wait - mean) * (wait - mean)).sum::<f64>() / waits.len() as f64;
    close(mean, turn / 2.0, 0.01);
    close(variance, turn * turn / 12.0, 0.02);
}

#[test]
fn the_best_of_n_waits_a_turn_over_n_plus_one() {
    let (profile, capacity) = bare("mba3073rc");
    let mut disk = disk(&profile, capacity, 1);
    let turn = f64::from(disk.tables.geometry.turn());
    let track = track(&disk);
    for n in [1u32, 2, 4, 8] {
        let (mut sum, mut now, mut done) = (0.0, Instant(1 << 40), Vec::new());
        let mut random = Random::new(2);
        let rounds = 20_000;
        for _ in 0..rounds {
            now = now + Nanos(random.below(90_000_000));
            // The mechanism is busy while the other commands arrive, so it can choose among all of them.
            disk.submit(now, &command(0, DriveOp::Read, random.below(track), 1));
            for number in 1..=n {
                disk.submit(now, &command(number, DriveOp::Read, random.below(track), 1));
            }
            let mut ends = Vec::new();
            while let Some(next) = disk.next() {
                disk.advance(next, &mut done);
                now = next;
                ends.extend(done.drain(..).map(|_| next.0));
            }
            sum += (ends[1] - ends[0]) as f64;
        }
        close(sum / f64::from(rounds), turn / f64::from(n + 1), 0.02);
    }
}

#[test]
fn the_worst_of_n_drives_waits_n_of_n_plus_one_turns() {
    let (profile, capacity) = bare("mba3073rc");
    let tables = Arc::new(DiskTables::new(&profile, capacity));
    let turn = f64::from(tables.geometry.turn());
    let mut disks: Vec<Disk> = (0..8)
        .map(|index| Disk::new(Arc::clone(&tables), &DriveOptions::default(), &mut Random::derived(5, index)))
        .collect();
    let track = track(&disks[0]);
    let (mut random, mut now) = (Random::new(3), Instant::ZERO);
    for n in [2usize, 4, 8] {
        let (mut sum, rounds) = (0.0, 20_000u32);
        for _ in 0..rounds {
            now = now + Nanos(random.below(90_000_000) + 10_000_000);
            let mut worst = 0;
            for disk in &mut disks[..n] {
                disk.submit(now, &command(0, DriveOp::Read, random.below(track), 1));
                worst = worst.max(finish(disk).0 - now.0);
            }
            sum += worst as f64;
        }
        close(sum / f64::from(rounds), turn * n as f64 / (n + 1) as f64, 0.01);
    }
}

#[test]
fn the_slowest_of_n_random_reads_is_what_was_computed_for_the_drive() {
    // Seek and rotation of n independent WD740GD: 7.49, 9.06, 10.43 and 11.56 ms on average.
    let (mut profile, capacity) = bare("wd740gd");
    profile.rate_inner = profile.rate_outer.clone();
    let tables = Arc::new(DiskTables::new(&profile, capacity));
    let mut disks: Vec<Disk> = (0..8)
        .map(|index| Disk::new(Arc::clone(&tables), &DriveOptions::default(), &mut Random::derived(5, index)))
        .collect();
    let (mut random, mut now) = (Random::new(3), Instant::ZERO);
    let rounds = 20_000;
    for (n, expected) in [(1usize, 7.49), (2, 9.06), (4, 10.43), (8, 11.56)] {
        let mut sum = 0.0;
        for _ in 0..rounds {
            now = now + Nanos(random.below(90_000_000) + 20_000_000);
            let mut worst = 0;
            for disk in &mut disks[..n] {
                disk.submit(now, &command(0, DriveOp::Read, random.below(capacity.0), 1));
                worst = worst.max(finish(disk).0 - now.0);
            }
            sum += worst as f64 / 1e6;
        }
        close(sum / f64::from(rounds), expected, 0.01);
    }
}

#[test]
fn random_places_are_a_third_of_the_stroke_apart_and_the_mean_seek_is_the_sheets() {
    let (mut profile, capacity) = bare("st318453lw");
    profile.rate_inner = profile.rate_outer.clone();
    let tables = DiskTables::new(&profile, capacity);
    let mut random = Random::new(4);
    let (mut distance, mut time) = (0.0, 0.0);
    let count = 400_000;
    for _ in 0..count {
        let mut place = || tables.geometry.place(random.below(capacity.0)).cylinder;
        let apart = place().abs_diff(place());
        distance += f64::from(apart);
        time += f64::from(tables.seek_read.time(apart));
    }
    close(distance / f64::from(count) / f64::from(tables.geometry.cylinders()), 1.0 / 3.0, 0.005);
    close(time / f64::from(count), 3.6e6, 0.005);
}

#[test]
fn a_seek_curve_goes_through_its_ends_and_never_falls() {
    for profile in Library::builtin().drives() {
        let DriveKind::Disk(disk) = &profile.kind else { continue };
        let tables = DiskTables::new(disk, profile.capacity.value);
        let last = tables.geometry.cylinders() - 1;
        for (curve, points) in [(&tables.seek_read, &disk.seek_read), (&tables.seek_write, &disk.seek_write)] {
            // A measured curve has its own first point.
            let first = if disk.seek_table.is_none() { 0.0 } else { 0.06 };
            close(f64::from(curve.time(1)), points.track_to_track.value.0 as f64, first);
            close(f64::from(curve.time(last)), points.full_stroke.value.0 as f64, 0.002);
            let times: Vec<u32> = (0..4000).map(|n| curve.time(n * (last / 4000))).collect();
            assert!(times.windows(2).all(|pair| pair[0] <= pair[1]), "{}", profile.head.name);
        }
    }
}

#[test]
fn all_that_is_beyond_the_reach_of_a_time_takes_longer() {
    for profile in Library::builtin().drives() {
        let DriveKind::Disk(disk) = &profile.kind else { continue };
        let tables = DiskTables::new(disk, profile.capacity.value);
        let last = tables.geometry.cylinders() - 1;
        for curve in [&tables.seek_read, &tables.seek_write] {
            let longest = curve.time(last);
            for time in (0..longest + longest / 10).step_by(longest as usize / 3000) {
                let reach = curve.reach(time);
                let least =
                    (1..).map(|n| n * (last / 500)).find(|distance| *distance > last || curve.time(*distance) > time);
                assert!(reach > last || curve.time(reach) > time, "{}: {time} to {reach}", profile.head.name);
                // The result is useful: nearly the least distance that takes longer, within the resolution of the
                // times.
                let least = least.unwrap_or(last).min(last);
                assert!(curve.time(reach.min(last)) <= curve.time(least) + longest / 100, "{}", profile.head.name);
            }
        }
    }
}

#[test]
fn a_whole_disk_takes_its_cylinders_times_turns_and_skews() {
    for name in ["wd740gd", "exos_x18_18tb", "hus728t8"] {
        let (profile, capacity) = bare(name);
        let geometry = DiskGeometry::new(&profile, capacity);
        let time = geometry.media_end(capacity.0) as f64;
        close(time, f64::from(geometry.cylinders()) * geometry.cylinder_step() as f64, 0.0001);
        let mean = (profile.rate_outer.value.0 + profile.rate_inner.value.0) as f64 / 2.0;
        close(capacity.0 as f64 * 512e9 / time, mean, 0.003);
    }
}

#[test]
fn places_and_media_times_turn_into_each_other() {
    let (profile, capacity) = bare("wd360gd");
    let geometry = DiskGeometry::new(&profile, capacity);
    let mut random = Random::new(6);
    for _ in 0..100_000 {
        let lba = random.below(capacity.0 - 5000) + 1;
        let place = geometry.place(lba);
        let reached = geometry.reached(place.media + 1);
        assert!(reached == lba || reached + 1 == lba, "{lba} {reached}");
        let len = random.between(1, 4000);
        let span = geometry.span(&place, lba, len);
        let exact = geometry.media_end(lba + len) - place.media;
        assert!(span.time.abs_diff(exact) <= 1, "{lba}+{len}: {} {exact}", span.time);
    }
}

/// Commands per second of an ideal disk that always chooses the nearest of `depth` places: floating point, places on a
/// line, no tracks. The oracle shares only the data sheet with the model.
fn ideal_rate(profile: &DiskProfile, depth: usize) -> f64 {
    let (arm, turn) = (ArmMotion::of(&profile.seek_read), profile.turn().0 as f64);
    let mut random = Random::new(21);
    let mut unit = move || random.below(1 << 40) as f64 / (1u64 << 40) as f64;
    let mut places: Vec<(f64, f64)> = (0..depth).map(|_| (unit(), unit() * turn)).collect();
    let (mut at, mut now) = (0.5, 0.0);
    let transfer = 4096e9 / profile.rate_outer.value.0 as f64;
    let count = 40_000;
    for _ in 0..count {
        let end = |place: &(f64, f64)| {
            let there = now + arm.time(f64::abs(place.0 - at));
            there + (place.1 - there).rem_euclid(turn)
        };
        let best = (0..depth).min_by(|a, b| end(&places[*a]).total_cmp(&end(&places[*b]))).unwrap();
        (now, at) = (end(&places[best]) + transfer, places[best].0);
        places[best] = (unit(), unit() * turn);
    }
    f64::from(count) * 1e9 / now
}

#[test]
fn sorting_gains_what_an_ideal_disk_gains() {
    for name in ["wd740gd", "mba3073rc", "exos_x18_18tb"] {
        let (mut profile, capacity) = bare(name);
        profile.rate_inner = profile.rate_outer.clone();
        let rate = |depth: u32| {
            let (mut disk, mut random) = (disk(&profile, capacity, 1), Random::new(7));
            closed(&mut disk, depth, 1000, 20_000, || (DriveOp::Read, random.below(capacity.0 / 8) * 8, 8)).rate()
        };
        for depth in [4, 8, 16, 32, 64] {
            // A free mechanism chooses among the present commands. The host's next command arrives after the choice.
            close(rate(depth + 1), ideal_rate(&profile, depth as usize), 0.03);
        }
    }
}

#[test]
fn sorting_gains_what_was_published_for_the_class() {
    // Gains over one command at a time for drives of 10 000 rpm: 1.48 at 4, 1.8 at 8, 2.2 to 2.3 at 16, 2.7 at 32.
    let (profile, capacity) = bare("wd740gd");
    let rate = |depth: u32| {
        let (mut disk, mut random) = (disk(&profile, capacity, 1), Random::new(7));
        closed(&mut disk, depth, 1000, 20_000, || (DriveOp::Read, random.below(capacity.0 / 8) * 8, 8)).rate()
    };
    let single = rate(1);
    for (depth, gain) in [(4, 1.48), (8, 1.80), (16, 2.25), (32, 2.70)] {
        // At depth 4 the mechanism chooses among three commands, because the host's next one arrives after the choice.
        close(rate(depth) / single, gain, 0.09);
    }
}

#[test]
fn one_command_at_a_time_takes_seek_half_turn_and_transfer() {
    for name in ["wd740gd", "wd360gd", "mba3073rc", "st318453lw", "hus728t8"] {
        let (mut profile, capacity) = bare(name);
        // With one density the places are uniform over the cylinders, as the average of the data sheet assumes.
        profile.rate_inner = profile.rate_outer.clone();
        let (mut disk, mut random) = (disk(&profile, capacity, 1), Random::new(8));
        let trial = closed(&mut disk, 1, 100, 50_000, || (DriveOp::Read, random.below(capacity.0 / 8) * 8, 8));
        let transfer = disk.tables.geometry.media_end(8) as f64;
        let expected = profile.seek_read.average.value.0 as f64 + profile.turn().0 as f64 / 2.0 + transfer;
        close(trial.mean(), expected, 0.01);
    }
}

#[test]
fn reading_in_order_never_loses_a_turn() {
    for name in ["wd740gd", "mba3073rc", "hus728t8", "cheetah_15k7"] {
        let profile = Library::builtin().drive(name).unwrap().clone();
        let DriveKind::Disk(parameters) = &profile.kind else { panic!("a disk") };
        for depth in [1, 2, 8, 32] {
            for sectors in [16, 128, 2048] {
                let mut disk = disk(parameters, profile.capacity.value, 3);
                let mut at = 0;
                let trial = closed(&mut disk, depth, 200, 3000, || {
                    at += sectors;
                    (DriveOp::Read, at - sectors, sectors)
                });
                let rate = parameters.rate_outer.value.0 as f64;
                // The firmware limits short requests, one at a time.
                let firmware = sectors as f64 * 512e9
                    / (parameters.cached_command.value.0 as f64 + disk.tables.transfer(sectors) as f64);
                if firmware > rate * 1.05 {
                    close(trial.bytes_per_second(), rate, 0.015);
                }
            }
        }
    }
}

#[test]
fn writing_in_order_through_the_cache_keeps_the_medium_busy() {
    for name in ["wd740gd", "mba3073rc", "hus728t8"] {
        let profile = Library::builtin().drive(name).unwrap().clone();
        let DriveKind::Disk(parameters) = &profile.kind else { panic!("a disk") };
        let mut disk = disk(parameters, profile.capacity.value, 3);
        let mut at = 0;
        let trial = closed(&mut disk, 1, 4000, 8000, || {
            at += 128;
            (DriveOp::Write { fua: false }, at - 128, 128)
        });
        close(trial.bytes_per_second(), parameters.rate_outer.value.0 as f64, 0.03);
    }
}

#[test]
fn writing_in_order_without_a_cache_costs_a_turn_each_time() {
    let (mut profile, capacity) = bare("wd740gd");
    profile.write_cache = false;
    profile.write_command = Sourced::exact(Nanos::from_micros(100));
    let mut disk = disk(&profile, capacity, 3);
    let turn = f64::from(disk.tables.geometry.turn());
    let mut at = 0;
    let trial = closed(&mut disk, 1, 10, 2000, || {
        at += 16;
        (DriveOp::Write { fua: false }, at - 16, 16)
    });
    // The next sectors have just passed. Each request takes a whole turn, and sometimes the end of a track.
    close(trial.mean(), turn, 0.03);
}

/// A disk over some seconds: the end time of each command, the busy times, and the number of advances. The disk is
/// advanced at the times that it returns, or (`often`) at every inner step.
fn looked_at(name: &str, seed: u64, often: bool) -> (Vec<(Instant, u32)>, Vec<Nanos>, u32) {
    let DriveProfile { kind, capacity, .. } = Library::builtin().drive(name).unwrap().clone();
    let DriveKind::Disk(profile) = kind else { panic!("a disk") };
    let mut disk = disk(&profile, capacity.value, seed);
    let (mut random, mut now, mut looks) = (Random::new(seed), Instant::ZERO, 0);
    let (mut log, mut busy, mut done) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..4000 {
        let op = match random.below(200) {
            0 => DriveOp::Flush,
            1 => DriveOp::Discard,
            2..=4 => DriveOp::Write { fua: true },
            5..=80 => DriveOp::Write { fua: false },
            _ => DriveOp::Read,
        };
        let sectors = if op == DriveOp::Flush { 0 } else { random.between(1, 64) };
        let lba = if random.chance(1, 4) { now.0 % 4096 } else { random.below(capacity.value.0 - 64) };
        disk.submit(now, &command(number, op, if op == DriveOp::Flush { 0 } else { lba }, sectors));
        // Bursts, and pauses in which all data is destaged.
        let pause = if random.chance(1, 50) { 3_000_000_000 } else { 9_000_000 };
        let until = now + Nanos(random.below(pause));
        loop {
            let event = disk.next();
            let inner = Some(Instant(disk.due)).filter(|due| often && *due != Instant::NEVER);
            let Some(next) = event.into_iter().chain(inner).min().filter(|next| *next <= until) else { break };
            (now, looks) = (next, looks + 1);
            disk.advance(now, &mut done);
            log.extend(done.drain(..).map(|tag| (now, tag.index())));
        }
        now = until;
        busy.push(disk.busy(now));
    }
    (log, busy, looks)
}

#[test]
fn looking_only_at_named_times_gives_the_same_result() {
    for (name, seed) in [("exos_x18_18tb", 1), ("mba3073rc", 2), ("wd740gd", 3), ("hus728t8", 4)] {
        let (seldom, often) = (looked_at(name, seed, false), looked_at(name, seed, true));
        assert_eq!(seldom.0, often.0, "{name}");
        assert_eq!(seldom.1, often.1, "{name}");
        assert!(seldom.2 * 10 < often.2 * 9, "{name}: {} of {} looks", seldom.2, often.2);
    }
}

#[test]
fn a_flush_ends_when_everything_before_it_is_on_the_medium() {
    let (profile, capacity) = bare("mba3073rc");
    let mut disk = disk(&profile, capacity, 3);
    for number in 0..20 {
        disk.submit(Instant::ZERO, &command(number, DriveOp::Write { fua: false }, u64::from(number) * 5_000_000, 8));
    }
    disk.submit(Instant::ZERO, &command(99, DriveOp::Flush, 0, 0));
    let (mut now, mut done) = (Instant::ZERO, Vec::new());
    while !done.iter().any(|tag: &Tag| tag.index() == 99) {
        now = disk.next().expect("the flush is not done");
        disk.advance(now, &mut done);
    }
    assert_eq!(done.len(), 21);
    assert!(disk.dirty.oldest().is_none() && disk.busy(now) > Nanos::from_millis(20));
}

#[test]
fn a_cache_for_writes_never_makes_a_mixed_load_much_slower() {
    for name in ["wd740gd", "mba3073rc", "hus728t8", "exos_x18_18tb"] {
        let profile = Library::builtin().drive(name).unwrap().clone();
        let DriveKind::Disk(parameters) = &profile.kind else { panic!("a disk") };
        for depth in [1, 16, 64] {
            for writes in [10, 50, 90] {
                let rate = |cache| {
                    let options = DriveOptions { write_cache: Some(cache), seed: 5, ..DriveOptions::default() };
                    let tables = Arc::new(DiskTables::new(parameters, profile.capacity.value));
                    let mut disk = Disk::new(tables, &options, &mut Random::new(3));
                    let (places, mut random) = (disk.sectors() / 16, Random::new(4));
                    closed(&mut disk, depth, 12_000, 6000, || {
                        let write = random.chance(writes, 100);
                        let op = if write { DriveOp::Write { fua: false } } else { DriveOp::Read };
                        (op, random.below(places) * 16, 16)
                    })
                    .rate()
                };
                let (with, without) = (rate(true), rate(false));
                // A cache with fewer pieces than the queue has commands sorts less than the queue.
                let few = parameters.dirty_extents.value < parameters.queue_depth.value;
                let floor = if few { 0.85 } else { 0.95 };
                assert!(with > floor * without, "{name} depth {depth}, {writes} %: {with} against {without}");
            }
        }
    }
}

#[test]
fn several_streams_get_more_than_a_seek_for_each_request() {
    let profile = Library::builtin().drive("mba3073rc").unwrap().clone();
    let DriveKind::Disk(parameters) = &profile.kind else { panic!("a disk") };
    let rate = |least: u64| {
        let mut parameters = parameters.clone();
        parameters.read_ahead_least = Sourced::exact(Bytes::kib(least));
        let mut disk = disk(&parameters, profile.capacity.value, 3);
        let mut at = [0, 60_000_000];
        let mut turn = 0;
        closed(&mut disk, 2, 100, 3000, || {
            turn += 1;
            let at = &mut at[turn % 2];
            *at += 128;
            (DriveOp::Read, *at - 128, 128)
        })
        .bytes_per_second()
    };
    let (none, some, more) = (rate(0), rate(128), rate(512));
    assert!(none < some && some < more, "{none} {some} {more}");
}

/// Two readers, each with one request outstanding, share the disk as in a polling server: a visit reads
/// `read_ahead_least` after the request for which the arm came. Then the arm moves to the other stream.
#[test]
fn two_sequential_readers_share_the_disk_by_visits() {
    const SECTORS: u64 = 128;
    const REQUESTS: u64 = 4000;
    for name in ["exos_x18_18tb", "wd740gd", "mba3073rc"] {
        let profile = Library::builtin().drive(name).unwrap().clone();
        let DriveKind::Disk(parameters) = &profile.kind else { panic!("a disk") };
        let mut disk = disk(parameters, profile.capacity.value, 3);
        // The distance of the streams is a quarter of the capacity.
        let mut at = [0, profile.capacity.value.get() / 4 / SECTORS * SECTORS];
        let mut served = [0_u64; 2];
        let mut ask = |disk: &mut Disk, now, reader: u32| {
            let from = &mut at[reader as usize];
            disk.submit(now, &command(reader, DriveOp::Read, *from, SECTORS));
            *from += SECTORS;
        };
        (0..2).for_each(|reader| ask(&mut disk, Instant::ZERO, reader));
        let (mut now, mut done) = (Instant::ZERO, Vec::new());
        while served[0] + served[1] < REQUESTS {
            now = disk.next().expect("two readers wait");
            disk.advance(now, &mut done);
            for tag in done.drain(..) {
                served[tag.index() as usize] += 1;
                ask(&mut disk, now, tag.index());
            }
        }
        let [first, second] = served.map(|count| count as f64);
        assert!((first / second - 1.0).abs() < 0.05, "{name}: {served:?}");
        // A visit: the arm's move, half a turn, the request, and the read-ahead.
        let geometry = &disk.tables.geometry;
        let distance = geometry.place(at[1]).cylinder - geometry.place(at[0]).cylinder;
        let bytes = (SECTORS * 512 + parameters.read_ahead_least.value.get()) as f64;
        let transfer = bytes / parameters.rate_outer.value.0 as f64 * 1e9;
        let visit = f64::from(disk.tables.seek_read.time(distance)) + f64::from(geometry.turn()) / 2.0 + transfer;
        let rate = (REQUESTS * SECTORS * 512) as f64 / now.0 as f64;
        close(rate, bytes / visit, 0.05);
    }
}

#[test]
fn forced_writes_wait_for_the_medium_and_others_do_not() {
    let (profile, capacity) = bare("mba3073rc");
    let time = |fua| {
        let mut disk = disk(&profile, capacity, 3);
        disk.submit(Instant(1000), &command(1, DriveOp::Write { fua }, 70_000_000, 8));
        disk.next().unwrap().0 - 1000
    };
    assert!(time(true) > 2_000_000 && time(false) < 100_000);
}

#[test]
fn an_unaligned_write_comes_round_once_more() {
    let (mut profile, capacity) = bare("hus728t8");
    profile.write_cache = false;
    let time = |lba| {
        let mut disk = disk(&profile, capacity, 3);
        disk.submit(Instant(1000), &command(1, DriveOp::Write { fua: false }, lba, 8));
        finish(&mut disk).0
    };
    let turn = profile.turn().0;
    assert!((turn..turn + 20_000).contains(&(time(1 << 20 | 1) - time(1 << 20))));
}

#[test]
fn every_command_ends_exactly_once_and_a_seed_is_a_run() {
    let run = |seed: u64| {
        let profile = Library::builtin().drive("hus728t8").unwrap().clone();
        let DriveKind::Disk(parameters) = &profile.kind else { panic!("a disk") };
        let (mut disk, mut random) = (disk(parameters, profile.capacity.value, 3), Random::new(seed));
        let (mut now, mut done, mut log) = (Instant::ZERO, Vec::new(), Vec::new());
        for number in 0..5000 {
            let reach = if random.chance(1, 2) { 100_000 } else { 10_000_000_000 };
            let lba = random.below(reach);
            let op = match random.below(20) {
                0 => DriveOp::Flush,
                1 => DriveOp::Discard,
                2 => DriveOp::WriteZeroes { may_discard: false },
                3..=5 => DriveOp::Write { fua: true },
                6..=12 => DriveOp::Write { fua: false },
                _ => DriveOp::Read,
            };
            let sectors = if op == DriveOp::Flush { 0 } else { random.between(1, 300) };
            disk.submit(now, &command(number, op, lba, sectors));
            let until = now + Nanos(random.below(8_000_000));
            while let Some(next) = disk.next().filter(|next| *next <= until) {
                assert!(next >= now, "time runs backwards");
                now = next;
                disk.advance(now, &mut done);
                log.extend(done.drain(..).map(|tag| (now, tag.index())));
            }
            now = until;
        }
        while let Some(next) = disk.next() {
            assert!(next >= now, "time runs backwards");
            now = next;
            disk.advance(now, &mut done);
            log.extend(done.drain(..).map(|tag| (now, tag.index())));
        }
        log
    };
    let log = run(11);
    let mut numbers: Vec<u32> = log.iter().map(|(_, number)| *number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..5000).collect::<Vec<_>>());
    assert_eq!(log, run(11));
    assert_ne!(log, run(12));
}

#[test]
fn read_ahead_of_a_stream_counts_as_busy_as_far_as_it_is_requested() {
    let DriveProfile { kind, capacity, .. } = Library::builtin().drive("wd740gd").unwrap().clone();
    let DriveKind::Disk(profile) = kind else { panic!("it is a disk") };
    for (think, least, most) in [(0, 0.97, 1.0), (2_000_000, 0.0, 0.0)] {
        let mut disk = disk(&profile, capacity.value, 1);
        let (len, rounds) = (128, 2_000);
        let (mut now, mut done) = (Instant::ZERO, Vec::new());
        for number in 0..rounds {
            disk.submit(now, &command(number, DriveOp::Read, u64::from(number) * len, len));
            while done.is_empty() {
                now = disk.next().expect("a command is in it");
                disk.advance(now, &mut done);
            }
            done.clear();
            now = now + Nanos(think);
        }
        let share = disk.busy(now).0 as f64 / now.0 as f64;
        if think == 0 {
            assert!((least..=most).contains(&share), "{share}");
        } else {
            // The medium's time for the requested sectors only, although the disk read far ahead.
            let geometry = &disk.tables.geometry;
            let medium = geometry.media_end(u64::from(rounds) * len);
            close(disk.busy(now).0 as f64, medium as f64, 0.02);
            assert!(share < 0.5, "{share}");
        }
    }
}

#[test]
fn reading_in_order_over_a_link_slower_than_the_medium_goes_at_the_links_rate() {
    for (mbs, depth) in [(60, 1), (60, 4), (150, 4)] {
        let (mut profile, capacity) = bare("exos_x18_18tb");
        profile.link_rate = Sourced::exact(Rate::mbs(mbs));
        profile.read_ahead = Sourced::exact(Bytes::mib(2));
        let mut disk = disk(&profile, capacity, 3);
        let mut at = 0;
        let trial = closed(&mut disk, depth, 2000, 6000, || {
            at += 128;
            (DriveOp::Read, at - 128, 128)
        });
        close(trial.bytes_per_second(), mbs as f64 * 1e6, 0.03);
    }
}

/// A read of n sectors over a link: the slower of medium and link moves all of them, the other one adds one.
#[test]
fn a_read_takes_what_the_slower_of_medium_and_link_takes() {
    const SECTORS: u64 = 128;
    let (mut profile, capacity) = bare("wd740gd");
    // With one density, every place has the same rate. No read crosses the end of a track.
    profile.rate_inner = profile.rate_outer.clone();
    let track = disk(&profile, capacity, 1).tables.geometry.track();
    for kbs in [5_000, 40_000, 60_000, 300_000] {
        profile.link_rate = Sourced::exact(Rate(kbs * 1000));
        let (mut disk, mut random) = (disk(&profile, capacity, 1), Random::new(8));
        let tracks = capacity.0 / track;
        let trial = closed(&mut disk, 1, 100, 40_000, || {
            let place = random.below(tracks) * track + random.below((track - SECTORS) / 8) * 8;
            (DriveOp::Read, place, SECTORS)
        });
        let medium = profile.turn().0 as f64 / track as f64;
        let link = 512e6 / kbs as f64;
        let passing = (SECTORS - 1) as f64 * f64::max(medium, link) + medium + link;
        close(trial.mean(), profile.seek_read.average.value.0 as f64 + profile.turn().0 as f64 / 2.0 + passing, 0.01);
    }
}

#[test]
fn the_medium_waits_for_the_link_when_the_buffer_is_full() {
    let (mut profile, capacity) = bare("wd740gd");
    profile.link_rate = Sourced::exact(Rate::mbs(10));
    let mut disk = disk(&profile, capacity, 1);
    let (buffer, turn) = (disk.tables.buffer, u64::from(disk.tables.geometry.turn()));
    // A read of eight times the buffer.
    disk.submit(Instant::ZERO, &command(1, DriveOp::Read, 0, 8 * buffer));
    let (mut now, mut done, mut ends) = (Instant::ZERO, Vec::new(), Vec::new());
    let from = disk.work.media;
    while let Some(next) = disk.next() {
        now = next;
        disk.advance(now, &mut done);
        ends.extend(done.drain(..).map(|_| now));
    }
    // The link transfers all data, and the medium works until the last part fits into the buffer, in whole turns.
    let (all, fits) = (8 * buffer * 51_200, 7 * buffer * 51_200);
    assert!(from > 0 && ends.len() == 1 && (all..all + turn).contains(&ends[0].0), "{ends:?}");
    let busy = disk.busy(now).0;
    assert!((fits..fits + 2 * turn).contains(&busy), "{busy} is not {fits}");
}

#[test]
fn writes_have_a_firmware_time_of_their_own() {
    let (mut profile, capacity) = bare("mba3073rc");
    let time = |profile: &DiskProfile, op| {
        let mut disk = disk(profile, capacity, 3);
        disk.submit(Instant(1000), &command(1, op, 70_000_000, 8));
        disk.next().unwrap().0 - 1000
    };
    let cached = DriveOp::Write { fua: false };
    let before = time(&profile, cached);
    profile.cached_write_command = Sourced::exact(Nanos::from_micros(700));
    assert_eq!(time(&profile, cached), before + 700_000);
    // The firmware's time is before the arm moves: if the firmware takes a turn, the sector is a whole turn later.
    let through = DriveOp::Write { fua: true };
    let (before, turn) = (time(&profile, through), profile.turn().0);
    profile.write_command = Sourced::exact(Nanos(turn));
    let after = time(&profile, through);
    assert!(after.abs_diff(before + turn) < turn / 500, "{before} {after}");
    assert_eq!(time(&profile, DriveOp::Read), time(&bare("mba3073rc").0, DriveOp::Read));
}

#[test]
fn an_smr_disk_falls_to_the_rate_of_its_bands_when_its_cache_is_full() {
    let (mut profile, _) = bare("st8000as0002");
    let (band, pieces) = (30_000_000u64, 1000u32);
    let capacity = Sectors(10_000_000_000 / 512);
    profile.write_cache = false;
    if let Some(shingled) = &mut profile.shingled {
        (shingled.band, shingled.extents) = (Sourced::exact(Bytes(band)), Sourced::exact(pieces));
    }
    let mut disk = disk(&profile, capacity, 3);
    let mut random = Random::new(3);
    let mut writes = |warm, count| {
        let place = || (DriveOp::Write { fua: false }, random.below(capacity.0 / 8) * 8, 8);
        closed(&mut disk, 1, warm, count, place).mean()
    };
    let before = writes(0, 900);
    let after = writes(6000, 12_000);
    // Each band that is rewritten has 2 E / B pieces. Tracks of linearly falling length have the mean 2 / (ro + ri) of
    // time for a byte.
    let in_band = 2.0 * f64::from(pieces) / (capacity.0 as f64 * 512.0 / band as f64);
    let rates = (profile.rate_outer.value.0 + profile.rate_inner.value.0) as f64;
    let seek = profile.seek_write.average.value.0 as f64;
    let rewritten = 2.0 * (seek + profile.turn().0 as f64 / 2.0 + band as f64 * 2.0 / rates * 1e9);
    close(after, before + rewritten / in_band, 0.1);
    assert!(after > 4.0 * before, "{after} {before}");
}

#[test]
fn an_idle_smr_disk_empties_its_cache() {
    let (mut profile, capacity) = bare("st8000as0002");
    profile.write_cache = false;
    if let Some(shingled) = &mut profile.shingled {
        shingled.extents = Sourced::exact(20);
    }
    let mut disk = disk(&profile, capacity, 3);
    let mut took = |start: Instant, lba: u64| {
        let (mut now, mut done) = (start, Vec::new());
        disk.submit(now, &command(1, DriveOp::Write { fua: false }, lba, 8));
        while done.is_empty() {
            now = disk.next().expect("a write is in work");
            disk.advance(now, &mut done);
        }
        now
    };
    let mut now = Instant::ZERO;
    for number in 0..20 {
        now = took(now, 1_000_008 + number * 1_000_000);
    }
    // The next write waits for a band. After an hour there is room again.
    let full = took(now, 77_000_008);
    assert!(full.since(now) > Nanos::from_millis(200), "{}", full.since(now));
    let later = full + Nanos::from_secs(3600);
    let rested = took(later, 99_000_008);
    assert!(rested.since(later) < Nanos::from_millis(60), "{}", rested.since(later));
}

/// A controller that sorts 64 commands, half of them writes, gives them one at a time. A write cache of few pieces must
/// not undo its order.
#[test]
fn a_write_cache_does_not_slow_down_what_a_controller_has_sorted() {
    let (mut profile, capacity) = bare("wd360gd");
    let mut took = |cached: bool| {
        profile.write_cache = cached;
        let (mut disk, mut random) = (disk(&profile, capacity, 1), Random::new(7));
        let mut draw = || (random.below(capacity.0 - 16) / 16 * 16, random.chance(1, 2));
        let mut waiting: Vec<(u64, bool)> = (0..64).map(|_| draw()).collect();
        let (mut at, mut now, mut done) = (0, Instant::ZERO, Vec::new());
        for number in 0..10_000 {
            let above = waiting.iter().filter(|(lba, _)| *lba >= at).min();
            let next = *above.or(waiting.iter().min()).unwrap();
            waiting.retain(|one| *one != next);
            waiting.push(draw());
            at = next.0;
            let op = if next.1 { DriveOp::Write { fua: false } } else { DriveOp::Read };
            disk.submit(now, &command(number, op, next.0, 16));
            done.clear();
            while done.is_empty() {
                now = disk.next().expect("a command is in work");
                disk.advance(now, &mut done);
            }
        }
        now.since(Instant::ZERO).0 as f64
    };
    let (with, without) = (took(true), took(false));
    assert!(with <= 1.02 * without, "{with} with a write cache, {without} without");
}
