//! Full stripes of RAID 5 and RAID 6 over members in memory, compared with a plain copy of the same bytes in one
//! run: how much of the machine's speed remains with the engine and the parity kernels.
//!
//! The payload is where the host put it, in the frames: neither side pays for bringing it there. One thread, one
//! stripe at a time and eight at a time; CPU time, the median of several rounds.

use openraid_core::actions::{Data, Direction, DriveOp};
use openraid_core::admin::{AdminCommand, AdminOutcome};
use openraid_core::events::{BlockRequest, Completion, RequestKind};
use openraid_core::limits::Limits;
use openraid_core::{Actions, Controller};
use openraid_parity::Kernels;
use openraid_runtime::parity_jobs;
use openraid_sim::drive::null::NullMachine;
use openraid_sim::world::arrays::plan_new;
use openraid_sim::{ArrayShape, RigOptions};
use openraid_sys::{FramePool, PoolOptions, PoolRange};
use openraid_units::{ArrayId, ArrayOffset, Bytes, DriveId, Instant, Nanos, Sectors, Token};

const CHUNK: Sectors = Sectors::kib(64);
const MEMBER: Sectors = Sectors::mib(24);
const ROUNDS: usize = 7;
/// Host bytes of a round.
const ROUND_BYTES: u64 = 2 << 30;

/// The controller on members in memory.
struct Machine {
    controller: Controller,
    actions: Actions,
    pool: FramePool,
    kernels: Kernels,
    members: Vec<Vec<u8>>,
    now: Instant,
    ended: u64,
    token: u64,
}

fn index(bytes: Bytes) -> usize {
    usize::try_from(bytes.get()).expect("it is in memory")
}

impl Machine {
    fn new(shape: &ArrayShape) -> (Self, ArrayId) {
        let limits = Limits { clean_delay: Nanos::from_secs(1 << 30), ..Limits::default() };
        let mut machine = Self {
            controller: Controller::new(limits.clone()).expect("limits that work"),
            actions: Actions::new(&limits),
            pool: FramePool::new(PoolOptions { touch: true, ..PoolOptions::of(limits.pool) }).expect("memory"),
            kernels: Kernels::detect(),
            members: Vec::new(),
            now: Instant::ZERO,
            ended: 0,
            token: 0,
        };
        let mut drives = Vec::new();
        for drive in (0..shape.members).map(DriveId) {
            machine.members.push(vec![1; index(MEMBER.bytes())]);
            machine.admin(AdminCommand::AttachDrive { drive, info: NullMachine::info(MEMBER) });
            drives.push((drive, MEMBER));
        }
        let plan = plan_new(shape, &drives, &RigOptions::new(1)).expect("an array");
        let AdminOutcome::Started(array) = machine.admin(AdminCommand::StartSet(plan)) else { panic!("it starts") };
        (machine, array)
    }

    fn admin(&mut self, command: AdminCommand) -> AdminOutcome {
        self.controller.admin(Token(0), command);
        for _ in 0..1000 {
            if let Some(answer) = self.turn() {
                return answer;
            }
        }
        panic!("no answer");
    }

    fn turn(&mut self) -> Option<AdminOutcome> {
        self.now = self.now + Nanos(1000);
        self.actions.clear();
        self.controller.advance(self.now, &mut self.actions);
        for command in &self.actions.drive {
            let at = index(command.lba.offset().bytes());
            let len = index(command.len.bytes());
            let member = &mut self.members[command.drive.index()];
            match (command.op, command.data) {
                (DriveOp::Write { .. }, Data::Frames(from)) => {
                    member[at..at + len].copy_from_slice(self.pool.slice(PoolRange::new(from, command.len.bytes())));
                }
                (DriveOp::Write { .. }, Data::Metadata(range)) => {
                    member[at..at + len].copy_from_slice(self.actions.metadata_of(range));
                }
                (DriveOp::Read, Data::Frames(to)) => {
                    let frames = self.pool.slice_mut(PoolRange::new(to, command.len.bytes()));
                    frames.copy_from_slice(&member[at..at + len]);
                }
                (DriveOp::Flush, _) => {}
                other => panic!("not requested: {other:?}"),
            }
            self.controller.complete(Completion::Drive { tag: command.tag, result: Ok(()) });
        }
        for transfer in &self.actions.transfers {
            assert_eq!(transfer.direction, Direction::FromHost);
            self.controller.complete(Completion::Transfer { tag: transfer.tag, result: Ok(()) });
        }
        for job in &self.actions.jobs {
            let verdict = parity_jobs::run(self.kernels, &mut self.pool, job, self.actions.columns_of(job));
            self.controller.complete(Completion::Job { tag: job.tag, verdict });
        }
        self.ended += self.actions.replies.len() as u64;
        self.actions.admin.drain(..).next().map(|answer| answer.result.expect("it is possible"))
    }

    /// Write this many stripes in order, `depth` at a time.
    fn write(&mut self, array: ArrayId, stripe: u64, depth: u64, count: u64) {
        let stripes = self.controller.capacity(array).expect("it runs").get() / stripe;
        let (mut begun, first) = (0, self.ended);
        while self.ended - first < count {
            while begun < count && begun - (self.ended - first) < depth {
                self.token += 1;
                let kind = RequestKind::Write { fua: false };
                let offset = ArrayOffset(begun % stripes * stripe);
                let request = BlockRequest { token: Token(self.token), array, kind, offset, len: stripe };
                self.controller.submit(request).expect("there is room");
                begun += 1;
            }
            self.turn();
        }
    }
}

/// Nanoseconds that this thread has run.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux says");
    text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number")
}

/// Bytes a nanosecond: GB/s.
fn speed(mut work: impl FnMut()) -> f64 {
    work();
    let mut figures: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let before = cpu();
            work();
            ROUND_BYTES as f64 / (cpu() - before)
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    figures[ROUNDS / 2]
}

fn main() {
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    // A virtual machine gets its memory at the first touch, which takes longer than all that is measured here.
    drop(Machine::new(&ArrayShape::raid6(10, CHUNK)));
    drop(vec![1_u8; 12 * index(MEMBER.bytes())]);
    println!("full stripes to members in memory, chunk 64 KiB, one thread, CPU time (median of {ROUNDS})");
    println!("{:<12} {:>6} {:>12} {:>12} {:>8}", "array", "depth", "GB/s", "copy GB/s", "ratio");
    for (name, shape) in [
        ("RAID 5 4+1", ArrayShape::raid5(5, CHUNK)),
        ("RAID 5 8+1", ArrayShape::raid5(9, CHUNK)),
        ("RAID 6 4+2", ArrayShape::raid6(6, CHUNK)),
        ("RAID 6 8+2", ArrayShape::raid6(10, CHUNK)),
    ] {
        let (mut machine, array) = Machine::new(&shape);
        let data = u64::from(shape.members) - if name.contains('6') { 2 } else { 1 };
        let stripe = data * CHUNK.bytes().get();
        for depth in [1, 8] {
            let count = ROUND_BYTES / stripe;
            let array_speed = speed(|| machine.write(array, stripe, depth, count));
            let source = vec![2_u8; index(Bytes(stripe * depth))];
            let mut target = vec![1_u8; index(MEMBER.bytes()) * usize::from(shape.members)];
            let copy = speed(|| {
                let whole = target.len() / source.len();
                for nth in 0..usize::try_from(ROUND_BYTES).expect("64 bits") / source.len() {
                    let at = nth % whole * source.len();
                    target[at..at + source.len()].copy_from_slice(std::hint::black_box(&source));
                }
                std::hint::black_box(&mut target);
            });
            println!("{name:<12} {depth:>6} {array_speed:>12.1} {copy:>12.1} {:>8.2}", array_speed / copy);
        }
    }
}
