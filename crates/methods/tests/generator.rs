//! Compares the generator with queueing theory: servers whose results can be computed by hand.

use openraid_methods::load::{
    one_size, run_open, ArrivalPace, ClosedLoop, LoadRequest, LoadSource, LoadStep, LoopOptions, Mixed, PacedSource,
    Script, Stop, Zone, OUTSTANDING_MAX,
};
use openraid_methods::metrics::Recorder;
use openraid_methods::target::{IoKind, QueueServers, Target};
use openraid_units::{Bytes, Instant, Nanos};

const MS: Nanos = Nanos(1_000_000);
const CAPACITY: Bytes = Bytes(1 << 30);
const ZONE: Zone = Zone { start: 0, len: 1 << 30 };

fn closed(
    workers: u16,
    depth: u32,
    servers: &mut QueueServers,
    source: &mut dyn LoadSource,
    requests: u64,
) -> Recorder {
    let options = LoopOptions { workers, depth, jitter: Nanos::ZERO, seed: 1 };
    let mut closed = ClosedLoop::new(options);
    let mut recorder = Recorder::new(workers);
    let stop = Stop { requests, at: Instant::NEVER };
    closed.run(servers, source, stop, Some(&mut recorder)).unwrap();
    recorder
}

#[test]
fn a_closed_loop_of_constant_servers_has_the_throughput_of_the_smaller_of_depth_and_servers() {
    for (servers, workers, depth) in [(4, 1, 1), (4, 1, 4), (4, 2, 8), (1, 1, 16)] {
        let mut target = QueueServers::constant(servers, MS, CAPACITY);
        let mut source = Mixed::new(&one_size("r", 4096, 100, 100), workers, ZONE, 1, 1);
        let recorder = closed(workers, depth, &mut target, &mut source, 4000);
        let outstanding = u64::from(workers) * u64::from(depth);
        let rate = outstanding.min(servers as u64);
        assert_eq!(target.now().get_ms(), 4000 / rate, "{servers} {workers} {depth}");
        // Little's law: latency = outstanding / throughput. It is exact except for the first round.
        let expected = outstanding as f64 / rate as f64;
        let mean = recorder.reads.latency.mean() / 1e6;
        assert!((mean - expected).abs() <= expected * 0.005, "{mean} for {expected}");
    }
}

trait Milliseconds {
    fn get_ms(self) -> u64;
}
impl Milliseconds for Instant {
    fn get_ms(self) -> u64 {
        self.since(Instant::ZERO).get() / 1_000_000
    }
}

#[test]
fn poisson_arrivals_at_constant_servers_wait_as_in_m_d_1() {
    // M/D/1: mean time in system = service * (1 + rho / (2 (1 - rho))).
    let mut target = QueueServers::constant(1, MS, CAPACITY);
    let mut source = Mixed::new(&one_size("r", 4096, 100, 100), 1, ZONE, 1, 5);
    let mut arrivals = PacedSource::new(&mut source, ArrivalPace::Poisson(Nanos(2_000_000)), 7);
    let mut recorder = Recorder::new(1);
    run_open(&mut target, &mut arrivals, Nanos::from_secs(1), Nanos::from_secs(1000), OUTSTANDING_MAX, &mut recorder)
        .unwrap();
    let mean = recorder.reads.latency.mean() / 1e6;
    assert!((mean - 1.5).abs() < 0.015, "{mean}");
    assert!((recorder.reads.requests as f64 / 499_500.0 - 1.0).abs() < 0.01);
}

#[test]
fn poisson_arrivals_at_an_exponential_server_wait_as_in_m_m_1() {
    // M/M/1: mean time in system = service / (1 - rho).
    let mut target = QueueServers::constant(1, MS, CAPACITY).exponential(3);
    let mut source = Mixed::new(&one_size("w", 4096, 0, 100), 1, ZONE, 1, 5);
    let mut arrivals = PacedSource::new(&mut source, ArrivalPace::Poisson(Nanos(2_500_000)), 7);
    let mut recorder = Recorder::new(1);
    run_open(&mut target, &mut arrivals, Nanos::from_secs(1), Nanos::from_secs(2000), OUTSTANDING_MAX, &mut recorder)
        .unwrap();
    let mean = recorder.writes.latency.mean() / 1e6;
    assert!((mean - 1.0 / 0.6).abs() < 0.02, "{mean}");
}

#[test]
fn a_stall_is_seen_by_every_request_that_should_have_come_during_it() {
    // 100 requests, one per millisecond, at a server that takes 3 ms: request n arrives at n + 1 and ends at 3 (n + 1).
    let mut target = QueueServers::constant(1, Nanos(3_000_000), CAPACITY);
    let mut source = Mixed::new(&one_size("r", 4096, 100, 100), 1, ZONE, 1, 5);
    let mut arrivals = PacedSource::new(&mut source, ArrivalPace::Even(MS), 7);
    let mut recorder = Recorder::new(1);
    run_open(&mut target, &mut arrivals, Nanos::ZERO, Nanos(100_500_000), OUTSTANDING_MAX, &mut recorder).unwrap();
    assert_eq!(recorder.reads.requests, 100);
    assert_eq!(recorder.reads.latency.max(), (3 + 2 * 99) * 1_000_000);
    let mean = (0..100).map(|n| f64::from(3 + 2 * n)).sum::<f64>() / 100.0;
    assert!((recorder.reads.latency.mean() / 1e6 - mean).abs() < 1e-9);
}

#[test]
fn think_time_and_jitter_lower_the_rate_as_they_should() {
    // Each request takes 1 ms of service, and a pause of 3 ms follows: 250 per second.
    let mut target = QueueServers::constant(8, MS, CAPACITY);
    let mut source = Mixed::new(&one_size("r", 4096, 100, 100), 1, ZONE, 1, 1).thinking(1, Nanos(3_000_000));
    closed(1, 1, &mut target, &mut source, 1000);
    assert!((3996..=4000).contains(&target.now().get_ms()), "{}", target.now().get_ms());
    let mut target = QueueServers::constant(8, MS, CAPACITY);
    let mut source = Mixed::new(&one_size("r", 4096, 100, 100), 1, ZONE, 1, 1);
    let options = LoopOptions { workers: 1, depth: 1, jitter: Nanos(2_000_000), seed: 4 };
    let mut jittered = ClosedLoop::new(options);
    let stop = Stop { requests: 10_000, at: Instant::NEVER };
    jittered.run(&mut target, &mut source, stop, None).unwrap();
    // Uniform from 0 to 2 ms: 1 ms in the mean, standard error of 10,000 is 5.8 us.
    let each = target.now().since(Instant::ZERO).get() as f64 / 10_000.0 / 1e6;
    assert!((each - 2.0).abs() < 0.02, "{each}");
}

#[test]
fn a_worker_thinks_as_a_whole_whatever_its_depth() {
    // With a depth of at least 4, a burst of 4 is sent at once and ends within 1 ms; a pause of 7 ms follows. With a
    // depth of 2 or 3 it takes 2 ms. At depth 3 three requests are sent at once, and the last one when one has ended.
    for (depth, burst_ms) in [(1, 4), (2, 2), (3, 2), (4, 1), (64, 1)] {
        let mut target = QueueServers::constant(64, MS, CAPACITY);
        let spec = one_size("r", 4096, 100, 100);
        let mut source = Mixed::new(&spec, 1, ZONE, 1, 1).thinking(4, Nanos(7_000_000));
        let recorder = closed(1, depth, &mut target, &mut source, 4000);
        // No pause after the last of a thousand bursts.
        assert_eq!(target.now().get_ms(), 1000 * burst_ms + 999 * 7, "depth {depth}");
        assert_eq!((recorder.reads.requests, recorder.reads.latency.max()), (4000, 1_000_000), "depth {depth}");
    }
    // The pause begins when the last request of a burst has ended, and does not delay another worker. With one server
    // the bursts of the first worker begin at 9 ms (its two requests ended at 1 and 3), 17, 25, ...; those of the
    // second at 10, 19, 27, ...
    let mut target = QueueServers::constant(1, MS, CAPACITY);
    let mut source = Mixed::new(&one_size("r", 4096, 100, 100), 2, ZONE, 1, 1).thinking(2, Nanos(6_000_000));
    let recorder = closed(2, 8, &mut target, &mut source, 400);
    assert_eq!(target.now().get_ms(), 8 * 99 + 5);
    assert_eq!(recorder.workers, [(200, 200 * 4096); 2]);
}

#[test]
fn a_script_is_done_once_and_the_loop_ends_with_it() {
    let mut target = QueueServers::constant(1, MS, CAPACITY);
    let ask = |n: u64| LoadStep::Ask(LoadRequest { kind: IoKind::Write, offset: n * 512, len: 512 });
    let steps = (0..10).map(ask).chain([LoadStep::Think(MS)]).chain((10..20).map(ask));
    let mut script = Script::new(steps);
    let recorder = closed(1, 1, &mut target, &mut script, u64::MAX);
    assert_eq!((recorder.writes.requests, target.now().get_ms()), (20, 21));
}

#[test]
fn pieces_of_a_run_are_the_run() {
    let run = |pieces: u64| {
        let mut target = QueueServers::constant(3, MS, CAPACITY).exponential(2);
        let mut source = Mixed::new(&one_size("m", 4096, 50, 100), 2, ZONE, 1, 1);
        let mut closed = ClosedLoop::new(LoopOptions { workers: 2, depth: 4, jitter: Nanos::ZERO, seed: 1 });
        let mut recorder = Recorder::new(2);
        for _ in 0..pieces {
            let stop = Stop { requests: 1000 / pieces, at: Instant::NEVER };
            closed.run(&mut target, &mut source, stop, Some(&mut recorder)).unwrap();
        }
        closed.drain(&mut target, Some(&mut recorder)).unwrap();
        (target.now(), recorder)
    };
    assert_eq!(run(1), run(10));
    assert_eq!(run(1).1.requests(), 1000 + 8);
}
