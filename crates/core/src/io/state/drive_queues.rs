//! The queues of a drive, its *channel*: the order of commands to it, with a depth limit and a time limit.
//!
//! Commands beyond the depth limit wait here, by class: metadata first, then commands that hosts wait for, then the
//! rest. Within a class, a rotating drive is served upwards by position ([`SortedQueue`]) if the set's policy says so; any
//! other drive is served in order of arrival. While hosts read from a drive, destage has few commands there, unless a
//! write waits for destage; its other commands wait here.
//!
//! At every [`AGE_TURNS`]th turn, a command that has waited for longer than the age limit goes first, whatever its
//! class and position. So no command starves. The other turns still go by position: if a queue in which all commands
//! have waited too long were served by age alone, it would become slower because it is long, and never recover. Each
//! drive has queues of its own, so a slow drive delays only commands for itself.
//!
//! If many host commands wait for a rotating drive, destage joins them: units between the head and the next command are
//! written on the way. Hosts wait for room in the cache as well, and one pass over the disk is shorter than two.
//!
//! A drive that sorts its commands prefers sequential ones, and so a rebuild over every host. While hosts use a drive,
//! it has at most one background command at once; the others wait here, where hosts go first. While a rotating drive has
//! host commands, at most [`PASSES_MAX`] background commands are issued before one of the host commands has ended. Any
//! other drive works on all its commands at once: while it has host commands, it gets only overdue background commands,
//! at most [`OVERDUE_MAX`] at once.
//!
//! A command that is not answered in time is given up: its owner gets an error, and its member fails. But the drive may
//! still execute it. So it stays in the table, quarantined, and its frames stay held, until the driver reports its end.

use alloc::vec::Vec;
use openraid_units::{DriveId, DriveLba, Instant, Nanos, SetId, Tag};

use crate::actions::{Actions, Data, DriveOp, IoClass, MetadataRange};
use crate::admin_answer::AdminError;
use crate::events::DriveInfo;
use crate::io::state::command::{ChannelCommand, Owner};
use crate::io::state::sorted_queue::{Node, SortedQueue};
use crate::limits::{Limits, MEMBERS_MAX, METADATA_BYTES_MAX};
use crate::occupancy::{Occupancy, Occupied};
use crate::planted::{Flaw, Planted};
use crate::slab::{Key, Slab, NONE};

/// A list linked through the command table.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: Self = Self { head: NONE, tail: NONE };

    #[inline]
    fn push(&mut self, commands: &mut Slab<ChannelCommand>, index: u32) {
        let command = &mut commands[index];
        command.previous = self.tail;
        command.next = NONE;
        if self.tail == NONE {
            self.head = index;
        } else {
            commands[self.tail].next = index;
        }
        self.tail = index;
    }

    fn remove(&mut self, commands: &mut Slab<ChannelCommand>, index: u32) {
        let (previous, next) = (commands[index].previous, commands[index].next);
        self.unlink(commands, previous, next);
    }

    /// Take the entry between these two out.
    #[inline]
    fn unlink(&mut self, commands: &mut Slab<ChannelCommand>, previous: u32, next: u32) {
        if previous == NONE {
            self.head = next;
        } else {
            commands[previous].next = next;
        }
        if next == NONE {
            self.tail = previous;
        } else {
            commands[next].previous = previous;
        }
    }
}

/// An attached drive.
#[derive(Debug)]
pub(crate) struct Channel {
    info: DriveInfo,
    /// The set that uses it.
    set: Option<SetId>,
    /// Number of commands that were issued and not answered, without quarantined ones.
    issued: u32,
    /// Number of commands that were given up and not answered.
    quarantined: u32,
    /// Number of commands that wait here, by queue: see [`queue_of`].
    queued: u32,
    queues: [CommandQueue; QUEUES],
    out: List,
    /// Number of issued commands of each class.
    of_class: [u32; IoClass::COUNT],
    /// Number of rebuild and scrub commands that were issued next to host commands since a host command ended.
    passes: u32,
    /// Time of the last command for a host, or for read-ahead.
    hosts_at: Option<Instant>,
    /// Are waiting commands served by position?
    sorting: bool,
    /// End of the last command that was issued.
    position: DriveLba,
    /// Number of reads that hosts wait for, here or at the drive.
    reads: u32,
    /// Hosts count as reading from it until this time, because they read a moment ago.
    read_until: Instant,
    /// Commands at the drive and commands that wait here, over time; and the number of commands that it was given.
    working: Occupancy,
    waiting: Occupancy,
    commands: u64,
    /// Does a request wait for the dirty data of its set? Then destage does not give way to reads here.
    destage_hurries: bool,
    /// Age from which a waiting background command goes first, if it is below that of all commands. On a rotating drive it
    /// is for rebuilds only.
    background_age_max: Nanos,
}

/// Work of a drive since it was attached.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DriveLoad {
    /// Number of commands that it was given.
    pub commands: u64,
    /// Commands at the drive.
    pub working: Occupied,
    /// Commands that waited for it in the controller.
    pub waiting: Occupied,
}

/// Waiting commands of one class.
#[derive(Clone, Copy, Debug)]
struct CommandQueue {
    /// In order of arrival.
    list: List,
    count: u32,
    /// By position, if the drive is served so.
    sorted: SortedQueue,
}

/// Time within which a host that read from a drive is expected to read from it again: a few random reads of a rotating
/// drive.
const READ_PAUSE: Nanos = Nanos::from_millis(50);
/// Number of queues of a drive.
const QUEUES: usize = 5;
/// The queues of hosts and of destage: see [`queue_of`].
const HOSTS: usize = 1;
const DESTAGE: usize = 2;
/// Minimum number of waiting host commands for destage to run next to them. If fewer wait, each of them counts.
const ALONG_FROM: u32 = 4;
/// One turn in this number goes to the command that has waited longest, if it has waited too long.
const AGE_TURNS: u64 = 4;
/// Maximum number of background commands at a drive that hosts use, if it does not rotate and they are overdue.
const OVERDUE_MAX: u32 = 4;
/// Maximum number of background commands that overtake the host commands at a rotating drive before one of those ends. A
/// seek there and back is two seeks, and in the time of one seek the drive reads several sequential commands.
const PASSES_MAX: u32 = 8;
/// Time after their last command for which hosts count as using a drive: usually longer than a host pauses between two
/// requests.
const HOSTS_LINGER: Nanos = Nanos::from_millis(500);

/// The first of the queues of rebuild and scrub: see [`queue_of`].
const BACKGROUND_QUEUES_FROM: usize = 3;

fn is_background(class: IoClass) -> bool {
    matches!(class, IoClass::Rebuild | IoClass::Scrub)
}

/// The queue in which a command waits; a lower one goes first. Read-ahead goes with the foreground, because hosts will
/// soon wait for it. Flushes go with the metadata, because whole sets wait for them.
fn queue_of(op: DriveOp, class: IoClass) -> usize {
    match class {
        IoClass::Metadata => 0,
        _ if op == DriveOp::Flush => 0,
        IoClass::Foreground | IoClass::ReadAhead => HOSTS,
        IoClass::Destage => DESTAGE,
        IoClass::Rebuild => BACKGROUND_QUEUES_FROM,
        IoClass::Scrub => BACKGROUND_QUEUES_FROM + 1,
    }
}

impl Channel {
    /// The properties that were given when the drive was attached.
    #[inline(always)]
    pub(crate) const fn info(&self) -> DriveInfo {
        self.info
    }

    /// Does a set use it?
    pub(crate) const fn is_claimed(&self) -> bool {
        self.set.is_some()
    }

    /// Number of commands that the drive has or that wait for it.
    pub(crate) fn pending(&self) -> u32 {
        self.issued + self.quarantined + self.queued
    }

    /// Number of commands that would come before a host's read now: commands at the drive, and waiting ones that do not
    /// give way.
    pub(crate) fn before_read(&self) -> u32 {
        self.issued + self.quarantined + self.queues[..=HOSTS].iter().map(|queue| queue.count).sum::<u32>()
    }

    /// Must destage wait, because hosts read or have just read, and it has enough commands at the drive? Then one of
    /// its commands ends soon, so the waiting ones need no wake-up.
    fn gives_way(&self, now: Instant, most: u32, hurries: bool) -> bool {
        let read = self.reads > 0 || now < self.read_until;
        read && self.of_class[IoClass::Destage as usize] >= most && !(hurries || self.destage_hurries)
    }

    /// A command comes in. Must it wait, even if the drive has room? `most` and `hurries` are as for destage.
    #[inline(always)]
    fn asked(&mut self, now: Instant, command: &ChannelCommand, most: u32, hurries: bool) -> bool {
        match command.class {
            IoClass::Metadata => false,
            IoClass::Destage => self.gives_way(now, most, hurries),
            IoClass::Foreground | IoClass::ReadAhead => {
                if command.is_awaited_read() {
                    self.reads += 1;
                    self.read_until = now + READ_PAUSE;
                }
                self.hosts_at = Some(now);
                false
            }
            IoClass::Rebuild | IoClass::Scrub => {
                command.op != DriveOp::Flush && (self.is_kept_for_hosts(now) || self.is_background_full(now))
            }
        }
    }

    /// The drive gets one more command.
    #[inline(always)]
    fn given(&mut self, now: Instant, command: &ChannelCommand) {
        self.issued += 1;
        self.of_class[command.class as usize] += 1;
        if is_background(command.class) {
            self.passes += u32::from(self.hosts() > 0);
        }
        self.working.set(now, self.issued);
        self.commands += 1;
        if command.op != DriveOp::Flush {
            self.position = command.lba + command.len;
        }
    }

    /// The drive has finished a command.
    #[inline(always)]
    fn ended(&mut self, command: &ChannelCommand) {
        self.of_class[command.class as usize] -= 1;
        if command.class == IoClass::Foreground {
            self.reads -= u32::from(command.op == DriveOp::Read);
            self.passes = 0;
        }
    }

    /// Number of commands at the drive that hosts wait for.
    fn hosts(&self) -> u32 {
        self.of_class[IoClass::Foreground as usize]
    }

    /// Serve waiting commands by position from now on? Drives that do not rotate never are.
    fn sort(&mut self, commands: &Slab<ChannelCommand>, nodes: &mut [Node], on: bool) {
        let on = on && self.info.rotational;
        if on == core::mem::replace(&mut self.sorting, on) {
            return;
        }
        for queue in &mut self.queues {
            queue.sorted = SortedQueue::EMPTY;
            let mut index = queue.list.head;
            while on && index != NONE {
                queue.sorted.insert(nodes, index, commands[index].lba);
                index = commands[index].next;
            }
        }
    }

    fn enqueue(&mut self, commands: &mut Slab<ChannelCommand>, nodes: &mut [Node], index: u32) {
        let queue = &mut self.queues[queue_of(commands[index].op, commands[index].class)];
        queue.list.push(commands, index);
        queue.count += 1;
        if self.sorting {
            queue.sorted.insert(nodes, index, commands[index].lba);
        }
        self.queued += 1;
    }

    fn dequeue(&mut self, commands: &mut Slab<ChannelCommand>, nodes: &mut [Node], index: u32) {
        let queue = &mut self.queues[queue_of(commands[index].op, commands[index].class)];
        queue.list.remove(commands, index);
        queue.count -= 1;
        if self.sorting {
            queue.sorted.remove(nodes, index);
        }
        self.queued -= 1;
    }

    /// Does it have as many background commands as it may?
    fn is_background_full(&self, now: Instant) -> bool {
        if self.hosts() > 0 && self.passes >= PASSES_MAX && self.info.rotational {
            return true;
        }
        self.background() >= if self.info.rotational { 1 } else { OVERDUE_MAX } && self.is_of_hosts(now)
    }

    /// Number of background commands at the drive.
    fn background(&self) -> u32 {
        self.of_class[IoClass::Rebuild as usize] + self.of_class[IoClass::Scrub as usize]
    }

    /// Do hosts use it?
    fn is_of_hosts(&self, now: Instant) -> bool {
        self.hosts_at.is_some_and(|at| now < at + HOSTS_LINGER)
    }

    /// The same, if it does not rotate.
    pub(crate) fn is_flash_of_hosts(&self, now: Instant) -> bool {
        !self.info.rotational && self.is_of_hosts(now)
    }

    /// Must background commands wait that are not overdue, because it would work on them and on those of hosts at once?
    fn is_kept_for_hosts(&self, now: Instant) -> bool {
        self.is_flash_of_hosts(now) && (self.hosts() > 0 || self.background() > 0)
    }

    /// The age from which a waiting command goes first.
    fn age_of(&self, class: IoClass, age_max: Nanos) -> Nanos {
        match class {
            IoClass::Rebuild => age_max.min(self.background_age_max),
            IoClass::Scrub if !self.info.rotational => age_max.min(self.background_age_max),
            _ => age_max,
        }
    }

    /// The next command.
    fn next_waiting(
        &self,
        commands: &Slab<ChannelCommand>,
        nodes: &[Node],
        (now, age_max): (Instant, Nanos),
        gives_way: bool,
    ) -> Option<u32> {
        let open = if self.is_background_full(now) { &self.queues[..BACKGROUND_QUEUES_FROM] } else { &self.queues[..] };
        let heads = open.iter().map(|queue| queue.list.head).filter(|head| *head != NONE);
        let due = |head: u32| commands[head].asked + self.age_of(commands[head].class, age_max);
        let oldest = heads.min_by_key(|head| due(*head))?;
        if due(oldest) <= now && self.commands.is_multiple_of(AGE_TURNS) {
            return Some(oldest);
        }
        let open = if self.is_kept_for_hosts(now) { &self.queues[..BACKGROUND_QUEUES_FROM] } else { open };
        let mut queues = open.iter().enumerate();
        let (place, queue) =
            queues.find(|(place, queue)| queue.list.head != NONE && !(gives_way && *place == DESTAGE))?;
        if !self.sorting {
            return Some(queue.list.head);
        }
        let next = queue.sorted.next_from(nodes, self.position)?;
        if place != HOSTS || queue.count < ALONG_FROM || gives_way {
            return Some(next);
        }
        let along = self.queues[DESTAGE].sorted.next_from(nodes, self.position);
        let way = |index: u32| commands[index].lba.get().wrapping_sub(self.position.get());
        Some(along.filter(|along| way(*along) < way(next)).unwrap_or(next))
    }
}

/// Maximum number of waiting metadata commands of one drive: a superblock, a bitmap page or the header of a partial
/// parity log, a bad-block log.
const PARKED_PER_DRIVE: u32 = 3;

#[derive(Debug)]
struct Parked {
    bytes: [u8; METADATA_BYTES_MAX],
    len: u32,
}

/// All drives and their commands.
#[derive(Debug)]
pub(crate) struct Channels {
    drives: Vec<Option<Channel>>,
    pub(in crate::io) commands: Slab<ChannelCommand>,
    /// For each place of that table, the sorted queue's node of a waiting command.
    nodes: Vec<Node>,
    /// Bytes of waiting metadata commands, which must outlive the actions in which they were made.
    parked: Slab<Parked>,
    depth_max: u32,
    /// Age from which a waiting command goes first.
    age_max: Nanos,
    timeout: Nanos,
    /// No command is overdue before this time.
    look_at: Instant,
    /// Number of commands that were issued and neither answered nor given up.
    out: u32,
    /// Maximum number of destage commands at a drive while hosts read from it.
    beside_reads_max: u32,
    /// Is memory or the journal short, so that destage does not give way?
    destage_hurries: bool,
    planted: Planted,
}

impl Channels {
    pub(crate) fn new(limits: &Limits) -> Self {
        let mut drives = Vec::new();
        drives.resize_with(limits.drives_max as usize, || None);
        Self {
            drives,
            commands: Slab::new(limits.commands_max),
            nodes: alloc::vec![Node::NEW; limits.commands_max as usize],
            parked: Slab::new(PARKED_PER_DRIVE * u32::from(limits.drives_max)),
            depth_max: limits.drive_depth_max,
            age_max: limits.queue_age_max,
            timeout: limits.command_timeout,
            look_at: Instant::NEVER,
            out: 0,
            beside_reads_max: limits.destage_beside_reads,
            destage_hurries: false,
            planted: Planted::default(),
        }
    }

    #[cfg(feature = "planted")]
    pub(crate) fn plant(&mut self, planted: Planted) {
        self.planted = planted;
    }

    /// Give drives to a set, all or none.
    ///
    /// # Errors
    /// A drive is not attached, belongs to a set, or may still execute commands of an earlier one.
    pub(crate) fn claim(&mut self, drives: &[DriveId], set: SetId) -> Result<(), AdminError> {
        for (at, drive) in drives.iter().enumerate() {
            let channel = self.get(*drive).ok_or(AdminError::NoSuchDrive(*drive))?;
            if channel.set.is_some() || drives[..at].contains(drive) {
                return Err(AdminError::DriveBusy(*drive));
            }
            // The drive may still execute a command that an earlier owner gave up.
            if self.outstanding(*drive) > 0 {
                return Err(AdminError::CommandsOutstanding(*drive));
            }
        }
        for drive in drives {
            self.get_mut(*drive).expect("just seen").set = Some(set);
        }
        Ok(())
    }

    /// The set of these drives has stopped, or could not be started.
    pub(crate) fn release(&mut self, drives: &[DriveId]) {
        for drive in drives {
            if let Some(channel) = self.get_mut(*drive) {
                channel.set = None;
            }
        }
    }

    /// Is there room for the commands of one more operation, with as many members as a set may have?
    pub(crate) fn may_issue(&self) -> bool {
        self.commands.room() >= 2 * u32::from(MEMBERS_MAX)
    }

    /// Number of commands that may be made.
    pub(crate) fn room(&self) -> u32 {
        self.commands.room()
    }

    /// Does destage give way to no reads anywhere, because memory or the journal is short?
    #[inline(always)]
    pub(crate) const fn destage_hurries(&self) -> bool {
        self.destage_hurries
    }

    /// See [`Channels::destage_hurries`].
    #[inline(always)]
    pub(crate) fn set_destage_hurries(&mut self, hurries: bool) {
        self.destage_hurries = hurries;
    }

    /// Let destage hurry only at the drives of these sets.
    pub(crate) fn set_hurries_of_sets(&mut self, hurries: impl Fn(SetId) -> bool) {
        for channel in self.drives.iter_mut().flatten() {
            channel.destage_hurries = channel.set.is_some_and(&hurries);
        }
    }

    /// Let background commands go first at this drive when they have waited for this time.
    pub(crate) fn set_background_age(&mut self, drive: DriveId, most: Nanos) {
        if let Some(channel) = self.drives[drive.index()].as_mut() {
            channel.background_age_max = most;
        }
    }

    /// A drive was detached.
    pub(crate) fn detach(&mut self, drive: DriveId) {
        self.drives[drive.index()] = None;
    }

    pub(crate) fn attach(&mut self, drive: DriveId, info: DriveInfo) -> bool {
        match self.drives.get_mut(drive.index()) {
            Some(place @ None) => {
                *place = Some(Channel {
                    info,
                    set: None,
                    issued: 0,
                    quarantined: 0,
                    queued: 0,
                    queues: [CommandQueue { list: List::EMPTY, count: 0, sorted: SortedQueue::EMPTY }; QUEUES],
                    out: List::EMPTY,
                    of_class: [0; IoClass::COUNT],
                    passes: 0,
                    hosts_at: None,
                    sorting: info.rotational,
                    position: DriveLba::ZERO,
                    reads: 0,
                    read_until: Instant::ZERO,
                    working: Occupancy::default(),
                    waiting: Occupancy::default(),
                    commands: 0,
                    destage_hurries: false,
                    background_age_max: Nanos(u64::MAX),
                });
                true
            }
            _ => false,
        }
    }

    pub(crate) fn get(&self, drive: DriveId) -> Option<&Channel> {
        self.drives.get(drive.index())?.as_ref()
    }
    pub(crate) fn get_mut(&mut self, drive: DriveId) -> Option<&mut Channel> {
        self.drives.get_mut(drive.index())?.as_mut()
    }

    /// Number of commands that the drive has not answered, including given-up ones.
    pub(crate) fn outstanding(&self, drive: DriveId) -> u32 {
        self.get(drive).map_or(0, |c| c.issued + c.quarantined)
    }

    /// Are there given-up commands that the drive has not answered since?
    pub(crate) fn is_silent(&self, drive: DriveId) -> bool {
        self.get(drive).is_some_and(|channel| channel.quarantined > 0)
    }

    /// Work of a drive until now.
    pub(crate) fn load(&self, drive: DriveId, now: Instant) -> Option<DriveLoad> {
        let channel = self.get(drive)?;
        let (working, waiting) = (channel.working.at(now), channel.waiting.at(now));
        Some(DriveLoad { commands: channel.commands, working, waiting })
    }

    /// Serve waiting commands for a drive by position?
    pub(crate) fn sort(&mut self, drive: DriveId, on: bool) {
        if let Some(channel) = self.drives[drive.index()].as_mut() {
            channel.sort(&self.commands, &mut self.nodes, on);
        }
    }

    /// Take a command: issue it now, or when the drive has room; true if it waits for that.
    pub(crate) fn push(&mut self, now: Instant, command: &ChannelCommand, actions: &mut Actions) -> bool {
        self.send(now, *command, actions).1
    }

    /// The same for a command that is made in the table. Returns its key too. Inlined, because a row has several commands
    /// that all take the same path.
    #[inline(always)]
    pub(crate) fn send(&mut self, now: Instant, command: ChannelCommand, actions: &mut Actions) -> (Key, bool) {
        let (most, hurries) = (self.beside_reads_max, self.destage_hurries);
        let channel = self.drives[command.drive.index()].as_mut().expect("commands go to attached drives");
        let gives_way = channel.asked(now, &command, most, hurries);
        if channel.issued >= self.depth_max || gives_way {
            // A copy: a value that is lent would be made in memory, also for a command that does not wait.
            let waiting = ChannelCommand { asked: now, issued: None, ..command };
            return (self.let_wait(now, &waiting, actions), true);
        }
        channel.given(now, &command);
        let previous = channel.out.tail;
        let issued = ChannelCommand { asked: now, issued: Some(now), previous, next: NONE, ..command };
        let key = self.commands.put(issued);
        actions.drive.push(command.for_driver(key));
        channel.out.tail = key.index;
        if previous == NONE {
            channel.out.head = key.index;
        } else {
            self.commands[previous].next = key.index;
        }
        self.count_issued(now, key.index);
        (key, false)
    }

    /// A command waits until its drive has room for it.
    #[inline(never)]
    fn let_wait(&mut self, now: Instant, command: &ChannelCommand, actions: &mut Actions) -> Key {
        let key = self.commands.put(*command);
        if let Data::Metadata(range) = command.data {
            self.commands[key.index].parked = self.park(range, actions);
        }
        let channel = self.drives[command.drive.index()].as_mut().expect("commands go to attached drives");
        channel.enqueue(&mut self.commands, &mut self.nodes, key.index);
        channel.waiting.set(now, channel.queued);
        key
    }

    fn park(&mut self, range: MetadataRange, actions: &mut Actions) -> u32 {
        let mut parked = Parked { bytes: [0; METADATA_BYTES_MAX], len: range.len };
        parked.bytes[..range.len as usize].copy_from_slice(actions.metadata_of(range));
        // The metadata bytes were made for this command, so nothing else refers to them.
        debug_assert_eq!(actions.metadata.len(), (range.start + range.len) as usize);
        actions.metadata.truncate(range.start as usize);
        let Ok(key) = self.parked.insert(parked) else { panic!("a drive has few metadata commands at once") };
        key.index
    }

    /// Move the bytes of a waiting command to the present actions.
    fn unpark(&mut self, index: u32, actions: &mut Actions) {
        let parked = core::mem::replace(&mut self.commands[index].parked, NONE);
        if parked == NONE {
            return;
        }
        let parked = self.parked.remove(parked);
        let start = u32::try_from(actions.metadata.len()).expect("the arena is small");
        actions.metadata.extend_from_slice(&parked.bytes[..parked.len as usize]);
        self.commands[index].data = Data::Metadata(MetadataRange { start, len: parked.len });
    }

    /// Issue a command that has waited.
    fn issue(&mut self, now: Instant, index: u32, actions: &mut Actions) {
        if self.commands[index].parked != NONE {
            self.unpark(index, actions);
        }
        let command = &mut self.commands[index];
        command.issued = Some(now);
        let channel = self.drives[command.drive.index()].as_mut().expect("commands go to attached drives");
        channel.out.push(&mut self.commands, index);
        let generation = self.commands.generation(index);
        let command = &self.commands[index];
        channel.given(now, command);
        actions.drive.push(command.for_driver(Key { index, generation }));
        self.count_issued(now, index);
    }

    /// Count a command that went to its drive.
    #[inline(always)]
    fn count_issued(&mut self, now: Instant, index: u32) {
        self.out += 1;
        if now + self.timeout < self.look_at {
            self.look_earlier(index);
        }
    }

    /// Only commands that wait for room are out, or none.
    #[inline(never)]
    fn look_earlier(&mut self, index: u32) {
        let is_late = self.look_at != Instant::NEVER && self.planted.has(Flaw::OverdueLate);
        if !is_late {
            self.look_at = self.look_at.min(self.due(index));
        }
    }

    /// A command that was answered, if its owner still waits for it.
    #[inline(always)]
    pub(crate) fn asked_by(&self, tag: Tag) -> Option<&ChannelCommand> {
        let key = Key { index: tag.index(), generation: tag.generation() };
        assert!(self.commands.holds(key), "a completion names a command that is out: {tag:?}");
        let command = &self.commands[key.index];
        assert!(command.is_issued(), "a completion names a command that was issued: {tag:?}");
        (command.owner != Owner::Quarantined).then_some(command)
    }

    /// A command whose owner waits for it was answered: it leaves the table, and the next one is issued.
    #[inline(always)]
    pub(crate) fn forget(&mut self, now: Instant, index: u32, actions: &mut Actions) {
        // Only the fields that are used are read.
        let command = self.commands.remove(index);
        let ChannelCommand { drive, previous, next, .. } = command;
        let channel = self.drives[drive.index()].as_mut().expect("commands go to attached drives");
        channel.issued -= 1;
        channel.ended(&command);
        channel.working.set(now, channel.issued);
        channel.out.unlink(&mut self.commands, previous, next);
        self.out -= 1;
        if channel.queued > 0 {
            self.issue_next(now, drive, actions);
        }
    }

    /// A command was answered: remove it from the table and issue the next one.
    pub(crate) fn answered(&mut self, now: Instant, tag: Tag, actions: &mut Actions) -> ChannelCommand {
        if let Some(command) = self.asked_by(tag) {
            let command = *command;
            self.forget(now, tag.index(), actions);
            return command;
        }
        let command = self.commands.remove(tag.index());
        let channel = self.drives[command.drive.index()].as_mut().expect("commands go to attached drives");
        channel.quarantined -= 1;
        if channel.queued > 0 {
            self.issue_next(now, command.drive, actions);
        }
        command
    }

    #[inline(never)]
    fn issue_next(&mut self, now: Instant, drive: DriveId, actions: &mut Actions) {
        loop {
            let channel = self.drives[drive.index()].as_mut().expect("commands go to attached drives");
            if channel.queued == 0 || channel.issued >= self.depth_max {
                return;
            }
            let gives_way = channel.gives_way(now, self.beside_reads_max, self.destage_hurries);
            let next = channel.next_waiting(&self.commands, &self.nodes, (now, self.age_max), gives_way);
            let Some(index) = next else { return };
            channel.dequeue(&mut self.commands, &mut self.nodes, index);
            channel.waiting.set(now, channel.queued);
            self.issue(now, index, actions);
        }
    }

    /// Take a queued command of this drive, which was never issued, out of the table, because the drive is gone.
    pub(crate) fn cancel_queued(&mut self, drive: DriveId) -> Option<ChannelCommand> {
        let channel = self.drives[drive.index()].as_mut()?;
        let index = channel.queues.iter().map(|queue| queue.list.head).find(|head| *head != NONE)?;
        channel.dequeue(&mut self.commands, &mut self.nodes, index);
        channel.reads -= u32::from(self.commands[index].is_awaited_read());
        let parked = self.commands[index].parked;
        if parked != NONE {
            self.parked.remove(parked);
        }
        Some(self.commands.remove(index))
    }
}

mod time_limit;

#[cfg(test)]
mod tests;
