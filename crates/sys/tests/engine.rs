//! Runs the same tests with both engines, on every available file system. The oracle is the file as the standard
//! library reads it.

mod common;

use common::{pattern, run, Frozen, Loop, TempDir};
use openraid_sys::{
    clock, Completed, Direct, EngineKind, EngineOptions, Epoll, Errno, Events, FaultKind, FramePool, HugePages,
    Interest, IoEngine, IoError, MemberError, MemberFile, MemberSlot, Operation, OperationKind, PoolOptions, PoolRange,
    Prefer, PushError, Use, WaitMode, IN_FLIGHT_MAX,
};
use openraid_units::{Bytes, DriveLba, Nanos, PoolOffset, Sectors};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;

const POOL: Bytes = Bytes::mib(4);

/// An engine, a pool and a way to wait.
struct Rig {
    pool: FramePool,
    engine: IoEngine,
    epoll: Epoll,
    waiting: WaitMode,
}

impl Rig {
    fn new(prefer: Prefer, register: bool) -> Self {
        Self::waiting(WaitMode::Among, prefer, register)
    }

    fn waiting(waiting: WaitMode, prefer: Prefer, register: bool) -> Self {
        Self::with(EngineOptions { prefer, register, waiting, ..EngineOptions::default() })
    }

    fn with(options: EngineOptions) -> Self {
        Self::of(POOL, options)
    }

    fn of(len: Bytes, options: EngineOptions) -> Self {
        let waiting = options.waiting;
        let pool = FramePool::new(PoolOptions { len, huge: HugePages::No, touch: false }).expect("pool");
        let engine = IoEngine::new(&pool, options).expect("engine");
        let epoll = Epoll::new().expect("epoll");
        epoll.add(engine.event_fd(), 1, Interest::READ).expect("add");
        Self { pool, engine, epoll, waiting }
    }

    fn attach(&mut self, path: &Path, usage: Use, direct: Direct) -> MemberSlot {
        let member = MemberFile::open(path, usage, direct).expect("member");
        self.engine.attach(Arc::new(member)).expect("slot")
    }

    fn push(&mut self, member: MemberSlot, user_data: u64, verb: OperationKind<'_>) {
        self.engine.push(&mut self.pool, Operation { member, user_data, verb }).expect("push");
    }

    /// Waits until `count` commands are finished, either by epoll or in the engine.
    fn wait(&mut self, count: usize) -> Vec<Completed> {
        let mut events = Events::new();
        let mut done = Vec::new();
        while self.engine.submit().expect("submit") > 0 {
            self.engine.reap(&mut self.pool, &mut done).expect("reap");
        }
        let deadline = clock::now() + Nanos::from_secs(60);
        while done.len() < count {
            // The kernel's own work may interrupt a wait. Only a wait that ends by its timeout has missed an event.
            match self.waiting {
                WaitMode::Among => drop(self.epoll.wait(&mut events, Some(Nanos::from_secs(60))).expect("wait")),
                WaitMode::Alone => drop(self.engine.submit_and_wait(Nanos::from_secs(60)).expect("wait")),
            }
            self.engine.reap(&mut self.pool, &mut done).expect("reap");
            assert!(clock::now() < deadline, "no wake-up for {} of {count} commands", count - done.len());
        }
        done
    }

    fn one(&mut self, member: MemberSlot, verb: OperationKind<'_>) -> Completed {
        self.push(member, 77, verb);
        let mut done = self.wait(1);
        assert_eq!((done.len(), done[0].user_data), (1, 77));
        done.remove(0)
    }

    fn fill(&mut self, range: PoolRange, bytes: &[u8]) {
        self.pool.slice_mut(range).copy_from_slice(bytes);
    }
}

fn frames(start: u64, len: u64) -> PoolRange {
    PoolRange::new(PoolOffset(start), Bytes(len))
}

/// Runs a test with every engine, registered and not, on every file system, direct and cached.
fn everywhere(test: impl Fn(&mut Rig, &TempDir, Direct)) {
    for dir in [Some(TempDir::on_disk()), TempDir::in_memory()].into_iter().flatten() {
        for direct in [Direct::Try, Direct::Never] {
            for (prefer, register) in [(Prefer::Uring, true), (Prefer::Uring, false), (Prefer::Threads, false)] {
                if prefer == Prefer::Uring && !uring_here() {
                    println!("not with io_uring, which is refused here");
                    continue;
                }
                for waiting in [WaitMode::Among, WaitMode::Alone] {
                    test(&mut Rig::waiting(waiting, prefer, register), &dir, direct);
                }
            }
        }
    }
}

fn uring_here() -> bool {
    let pool = FramePool::new(PoolOptions::of(Bytes::mib(2))).expect("pool");
    IoEngine::new(&pool, EngineOptions { prefer: Prefer::Uring, register: false, ..EngineOptions::default() }).is_ok()
}

#[test]
fn only_the_requested_part_of_the_pool_is_registered_and_commands_after_it_work() {
    if !uring_here() {
        common::skipped("io_uring is refused here");
        return;
    }
    let dir = TempDir::on_disk();
    let edge = 1 << 20;
    for most in [Bytes(0), Bytes(edge), Bytes(u64::MAX)] {
        let options = EngineOptions { prefer: Prefer::Uring, register_pool_max: most, ..EngineOptions::default() };
        let mut rig = Rig::with(options);
        // If the limit of locked memory prevents the registration, a note says so.
        let expected = if rig.engine.notes().is_empty() { most.min(POOL) } else { Bytes(0) };
        assert_eq!(rig.engine.registered_bytes(), expected);
        let path = dir.file(&format!("member-{}", most.get()), 1 << 20);
        let member = rig.attach(&path, Use::Exclusive, Direct::Try);
        // Before the boundary, across it, and after it.
        for (seed, start) in [(1, 0), (2, edge - 4096), (3, edge), (4, POOL.get() - 8192)] {
            let (bytes, range) = (pattern(seed, 8192), frames(start, 8192));
            rig.fill(range, &bytes);
            let written = rig.one(member, OperationKind::Write { at: DriveLba(seed * 64), from: range, fua: false });
            assert_eq!(written.result, Ok(8192), "{most:?} at {start}");
            let at = usize::try_from(seed).expect("small") * 64 * 512;
            assert_eq!(std::fs::read(&path).expect("file")[at..][..8192], bytes, "{most:?} at {start}");
            rig.fill(range, &[0; 8192]);
            assert_eq!(rig.one(member, OperationKind::Read { at: DriveLba(seed * 64), into: range }).result, Ok(8192));
            assert_eq!(rig.pool.slice(range), bytes, "{most:?} at {start}");
        }
    }
}

#[test]
fn a_discard_may_be_longer_than_any_transfer() {
    everywhere(|rig, dir, direct| {
        let path = dir.file("member", 1 << 20);
        let len = Sectors::mib(5 << 10);
        std::fs::File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_len(len.bytes().get()))
            .expect("sparse");
        let member = rig.attach(&path, Use::Exclusive, direct);
        assert_eq!(rig.one(member, OperationKind::Discard { at: DriveLba(0), len }).result, Ok(0));
    });
}

/// Number of bytes of a pool for which the system has allocated memory, according to the kernel's page map of this
/// process.
fn resident(pool: &FramePool, len: u64) -> u64 {
    use std::os::unix::fs::FileExt;
    let start = pool.slice(frames(0, 4096)).as_ptr() as u64;
    let mut entries = vec![0; usize::try_from(len / 4096 * 8).expect("small")];
    let map = std::fs::File::open("/proc/self/pagemap").expect("Linux");
    map.read_exact_at(&mut entries, start / 4096 * 8).expect("the pages of this process");
    entries.chunks(8).filter(|entry| entry[7] & 0x80 != 0).count() as u64 * 4096
}

#[test]
fn a_pool_takes_memory_when_commands_use_it() {
    if !uring_here() {
        common::skipped("io_uring is refused here");
        return;
    }
    // The file is removed after the open member, because another test might otherwise get its inode.
    let dir = TempDir::on_disk();
    let (mib, len) = (1 << 20, Bytes::mib(96));
    let options = EngineOptions { prefer: Prefer::Uring, ..EngineOptions::default() };
    let mut rig = Rig::of(len, options);
    if !rig.engine.notes().is_empty() {
        common::skipped("the limit of locked memory refuses the pool");
        return;
    }
    assert!(resident(&rig.pool, len.get()) <= 4 * mib, "no command has come yet");
    let member = rig.attach(&dir.file("member", 1 << 20), Use::Exclusive, Direct::Try);
    let verb = OperationKind::Write { at: DriveLba(0), from: frames(40 * mib, 4096), fua: false };
    assert_eq!(rig.one(member, verb).result, Ok(4096));
    let taken = resident(&rig.pool, len.get());
    assert!(taken <= 8 * mib, "one piece more, not {taken}");
}

#[test]
fn written_data_is_in_the_file_and_is_read_back() {
    everywhere(|rig, dir, direct| {
        let path = dir.file("member", 1 << 20);
        let member = rig.attach(&path, Use::Exclusive, direct);
        let bytes = pattern(9000, 64 << 10);
        for (fua, at) in [(false, 128), (true, 1024)] {
            rig.fill(frames(4096, 64 << 10), &bytes);
            let verb = OperationKind::Write { at: DriveLba(at), from: frames(4096, 64 << 10), fua };
            assert_eq!(rig.one(member, verb).result, Ok(64 << 10));
            let mut oracle = pattern(0, 1 << 20);
            oracle[usize::try_from(at).expect("small") * 512..][..64 << 10].copy_from_slice(&bytes);
            if at == 1024 {
                oracle[128 * 512..][..64 << 10].copy_from_slice(&bytes);
            }
            assert!(std::fs::read(&path).expect("file") == oracle, "only the range written has changed");
        }
        assert_eq!(rig.one(member, OperationKind::Flush).result, Ok(0));
        let verb = OperationKind::Read { at: DriveLba(136), into: frames(1 << 20, 16 << 10) };
        assert_eq!(rig.one(member, verb).result, Ok(16 << 10));
        assert_eq!(rig.pool.slice(frames(1 << 20, 16 << 10)), &bytes[4096..20480]);
        assert_eq!(rig.pool.slice(frames((1 << 20) - 1, 1)), [0], "nothing before the range");
        assert_eq!(rig.pool.slice(frames((1 << 20) + (16 << 10), 1)), [0], "nothing after the range");
    });
}

#[test]
fn single_sectors_anywhere_in_the_pool_can_be_transferred() {
    everywhere(|rig, dir, direct| {
        let path = dir.file("member", 64 << 10);
        let member = rig.attach(&path, Use::Exclusive, direct);
        let block = rig.engine.detach(member).expect("idle").facts().logical_block.bytes().get();
        let member = rig.attach(&path, Use::Exclusive, direct);
        for nth in 0..8 {
            let into = frames(nth * block, block);
            rig.push(member, nth, OperationKind::Read { at: DriveLba((7 - nth) * block / 512), into });
        }
        assert!(rig.wait(8).iter().all(|done| done.result == Ok(u32::try_from(block).expect("small"))));
        for nth in 0..8 {
            let len = usize::try_from(block).expect("small");
            assert_eq!(rig.pool.slice(frames(nth * block, block)), pattern((7 - nth) * block / 512, len));
        }
    });
}

#[test]
fn thousands_in_flight_finish_once_each_and_the_limit_is_an_answer() {
    everywhere(|rig, dir, direct| {
        let members: Vec<_> =
            (0..4).map(|n| rig.attach(&dir.file(&format!("member{n}"), 1 << 20), Use::Exclusive, direct)).collect();
        let count = 1000;
        for nth in 0..count {
            let verb = OperationKind::Read { at: DriveLba(nth / 4 * 8), into: frames(nth * 4096, 4096) };
            rig.push(members[(nth % 4) as usize], nth, verb);
        }
        assert_eq!(rig.engine.outstanding(), 1000);
        assert_eq!(rig.engine.outstanding_on(members[3]), 250);
        let mut names: Vec<u64> = rig
            .wait(1000)
            .into_iter()
            .map(|done| {
                assert_eq!(done.result, Ok(4096));
                done.user_data
            })
            .collect();
        names.sort_unstable();
        assert!(names.into_iter().eq(0..count));
        for nth in 0..count {
            assert!(rig.pool.slice(frames(nth * 4096, 4096)) == pattern(nth / 4 * 8, 4096), "frame {nth}");
        }
        assert_eq!((rig.engine.outstanding(), rig.pool.ranges_in_flight()), (0, 0));
        for _ in 0..IN_FLIGHT_MAX {
            rig.push(members[0], 5, OperationKind::Flush);
        }
        let operation = Operation { member: members[0], user_data: 6, verb: OperationKind::Flush };
        assert_eq!(rig.engine.push(&mut rig.pool, operation), Err(PushError::Full));
        assert!(rig.wait(IN_FLIGHT_MAX).iter().all(|done| (done.user_data, done.result) == (5, Ok(0))));
    });
}

#[test]
fn full_batches_of_flushes_all_come_back() {
    everywhere(|rig, dir, direct| {
        let member = rig.attach(&dir.file("member", 4096), Use::Exclusive, direct);
        for nth in 0..600 {
            rig.push(member, nth, OperationKind::Flush);
        }
        assert!(rig.wait(600).iter().all(|done| done.result == Ok(0)));
    });
}

#[test]
fn discarded_and_zeroed_ranges_of_files_read_as_zeroes() {
    everywhere(|rig, dir, direct| {
        let path = dir.file("member", 1 << 20);
        let member = rig.attach(&path, Use::Exclusive, direct);
        let mut oracle = pattern(0, 1 << 20);
        assert_eq!(rig.one(member, OperationKind::Discard { at: DriveLba(8), len: Sectors(64) }).result, Ok(0));
        oracle[8 * 512..72 * 512].fill(0);
        assert_eq!(
            rig.one(member, OperationKind::Zero { at: DriveLba(100), len: Sectors(3), keep: false }).result,
            Ok(0)
        );
        oracle[100 * 512..103 * 512].fill(0);
        match rig.one(member, OperationKind::Zero { at: DriveLba(1000), len: Sectors(1048), keep: true }).result {
            Ok(0) => oracle[1000 * 512..].fill(0),
            other => assert_eq!(other.map_err(IoError::fault), Err(FaultKind::Unsupported), "tmpfs cannot"),
        }
        assert!(std::fs::read(&path).expect("file") == oracle, "the size and all other bytes are as before");
    });
}

#[test]
fn metadata_travels_in_buffers_of_its_own() {
    everywhere(|rig, dir, direct| {
        let path = dir.file("member", 1 << 20);
        let member = rig.attach(&path, Use::Exclusive, direct);
        let mut oracle = pattern(0, 1 << 20);
        for nth in 0..40usize {
            let bytes = pattern(5000 + nth as u64, 4096 + nth % 3 * 4096);
            let verb = OperationKind::WriteMetadata { at: DriveLba(nth as u64 * 32), bytes: &bytes, fua: nth % 2 == 0 };
            rig.push(member, 3, verb);
            oracle[nth * 16384..][..bytes.len()].copy_from_slice(&bytes);
        }
        assert!(rig.wait(40).iter().all(|done| done.result.is_ok() && done.metadata.is_none()));
        assert!(std::fs::read(&path).expect("file") == oracle);
        let done = rig.one(member, OperationKind::ReadMetadata { at: DriveLba(32), len: Bytes::kib(64) });
        assert_eq!(done.result, Ok(64 << 10));
        assert_eq!(&done.metadata.expect("bytes")[..], &oracle[16384..][..64 << 10]);
    });
}

#[test]
fn a_file_cut_short_is_an_error_and_never_zeroes() {
    everywhere(|rig, dir, direct| {
        let path = dir.file("member", 1 << 20);
        let member = rig.attach(&path, Use::Exclusive, direct);
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("file");
        file.set_len(10_000).expect("cut");
        let read = |at, len| OperationKind::Read { at: DriveLba(at), into: frames(0, len) };
        assert_eq!(rig.one(member, read(0, 8192)).result, Ok(8192), "the rest can be read");
        assert_eq!(rig.one(member, read(8, 16384)).result, Err(IoError::Truncated { done: 5632 }));
        assert_eq!(rig.one(member, read(64, 4096)).result, Err(IoError::Truncated { done: 0 }));
        let done = rig.one(member, OperationKind::ReadMetadata { at: DriveLba(16), len: Bytes(4096) });
        assert_eq!(done.result, Err(IoError::Truncated { done: 1536 }));
        assert!(done.metadata.is_none(), "no half-filled buffer");
        assert_eq!(rig.pool.ranges_in_flight(), 0, "failed commands give their frames back");
    });
}

#[test]
fn a_full_file_system_is_an_error_of_the_write() {
    let Some(dir) = TempDir::in_memory() else { return };
    let place = dir.path("small");
    std::fs::create_dir(&place).expect("folder");
    let target = place.to_str().expect("ASCII").to_string();
    if run("mount", &["-t", "tmpfs", "-o", "size=64k", "none", &target]).is_none() {
        common::skipped("mounting needs root");
        return;
    }
    let file = std::fs::File::create(place.join("member")).expect("file");
    file.set_len(1 << 20).expect("sparse");
    for prefer in [Prefer::Best, Prefer::Threads] {
        let mut rig = Rig::new(prefer, true);
        let member = rig.attach(&place.join("member"), Use::Exclusive, Direct::Never);
        let verb = OperationKind::Write { at: DriveLba(0), from: frames(0, 512 << 10), fua: false };
        assert_eq!(rig.one(member, verb).result.map_err(IoError::fault), Err(FaultKind::NoSpace));
    }
    // The unmount is lazy, because the ring's workers may hold the file for a short time.
    assert!(run("umount", &["-l", &target]).is_some());
}

#[test]
fn members_opened_to_read_refuse_writes() {
    everywhere(|rig, dir, direct| {
        let path = dir.file("member", 8192);
        let member = rig.attach(&path, Use::Examine, direct);
        let verb = OperationKind::Write { at: DriveLba(0), from: frames(0, 4096), fua: false };
        assert_eq!(rig.one(member, verb).result, Err(IoError::Os(Errno(9))), "EBADF");
        assert_eq!(std::fs::read(&path).expect("file"), pattern(0, 8192));
    });
}

#[test]
fn frames_in_flight_cannot_be_touched_until_they_are_reaped() {
    everywhere(|rig, dir, direct| {
        let member = rig.attach(&dir.file("member", 1 << 20), Use::Exclusive, direct);
        rig.push(member, 1, OperationKind::Read { at: DriveLba(0), into: frames(4096, 4096) });
        rig.push(member, 2, OperationKind::Write { at: DriveLba(8), from: frames(12288, 4096), fua: false });
        rig.push(member, 3, OperationKind::Write { at: DriveLba(16), from: frames(12288, 4096), fua: false });
        let panics = |job: &mut dyn FnMut(&mut Rig)| catch_unwind(AssertUnwindSafe(|| job(rig))).is_err();
        let mut check = panics;
        assert!(check(&mut |rig| drop(rig.pool.slice(frames(8191, 1)).to_vec())));
        assert!(check(&mut |rig| rig.pool.slice_mut(frames(4096, 1)).fill(0)));
        assert!(check(&mut |rig| rig.pool.slice_mut(frames(0, 16384)).fill(0)));
        assert!(check(&mut |rig| rig.push(
            member,
            4,
            OperationKind::Read { at: DriveLba(0), into: frames(12800, 512) }
        )));
        assert!(check(&mut |rig| rig.push(
            member,
            4,
            OperationKind::Write { at: DriveLba(0), from: frames(4096, 512), fua: true }
        )));
        assert_eq!(rig.pool.slice(frames(12288, 4096)).len(), 4096, "what the kernel reads may be read");
        assert_eq!(rig.engine.outstanding(), 3, "a refused command leaves no trace");
        assert_eq!(rig.wait(3).len(), 3);
        rig.pool.slice_mut(frames(0, 16384)).fill(0);
    });
}

#[test]
fn commands_that_are_bugs_panic_before_they_reach_the_kernel() {
    let dir = TempDir::on_disk();
    let path = dir.file("member", 8192);
    let mut rig = Rig::new(Prefer::Best, true);
    let member = rig.attach(&path, Use::Exclusive, Direct::Never);
    let write = |at, from| OperationKind::Write { at: DriveLba(at), from, fua: false };
    for verb in [
        write(9, frames(0, 4096)),
        write(u64::MAX >> 9, frames(0, 512)),
        write(0, frames(0, 0)),
        write(0, frames(0, 511)),
        write(0, frames(1, 512)),
        write(0, frames(POOL.get(), 512)),
        OperationKind::Discard { at: DriveLba(0), len: Sectors(17) },
        OperationKind::Zero { at: DriveLba(0), len: Sectors(0), keep: true },
        OperationKind::ReadMetadata { at: DriveLba(0), len: Bytes((64 << 10) + 512) },
        OperationKind::WriteMetadata { at: DriveLba(0), bytes: &[0; 100], fua: false },
    ] {
        assert!(catch_unwind(AssertUnwindSafe(|| rig.push(member, 1, verb))).is_err(), "{verb:?}");
    }
    assert_eq!((rig.engine.outstanding(), rig.pool.ranges_in_flight()), (0, 0));
    assert_eq!(std::fs::read(&path).expect("file"), pattern(0, 8192));
}

#[test]
fn members_are_let_go_only_when_idle_and_then_at_once() {
    everywhere(|rig, dir, direct| {
        let path = dir.file("member", 8192);
        let member = rig.attach(&path, Use::Exclusive, direct);
        rig.push(member, 1, OperationKind::Read { at: DriveLba(0), into: frames(0, 4096) });
        assert_eq!(rig.engine.detach(member).err(), Some(1));
        assert_eq!(rig.wait(1).len(), 1);
        drop(rig.engine.detach(member).expect("idle"));
        let again = rig.attach(&path, Use::Exclusive, direct);
        assert_eq!(again, member, "the slot is used again");
        assert_eq!(rig.one(again, OperationKind::Flush).result, Ok(0));
    });
}

#[test]
fn an_engine_dropped_idle_frees_its_members_and_one_dropped_busy_keeps_its_frames() {
    everywhere(|rig, dir, direct| {
        let path = dir.file("member", 8192);
        let (prefer, register) = match rig.engine.kind() {
            EngineKind::Uring => (Prefer::Uring, true),
            EngineKind::Threads => (Prefer::Threads, false),
        };
        for _ in 0..3 {
            let mut rig = Rig::new(prefer, register);
            let member = rig.attach(&path, Use::Exclusive, direct);
            assert_eq!(rig.one(member, OperationKind::Flush).result, Ok(0));
        }
        let Rig { mut pool, mut engine, .. } = Rig::new(prefer, register);
        let path = dir.file(&format!("kept{}", clock::now().0), 8192);
        let member = MemberFile::open(&path, Use::Exclusive, direct).expect("member");
        let member = engine.attach(Arc::new(member)).expect("slot");
        let verb = OperationKind::Read { at: DriveLba(0), into: frames(512, 512) };
        engine.push(&mut pool, Operation { member, user_data: 0, verb }).expect("push");
        engine.submit().expect("submit");
        drop(engine);
        let again = MemberFile::open(&path, Use::Exclusive, direct).map(drop);
        assert!(matches!(again, Err(MemberError::AlreadyOpen { .. })), "the member stays ours: {again:?}");
        assert!(pool.in_flight(frames(512, 512)));
        assert!(!pool.in_flight(frames(1024, 512)));
        pool.slice_mut(frames(1024, 512)).fill(1);
    });
}

#[test]
fn block_devices_do_all_of_it() {
    let dir = TempDir::on_disk();
    for (prefer, options) in [
        (Prefer::Best, [].as_slice()),
        (Prefer::Threads, [].as_slice()),
        (Prefer::Best, ["--sector-size", "4096"].as_slice()),
    ] {
        let file = dir.file("image", 4 << 20);
        let Some(device) = Loop::over(&file, options) else { return };
        let mut rig = Rig::new(prefer, true);
        let member = rig.attach(&device.0, Use::Exclusive, Direct::Try);
        rig.fill(frames(0, 65536), &pattern(7777, 65536));
        assert_eq!(
            rig.one(member, OperationKind::Write { at: DriveLba(2048), from: frames(0, 65536), fua: true }).result,
            Ok(65536)
        );
        let mut oracle = pattern(0, 4 << 20);
        oracle[1 << 20..][..65536].copy_from_slice(&pattern(7777, 65536));
        for nth in 0..20 {
            rig.push(member, nth, OperationKind::Discard { at: DriveLba(nth * 16), len: Sectors(8) });
            oracle[usize::try_from(nth).expect("small") * 8192..][..4096].fill(0);
        }
        rig.push(member, 20, OperationKind::Flush);
        let results: Vec<_> = rig.wait(21).into_iter().map(|done| done.result).collect();
        assert_eq!(results, vec![Ok(0); 21]);
        assert_eq!(
            rig.one(member, OperationKind::Zero { at: DriveLba(4096), len: Sectors(64), keep: false }).result,
            Ok(0)
        );
        assert_eq!(
            rig.one(member, OperationKind::Zero { at: DriveLba(4800), len: Sectors(64), keep: true }).result,
            Ok(0)
        );
        oracle[2 << 20..][..32768].fill(0);
        oracle[4800 * 512..][..32768].fill(0);
        assert_eq!(rig.one(member, OperationKind::Flush).result, Ok(0));
        let verb = OperationKind::Read { at: DriveLba(0), into: frames(0, 4 << 20) };
        assert_eq!(rig.one(member, verb).result, Ok(4 << 20));
        assert!(rig.pool.slice(frames(0, 4 << 20)) == oracle, "{prefer:?} {options:?}: through the device");
        drop(rig);
        drop(device);
        assert!(std::fs::read(&file).expect("image") == oracle, "{prefer:?} {options:?}: in the image");
    }
}

#[test]
fn a_hanging_member_keeps_its_frames_and_delays_no_other() {
    for prefer in [Prefer::Best, Prefer::Threads] {
        let dir = TempDir::on_disk();
        let Some(frozen) = Frozen::make(&dir) else { return };
        let mut rig = Rig::new(prefer, true);
        let hung = rig.attach(&frozen.file("hung", &pattern(0, 1 << 20)), Use::Exclusive, Direct::Try);
        let well = rig.attach(&dir.file("well", 1 << 20), Use::Exclusive, Direct::Try);
        frozen.freeze();
        // The maximum number of commands that the core sends to one drive.
        for nth in 0..128 {
            rig.push(
                hung,
                nth,
                OperationKind::Write { at: DriveLba(nth * 8), from: frames(nth * 4096, 4096), fua: true },
            );
        }
        rig.engine.submit().expect("submit");
        for nth in 0..200 {
            let from = frames((200 + nth % 4) * 4096, 4096);
            assert_eq!(rig.one(well, OperationKind::Write { at: DriveLba(nth * 8), from, fua: true }).result, Ok(4096));
            assert_eq!(rig.one(well, OperationKind::Flush).result, Ok(0));
            assert_eq!(rig.one(well, OperationKind::Discard { at: DriveLba(2000), len: Sectors(8) }).result, Ok(0));
        }
        assert_eq!(rig.engine.outstanding_on(hung), 128);
        assert_eq!(rig.engine.detach(hung).err(), Some(128));
        assert!((0..128).all(|nth| rig.pool.in_flight(frames(nth * 4096, 4096))));
        frozen.thaw();
        assert!(rig.wait(128).iter().all(|done| done.result == Ok(4096)));
        assert_eq!(rig.pool.ranges_in_flight(), 0);
        assert!(rig.engine.detach(hung).is_ok());
    }
}
