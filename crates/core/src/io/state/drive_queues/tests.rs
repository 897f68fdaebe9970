//! The order of commands, the ones that wait, and for how long.

use super::*;
use alloc::vec;
use openraid_units::{BlockSize, Nanos, Sectors, Slot};

const AGE: Nanos = Nanos::from_millis(100);

fn channels(depth: u32, rotational: bool) -> (Channels, Actions) {
    let limits = Limits { drive_depth_max: depth, queue_age_max: AGE, ..Limits::small() };
    let mut channels = Channels::new(&limits);
    let capacity = Sectors::mib(64);
    let info = DriveInfo {
        capacity,
        block: BlockSize::B512,
        rotational,
        discard: false,
        discard_zeroes: false,
        write_zeroes: false,
        room_wait: Nanos::ZERO,
        flush_waits: false,
    };
    assert!(channels.attach(DriveId(0), info) && channels.attach(DriveId(1), info));
    (channels, Actions::new(&limits))
}

fn push(channels: &mut Channels, now: Instant, class: IoClass, lba: u64, actions: &mut Actions) {
    let base = ChannelCommand::new(Owner::CleanFlush, SetId(0), 0, Slot(0), DriveId(0));
    let command = ChannelCommand { op: DriveOp::Read, lba: DriveLba(lba), len: Sectors(8), class, ..base };
    channels.push(now, &command, actions);
}

/// Answer the issued commands in order until none is left. Returns the order in which they were issued.
fn order(channels: &mut Channels, now: Instant, actions: &mut Actions) -> Vec<u64> {
    let mut seen = Vec::new();
    let mut at = 0;
    while at < actions.drive.len() {
        let command = actions.drive[at];
        seen.push(command.lba.get());
        channels.answered(now, command.tag, actions);
        at += 1;
    }
    seen
}

#[test]
fn a_drive_that_spins_is_served_upwards_and_then_from_the_lowest() {
    for (rotational, sorting, expected) in [
        (true, true, vec![500, 510, 700, 900, 10, 400]),
        (true, false, vec![500, 900, 10, 700, 510, 400]),
        (false, true, vec![500, 900, 10, 700, 510, 400]),
    ] {
        let (mut channels, mut actions) = channels(1, rotational);
        channels.sort(DriveId(0), sorting);
        for lba in [500, 900, 10, 700, 510, 400] {
            push(&mut channels, Instant::ZERO, IoClass::Foreground, lba, &mut actions);
        }
        assert_eq!(order(&mut channels, Instant::ZERO, &mut actions), expected);
        assert_eq!((channels.commands.len(), channels.get(DriveId(0)).unwrap().pending()), (0, 0));
    }
}

#[test]
fn destage_goes_along_where_many_wait() {
    for (hosts, expected) in
        [(3, vec![50, 100, 200, 300, 40, 60, 110, 250]), (4, vec![50, 60, 100, 110, 200, 250, 300, 400, 40])]
    {
        let (mut channels, mut actions) = channels(1, true);
        push(&mut channels, Instant::ZERO, IoClass::Foreground, 50, &mut actions);
        for lba in [40, 250, 60, 110] {
            push(&mut channels, Instant::ZERO, IoClass::Destage, lba, &mut actions);
        }
        (1..=hosts).for_each(|n| push(&mut channels, Instant::ZERO, IoClass::Foreground, n * 100, &mut actions));
        let mut seen = Vec::new();
        for at in 0.. {
            let Some(command) = actions.drive.get(at).copied() else { break };
            seen.push(command.lba.get());
            // Another command of the same kind replaces each one that ends, far away.
            if hosts == 4 && command.class == IoClass::Foreground && seen.len() < 7 {
                push(&mut channels, Instant::ZERO, IoClass::Foreground, 10, &mut actions);
            }
            channels.answered(Instant::ZERO, command.tag, &mut actions);
        }
        seen.retain(|lba| *lba != 10);
        assert_eq!(seen, expected, "{hosts}");
    }
}

#[test]
fn classes_go_first_and_the_setting_may_change_while_much_waits() {
    let (mut channels, mut actions) = channels(1, true);
    let classes = [IoClass::Scrub, IoClass::Rebuild, IoClass::Destage, IoClass::ReadAhead, IoClass::Metadata];
    push(&mut channels, Instant::ZERO, IoClass::Foreground, 1000, &mut actions);
    for (number, class) in (0..).zip(classes) {
        channels.sort(DriveId(0), number % 2 == 0);
        push(&mut channels, Instant::ZERO, class, number * 100, &mut actions);
        push(&mut channels, Instant::ZERO, class, number * 100 + 1, &mut actions);
    }
    let expected = [1000, 400, 401, 300, 301, 200, 201, 100, 101, 0, 1];
    assert_eq!(order(&mut channels, Instant::ZERO, &mut actions), expected);
}

#[test]
fn a_drive_that_hosts_use_gets_one_command_of_a_rebuild_at_a_time() {
    // A drive that does not rotate gets none while it has a command of a host.
    for (rotational, next_to_hosts) in [(true, 1), (false, 0)] {
        let (mut channels, mut actions) = channels(16, rotational);
        let rebuild = |channels: &mut Channels, now: Instant, lba: u64, actions: &mut Actions| {
            push(channels, now, IoClass::Rebuild, lba, actions);
        };
        // No other command is there, so all are issued at once.
        (0..8).for_each(|n| rebuild(&mut channels, Instant::ZERO, n * 8, &mut actions));
        assert_eq!(actions.drive.len(), 8);
        // A host command is issued at once; of the rebuild, only the allowed number.
        push(&mut channels, Instant::ZERO, IoClass::Foreground, 5000, &mut actions);
        (8..16).for_each(|n| rebuild(&mut channels, Instant::ZERO, n * 8, &mut actions));
        assert_eq!((actions.drive.len(), actions.drive[8].lba.get()), (9, 5000));
        for index in 0..8 {
            let tag = actions.drive[index].tag;
            channels.answered(Instant::ZERO, tag, &mut actions);
        }
        assert_eq!(actions.drive.len(), 9 + next_to_hosts, "rotational {rotational}");
        let host = actions.drive[8].tag;
        channels.answered(Instant::ZERO, host, &mut actions);
        assert_eq!(actions.drive.len(), 10, "rotational {rotational}");
        // After a pause of the hosts, the end of one command releases all others.
        let tag = actions.drive[9].tag;
        channels.answered(Instant::ZERO + HOSTS_LINGER, tag, &mut actions);
        assert_eq!(actions.drive.len(), 17);
    }
}

#[test]
fn a_rebuild_passes_a_command_of_a_host_that_a_rotating_drive_puts_off_a_few_times_only() {
    let (mut channels, mut actions) = channels(16, true);
    push(&mut channels, Instant::ZERO, IoClass::Foreground, 5000, &mut actions);
    (0..40).for_each(|n| push(&mut channels, Instant::ZERO, IoClass::Rebuild, n * 8, &mut actions));
    // The drive answers the sequential commands, and not the host's.
    let mut at = 1;
    let answer_all = |channels: &mut Channels, at: &mut usize, actions: &mut Actions| {
        while let Some(command) = actions.drive.get(*at).copied() {
            channels.answered(Instant::ZERO, command.tag, actions);
            *at += 1;
        }
        *at - 1
    };
    assert_eq!(answer_all(&mut channels, &mut at, &mut actions), 8);
    // After that, the rebuild continues.
    let host = actions.drive[0].tag;
    channels.answered(Instant::ZERO, host, &mut actions);
    assert_eq!(answer_all(&mut channels, &mut at, &mut actions), 40);
}

#[test]
fn flash_that_always_has_a_command_of_a_host_gets_background_commands_when_they_are_overdue() {
    let age = Nanos::from_millis(1);
    for class in [IoClass::Rebuild, IoClass::Scrub] {
        let (mut channels, mut actions) = channels(16, false);
        channels.set_background_age(DriveId(0), age);
        push(&mut channels, Instant::ZERO, IoClass::Foreground, 5000, &mut actions);
        (0..3).for_each(|n| push(&mut channels, Instant::ZERO, class, n * 8, &mut actions));
        // Two commands of hosts are there, and one of them ends in turn, with the background command if there is one.
        for turn in 0..24 {
            let now = Instant::ZERO + Nanos(age.get() * turn / 6);
            push(&mut channels, now, IoClass::Foreground, 6000 + turn, &mut actions);
            let ended: Vec<Tag> = actions.drive.iter().filter(|c| c.lba.get() != 6000 + turn).map(|c| c.tag).collect();
            actions.drive.retain(|command| command.lba.get() == 6000 + turn);
            let before = actions.drive.len();
            ended.iter().for_each(|tag| _ = channels.answered(now, *tag, &mut actions));
            let background = actions.drive.len() - before;
            assert!(background <= 1 && (now >= Instant::ZERO + age || background == 0), "{class:?} in turn {turn}");
        }
        assert_eq!(channels.get(DriveId(0)).unwrap().queued, 0, "{class:?}");
    }
}

#[test]
fn no_command_waits_beyond_the_age_limit_while_others_arrive() {
    for class in [IoClass::Foreground, IoClass::Scrub] {
        let (mut channels, mut actions) = channels(1, true);
        let step = Nanos::from_millis(10);
        let mut now = Instant::ZERO;
        push(&mut channels, now, IoClass::Foreground, 5000, &mut actions);
        push(&mut channels, now, class, 1, &mut actions);
        // Always one command further up, always before it.
        for turn in 0..40 {
            push(&mut channels, now, IoClass::Foreground, 6000 + turn * 16, &mut actions);
            let out = *actions.drive.last().unwrap();
            now = now + step;
            channels.answered(now, out.tag, &mut actions);
        }
        let when = actions.drive.iter().position(|command| command.lba.get() == 1).unwrap() as u64;
        let age = AGE.get() / step.get();
        assert!((age..age + AGE_TURNS).contains(&when), "{class:?} {when}");
    }
}

#[test]
fn a_drive_that_does_not_answer_delays_only_its_own_commands() {
    let (mut channels, mut actions) = channels(2, true);
    for lba in 0..50 {
        push(&mut channels, Instant::ZERO, IoClass::Foreground, lba * 8, &mut actions);
    }
    assert_eq!(actions.drive.len(), 2);
    let other = ChannelCommand::new(Owner::CleanFlush, SetId(0), 0, Slot(1), DriveId(1));
    channels.push(Instant::ZERO, &ChannelCommand { op: DriveOp::Read, len: Sectors(8), ..other }, &mut actions);
    assert_eq!(actions.drive.last().unwrap().drive, DriveId(1));
}

#[test]
fn commands_that_wait_for_a_missing_drive_are_returned_once() {
    let (mut channels, mut actions) = channels(1, true);
    for (number, class) in (0..).zip([IoClass::Foreground, IoClass::Rebuild, IoClass::Foreground]) {
        push(&mut channels, Instant::ZERO, class, number, &mut actions);
    }
    assert!(channels.cancel_queued(DriveId(0)).is_some() && channels.cancel_queued(DriveId(0)).is_some());
    assert!(channels.cancel_queued(DriveId(0)).is_none());
    assert_eq!(channels.get(DriveId(0)).unwrap().pending(), 1);
}

/// Channels with a third drive, whose storage keeps writes for a minute if it has no room.
fn with_a_thin_drive(flush_waits: bool) -> (Channels, Actions) {
    let (mut channels, actions) = channels(8, false);
    let info = DriveInfo { room_wait: Nanos::from_secs(60), flush_waits, ..channels.get(DriveId(0)).unwrap().info() };
    assert!(channels.attach(THIN, info));
    (channels, actions)
}

const PLAIN: DriveId = DriveId(1);
const THIN: DriveId = DriveId(2);
const WRITE: DriveOp = DriveOp::Write { fua: false };

fn issue(channels: &mut Channels, seconds: u64, drive: DriveId, op: DriveOp, actions: &mut Actions) {
    let base = ChannelCommand::new(Owner::CleanFlush, SetId(0), 0, Slot(0), drive);
    channels.push(at(seconds), &ChannelCommand { op, len: Sectors(8), ..base }, actions);
}

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Nanos::from_secs(seconds)
}

/// The drives whose commands are given up at this time.
fn given_up(channels: &mut Channels, seconds: u64) -> Vec<DriveId> {
    core::iter::from_fn(|| channels.give_up_overdue(at(seconds)).map(|command| command.drive())).collect()
}

#[test]
fn a_drive_that_waits_for_room_is_overdue_that_much_later() {
    let (mut channels, mut actions) = with_a_thin_drive(false);
    assert_eq!(Limits::small().command_timeout, Nanos::from_secs(30));
    for drive in [THIN, PLAIN] {
        issue(&mut channels, 0, drive, WRITE, &mut actions);
    }
    assert_eq!(channels.next_deadline(), Some(at(30)));
    assert_eq!(given_up(&mut channels, 30), [PLAIN]);
    assert_eq!(channels.next_deadline(), Some(at(90)));
    assert_eq!(given_up(&mut channels, 89), []);
    assert_eq!(given_up(&mut channels, 90), [THIN]);
}

#[test]
fn a_drive_that_waits_for_room_delays_no_other_drive() {
    let (mut channels, mut actions) = with_a_thin_drive(false);
    issue(&mut channels, 0, THIN, WRITE, &mut actions);
    assert_eq!(given_up(&mut channels, 30), []);
    issue(&mut channels, 31, PLAIN, WRITE, &mut actions);
    assert_eq!(channels.next_deadline(), Some(at(61)));
    assert_eq!(given_up(&mut channels, 60), []);
    assert_eq!(given_up(&mut channels, 61), [PLAIN]);
    assert_eq!(channels.next_deadline(), Some(at(90)));
}

#[test]
fn only_commands_that_need_room_wait_for_it() {
    let zeroes = DriveOp::WriteZeroes { may_discard: false };
    for (op, flush_waits, due) in [
        (DriveOp::Read, false, 30),
        (DriveOp::Read, true, 30),
        (DriveOp::Flush, false, 30),
        (DriveOp::Flush, true, 90),
        (DriveOp::Discard, false, 30),
        (DriveOp::Discard, true, 90),
        (zeroes, false, 90),
    ] {
        let (mut channels, mut actions) = with_a_thin_drive(flush_waits);
        issue(&mut channels, 0, THIN, WRITE, &mut actions);
        issue(&mut channels, 0, THIN, op, &mut actions);
        assert_eq!(given_up(&mut channels, due - 1), [], "{op:?}");
        assert_eq!(given_up(&mut channels, due).len(), if due == 30 { 1 } else { 2 }, "{op:?}");
        assert_eq!(channels.next_deadline(), (due == 30).then_some(at(90)), "{op:?}");
    }
}

#[test]
fn commands_of_a_rebuild_have_an_age_limit_of_their_own() {
    let rebuild_age = Nanos::from_millis(10);
    for (age, expected) in [(Some(rebuild_age), [1, 2, 3, 4, 900]), (None, [1, 2, 3, 4, 5])] {
        let (mut channels, mut actions) = channels(1, false);
        if let Some(age) = age {
            channels.set_background_age(DriveId(0), age);
        }
        push(&mut channels, Instant::ZERO, IoClass::Foreground, 1, &mut actions);
        push(&mut channels, Instant::ZERO, IoClass::Rebuild, 900, &mut actions);
        (2..9).for_each(|lba| push(&mut channels, Instant::ZERO, IoClass::Foreground, lba, &mut actions));
        let seen = order(&mut channels, Instant::ZERO + rebuild_age, &mut actions);
        assert_eq!(seen[..5], expected, "{age:?}");
    }
}
