//! Prints cells.
use openraid_lab::cell::*;
use openraid_models::Library;
use std::time::Instant;
fn main() {
    let library = Library::builtin();
    for c in library.controllers() {
        println!("{} drive {} cache {}", c.head.name, c.drive, c.cache.value);
    }
    let sys = std::env::args().nth(1).unwrap_or("3ware-9650se".into());
    let subjects: Vec<String> = std::env::args()
        .nth(2)
        .unwrap_or("single,raid0x4,raid5x4,raid10x4".into())
        .split(',')
        .map(String::from)
        .collect();
    for pattern in Pattern::ALL {
        for s in &subjects {
            for axes in [
                Axes::default(),
                Axes { qd: Some(16), ..Axes::default() },
                Axes { op: Some(Direction::Write), rd: Some(0), ..Axes::default() },
            ] {
                if matches!(pattern, Pattern::FileServer | Pattern::WebServer | Pattern::Workstation)
                    && axes.rd.is_some()
                {
                    continue;
                }
                let cell = CellSpec {
                    effort: Effort::QUICK,
                    ..CellSpec::new(&sys, s.parse().unwrap(), pattern.clone()).with(axes.clone())
                };
                let t = Instant::now();
                match run_cell(&library, &cell) {
                    Ok(r) => println!(
                        "{:14} {:9} {:28} iops {:9.1} mbps {:8.2} mean {:8.3} ms p99 {:8.3} {:?} {:?} [{:.2}s] {:?}",
                        pattern.name(),
                        s,
                        serde_json::to_string(&axes).unwrap(),
                        r.iops,
                        r.mbps,
                        r.mean_ms(),
                        r.histogram().percentile(99.0) as f64 / 1e6,
                        r.bottleneck().map(|b| (b.name.clone(), (b.busy * 100.0).round())),
                        r.score,
                        t.elapsed().as_secs_f64(),
                        r.notes
                    ),
                    Err(e) => println!("{:14} {:9} {}", pattern.name(), s, e),
                }
            }
        }
    }
}
