//! Prints hashes of the engine's decisions in fault runs: `digests [FIRST [COUNT]]`.
//!
//! A change that must not change behaviour must give the same output before and after. Each seed gives two runs, one
//! drawn and one aimed, and one line with the hash of all actions of both and the number of events. The last line is
//! for all runs.

use openraid_sim::digest::Digest;
use openraid_sim::fault::{report, Scenario};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let first = numbers.next().unwrap_or(1);
    let count = numbers.next().unwrap_or(100);
    let mut all = Digest::default();
    for seed in first..first + count {
        let mut digest = Digest::default();
        let mut events = 0;
        for scenario in [Scenario::draw(seed), Scenario::aimed(seed)] {
            let report = report(&scenario, None);
            digest.number(report.counts.decisions);
            digest.bytes(format!("{:?} {}", report.verdict, report.story.join("\n")).as_bytes());
            events += report.counts.events;
        }
        digest.number(events);
        println!("{seed} {:016x} {events}", digest.value());
        all.number(digest.value());
    }
    println!("all {:016x}", all.value());
}
