//! One connection of a front end: its messages, and the requests in its guest's queues.

use crate::block::{BlockCommand, DiskOutcome, RequestContent, RequestId, VhostDisk};
use crate::bytes::{le16, le32, le64};
use crate::inflight::{Inflight, InflightShape};
use crate::limits::{CONFIG_BYTES_MAX, INFLIGHT_ALIGN, INFLIGHT_MADE_MAX, QUEUES_MAX, QUEUE_ENTRIES_MAX};
use crate::memory::{check_regions, GuestGone, GuestMemory, Platform, RegionPlace};
use crate::message::{feature, protocol, request, MessageHeader, MessageRefusal, MessageReply, CONFIG_CHANGED};
use crate::queue::{QueueState, RingSurroundings, VhostQueue};
use crate::ring::RingAddresses;
use crate::violation::{MessageViolation, RingFault};

/// Bits of the number that comes with an event: the queue, and whether there is no event.
const EVENT_QUEUE: u64 = 0xff;
const NO_EVENT: u64 = 1 << 8;

/// The connection. A failed message or a lost memory ends it; its requests are forgotten then.
#[derive(Debug)]
pub struct VhostSession<P: Platform> {
    platform: P,
    disk: VhostDisk,
    features: u64,
    protocol: u64,
    memory: GuestMemory<P::Memory>,
    /// By which the front end takes messages of this side.
    channel: Option<P::File>,
    inflight: Option<Inflight<P::Memory>>,
    /// Number of in-flight regions that were made.
    inflight_made: u8,
    /// The queues that were named, by number.
    queues: Vec<VhostQueue<P::File>>,
    /// The queue at which the next look for requests begins.
    first: usize,
    /// The queue whose stop the front end waits for.
    stopping: Option<u16>,
    /// No more requests are taken.
    is_closing: bool,
    /// Number of requests under way.
    under_way: u32,
    /// The last rule that the guest broke.
    fault: Option<(u16, RingFault)>,
}

impl<P: Platform> VhostSession<P> {
    /// A front end that was just accepted.
    pub fn new(platform: P, disk: VhostDisk) -> Self {
        Self {
            platform,
            disk,
            features: 0,
            protocol: 0,
            memory: GuestMemory::default(),
            channel: None,
            inflight: None,
            inflight_made: 0,
            queues: Vec::new(),
            first: 0,
            stopping: None,
            is_closing: false,
            under_way: 0,
            fault: None,
        }
    }

    /// The surroundings of this session.
    pub fn platform(&mut self) -> &mut P {
        &mut self.platform
    }

    /// Does the front end wait for an answer that comes with the end of a request? No message is read meanwhile.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    /// A message came. Returns the answer, if there is one.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn handle(
        &mut self,
        header: MessageHeader,
        payload: &[u8],
        files: Vec<P::File>,
    ) -> Result<Option<MessageReply<P::File>>, MessageRefusal<P::File>> {
        let wants = header.wants_answer && self.protocol & protocol::ANSWERS != 0;
        let answer = |code: u64| wants.then(|| MessageReply::new(header.request, &code.to_le_bytes()));
        match self.try_handle(header.request, payload, files) {
            Ok(Answer::MessageReply(reply)) => Ok(Some(reply)),
            Ok(Answer::Later) => Ok(None),
            Ok(Answer::None) => Ok(answer(0)),
            Ok(Answer::Refused) => Ok(answer(1)),
            Err(violation) => Err(MessageRefusal { violation, reply: answer(1) }),
        }
    }

    fn try_handle(
        &mut self,
        number: u32,
        payload: &[u8],
        files: Vec<P::File>,
    ) -> Result<Answer<P::File>, MessageViolation> {
        let length = |wanted: usize| match payload.len() == wanted {
            true => Ok(()),
            false => Err(MessageViolation::Length(number, payload.len())),
        };
        let word = |value: u64| Ok(Answer::MessageReply(MessageReply::new(number, &value.to_le_bytes())));
        let has_files = matches!(
            number,
            request::SET_MEM_TABLE
                | request::SET_VRING_KICK
                | request::SET_VRING_CALL
                | request::SET_VRING_ERR
                | request::SET_BACKEND_CHANNEL
                | request::SET_INFLIGHT_FD
        );
        if !has_files && !files.is_empty() {
            return Err(MessageViolation::Files(number, files.len()));
        }
        match number {
            request::GET_FEATURES => word(self.offered()),
            request::GET_PROTOCOL_FEATURES => word(protocol::ALL),
            request::GET_QUEUE_NUM => word(u64::from(QUEUES_MAX)),
            request::SET_OWNER | request::RESET_OWNER => Ok(Answer::None),
            request::SET_FEATURES => length(8).and_then(|()| self.set_features(le64(payload, 0))),
            request::SET_PROTOCOL_FEATURES => length(8).and_then(|()| self.set_protocol(le64(payload, 0))),
            request::SET_MEM_TABLE => self.set_memory(payload, &files),
            request::SET_VRING_NUM | request::SET_VRING_BASE | request::GET_VRING_BASE | request::SET_VRING_ENABLE => {
                length(8).and_then(|()| self.set_state(number, le32(payload, 0), le32(payload, 4)))
            }
            request::SET_VRING_ADDR => length(40).and_then(|()| self.set_addresses(payload)),
            request::SET_VRING_KICK | request::SET_VRING_CALL | request::SET_VRING_ERR => {
                length(8).and_then(|()| self.set_event(number, le64(payload, 0), files))
            }
            request::SET_BACKEND_CHANNEL => length(0).and_then(|()| self.set_channel(files)),
            request::GET_CONFIG => self.config(payload),
            // Guests may write the space, but nothing in it can be changed.
            request::SET_CONFIG => Ok(Answer::Refused),
            request::GET_INFLIGHT_FD => self.make_inflight(payload),
            request::SET_INFLIGHT_FD => self.set_inflight(payload, &files),
            other => Err(MessageViolation::Unsupported(other)),
        }
    }

    fn offered(&self) -> u64 {
        self.disk.features() | feature::INDIRECT | feature::EVENTS | feature::PROTOCOL | feature::VERSION_1
    }

    fn set_features(&mut self, features: u64) -> Result<Answer<P::File>, MessageViolation> {
        let unknown = features & !self.offered();
        if unknown != 0 {
            return Err(MessageViolation::Features(unknown));
        }
        self.features = features;
        Ok(Answer::None)
    }

    fn set_protocol(&mut self, features: u64) -> Result<Answer<P::File>, MessageViolation> {
        let unknown = features & !protocol::ALL;
        if unknown != 0 {
            return Err(MessageViolation::Features(unknown));
        }
        self.protocol = features;
        Ok(Answer::None)
    }

    fn set_memory(&mut self, payload: &[u8], files: &[P::File]) -> Result<Answer<P::File>, MessageViolation> {
        const HEAD: usize = 8;
        const REGION: usize = 32;
        let wrong = MessageViolation::Length(request::SET_MEM_TABLE, payload.len());
        let count = payload.get(..4).map(|bytes| le32(bytes, 0)).ok_or(wrong.clone())?;
        if usize::try_from(count).ok() != Some(files.len()) {
            return Err(MessageViolation::Files(request::SET_MEM_TABLE, files.len()));
        }
        if payload.len() != HEAD + REGION * files.len() {
            return Err(wrong);
        }
        let places: Vec<_> = payload[HEAD..].chunks_exact(REGION).map(region_place).collect();
        check_regions(&places)?;
        let mut regions = Vec::new();
        for (place, file) in places.into_iter().zip(files) {
            let memory = self.platform.map(file, place.offset, place.len).map_err(MessageViolation::File)?;
            regions.push((place, memory));
        }
        self.memory = GuestMemory::new(regions);
        for queue in &mut self.queues {
            queue.move_to(&self.memory)?;
        }
        Ok(Answer::None)
    }

    /// The queue with this number. Queues are made when they are named first.
    fn queue(&mut self, number: u32) -> Result<&mut VhostQueue<P::File>, MessageViolation> {
        let known = u16::try_from(number).ok().filter(|number| *number < QUEUES_MAX);
        let known = known.ok_or(MessageViolation::NoQueue(number))?;
        while self.queues.len() <= usize::from(known) {
            let next = u16::try_from(self.queues.len()).expect("few queues");
            self.queues.push(VhostQueue::new(next));
        }
        Ok(&mut self.queues[usize::from(known)])
    }

    fn stopped_queue(&mut self, number: u32) -> Result<&mut VhostQueue<P::File>, MessageViolation> {
        let queue = self.queue(number)?;
        match queue.state {
            QueueState::Stopped => Ok(queue),
            _ => Err(MessageViolation::Running(queue.number)),
        }
    }

    fn set_state(&mut self, request: u32, number: u32, value: u32) -> Result<Answer<P::File>, MessageViolation> {
        match request {
            request::SET_VRING_NUM => {
                let entries = u16::try_from(value)
                    .ok()
                    .filter(|entries| entries.is_power_of_two() && *entries <= QUEUE_ENTRIES_MAX);
                self.stopped_queue(number)?.entries = entries.ok_or(MessageViolation::Entries(value))?;
            }
            request::SET_VRING_BASE => {
                // The index has 16 bits; the others say something in packed rings only.
                let base = value & u32::from(u16::MAX);
                self.stopped_queue(number)?.base = u16::try_from(base).expect("just masked");
            }
            request::SET_VRING_ENABLE => {
                self.queue(number)?.enabled = Some(value & 1 == 1);
                return self.start(number);
            }
            _ => {
                let queue = self.queue(number)?;
                queue.begin_stop();
                let number = queue.number;
                self.stopping = Some(number);
                return Ok(self.take_reply().map_or(Answer::Later, Answer::MessageReply));
            }
        }
        Ok(Answer::None)
    }

    fn set_addresses(&mut self, payload: &[u8]) -> Result<Answer<P::File>, MessageViolation> {
        let addresses =
            RingAddresses { descriptors: le64(payload, 8), used: le64(payload, 16), available: le64(payload, 24) };
        self.stopped_queue(le32(payload, 0))?.addresses = Some(addresses);
        Ok(Answer::None)
    }

    fn set_event(
        &mut self,
        request: u32,
        value: u64,
        mut files: Vec<P::File>,
    ) -> Result<Answer<P::File>, MessageViolation> {
        let wanted = usize::from(value & NO_EVENT == 0);
        if files.len() != wanted || value > EVENT_QUEUE | NO_EVENT {
            return Err(MessageViolation::Files(request, files.len()));
        }
        let (number, file) = (u32::try_from(value & EVENT_QUEUE).expect("8 bits"), files.pop());
        match request {
            request::SET_VRING_CALL => {
                // A former process may have been killed before it rang.
                file.iter().for_each(|call| self.platform.ring(call));
                self.queue(number)?.call = file;
            }
            request::SET_VRING_ERR => self.queue(number)?.error = file,
            _ => {
                let file = file.ok_or(MessageViolation::Files(request, 0))?;
                let former = self.queue(number)?.kick.take();
                former.iter().for_each(|kick| self.platform.unwatch(kick));
                self.platform.watch(&file).map_err(MessageViolation::File)?;
                self.queue(number)?.kick = Some(file);
                return self.start(number);
            }
        }
        Ok(Answer::None)
    }

    /// Start a queue if its front end has said all.
    fn start(&mut self, number: u32) -> Result<Answer<P::File>, MessageViolation> {
        let (has_events, has_enable) = (self.has(feature::EVENTS), self.has(feature::PROTOCOL));
        self.queue(number)?;
        let (platform, queue, around) = self.split(number);
        let is_ready = queue.kick.is_some() && queue.enabled.unwrap_or(!has_enable);
        if is_ready && queue.state == QueueState::Stopped {
            queue.start(&around, has_events)?;
            if let Some(call) = &queue.call {
                platform.ring(call);
            }
        }
        Ok(Answer::None)
    }

    fn has(&self, feature: u64) -> bool {
        self.features & feature != 0
    }

    /// The platform, a queue that exists, and what the queue works on.
    fn split(&mut self, number: u32) -> (&mut P, &mut VhostQueue<P::File>, RingSurroundings<'_, P::Memory>) {
        let Self { platform, disk, memory, inflight, queues, features, .. } = self;
        let around = RingSurroundings { memory, inflight: inflight.as_ref(), disk, features: *features };
        (platform, &mut queues[number as usize], around)
    }

    fn set_channel(&mut self, mut files: Vec<P::File>) -> Result<Answer<P::File>, MessageViolation> {
        let count = files.len();
        let file = files.pop().filter(|_| count == 1);
        let file = file.ok_or(MessageViolation::Files(request::SET_BACKEND_CHANNEL, count))?;
        self.platform.check_channel(&file).map_err(MessageViolation::File)?;
        self.channel = Some(file);
        Ok(Answer::None)
    }

    fn config(&mut self, payload: &[u8]) -> Result<Answer<P::File>, MessageViolation> {
        const HEAD: usize = 12;
        let wrong = MessageViolation::Length(request::GET_CONFIG, payload.len());
        let head = payload.get(..HEAD).ok_or(wrong.clone())?;
        let (at, len) = (le32(head, 0), le32(head, 4));
        let range = u64::from(at)..u64::from(at) + u64::from(len);
        if range.end > CONFIG_BYTES_MAX as u64 || len == 0 {
            return Err(MessageViolation::Config(at, len));
        }
        if payload.len() != HEAD + len as usize {
            return Err(wrong);
        }
        let mut space = [0; CONFIG_BYTES_MAX];
        let config = self.disk.config();
        space[..config.len()].copy_from_slice(&config);
        let mut answer = payload.to_vec();
        answer[HEAD..].copy_from_slice(&space[at as usize..(at + len) as usize]);
        Ok(Answer::MessageReply(MessageReply::new(request::GET_CONFIG, &answer)))
    }

    fn make_inflight(&mut self, payload: &[u8]) -> Result<Answer<P::File>, MessageViolation> {
        let shape = inflight_shape(request::GET_INFLIGHT_FD, payload)?;
        if self.inflight_made >= INFLIGHT_MADE_MAX {
            return Err(MessageViolation::InflightMade);
        }
        self.inflight_made += 1;
        let (file, memory) = self.platform.new_file(shape.bytes()).map_err(MessageViolation::File)?;
        Inflight::format(memory, shape);
        let mut answer = payload.to_vec();
        answer[..8].copy_from_slice(&shape.bytes().to_le_bytes());
        answer[8..16].copy_from_slice(&0u64.to_le_bytes());
        let reply = MessageReply::new(request::GET_INFLIGHT_FD, &answer);
        Ok(Answer::MessageReply(MessageReply { file: Some(file), ..reply }))
    }

    fn set_inflight(&mut self, payload: &[u8], files: &[P::File]) -> Result<Answer<P::File>, MessageViolation> {
        let shape = inflight_shape(request::SET_INFLIGHT_FD, payload)?;
        let [file] = files else { return Err(MessageViolation::Files(request::SET_INFLIGHT_FD, files.len())) };
        if let Some(running) = self.queues.iter().find(|queue| queue.state != QueueState::Stopped) {
            return Err(MessageViolation::Running(running.number));
        }
        let (len, offset) = (le64(payload, 0), le64(payload, 8));
        if len != shape.bytes() {
            return Err(MessageViolation::InflightSize(len, shape.bytes()));
        }
        if !offset.is_multiple_of(INFLIGHT_ALIGN) {
            return Err(MessageViolation::FileOffset(offset));
        }
        let memory = self.platform.map(file, offset, len).map_err(MessageViolation::File)?;
        self.inflight = Some(Inflight::open(memory, shape)?);
        Ok(Answer::None)
    }

    /// Whether guests may write from now on.
    pub fn set_read_only(&mut self, read_only: bool) {
        self.disk.is_read_only = read_only;
    }

    /// The array has this size now. Returns whether the front end learns it; otherwise the disk keeps its former size.
    pub fn set_size(&mut self, size: u64) -> bool {
        let knows_changes = self.protocol & protocol::CONFIG_CHANGES == protocol::CONFIG_CHANGES;
        let Some(channel) = self.channel.as_ref().filter(|_| knows_changes) else { return false };
        let is_told = self.platform.send(channel, &CONFIG_CHANGED);
        if is_told {
            self.disk.size = size;
        }
        is_told
    }

    /// Take no more requests. The next server does them.
    pub fn take_no_more(&mut self) {
        self.is_closing = true;
    }

    /// Take one step in the guest's queues. A guest can always have one more request, so the caller limits the steps.
    pub fn next_step(&mut self) -> RingStep {
        let count = if self.is_closing { 0 } else { self.queues.len() };
        for step in 0..count {
            let nth = (self.first + step) % count;
            match self.next_of(u32::try_from(nth).expect("few queues")) {
                RingStep::Idle => {}
                busy => {
                    // The others have their turn first.
                    self.first = (nth + 1) % count;
                    return busy;
                }
            }
        }
        RingStep::Idle
    }

    fn next_of(&mut self, number: u32) -> RingStep {
        let (_, queue, around) = self.split(number);
        match queue.take(&around) {
            Ok(Some((head, RequestContent::Command(kind, offset, len)))) => {
                self.under_way += 1;
                let fua = !self.has(crate::block::feature::FLUSH);
                return RingStep::Command(BlockCommand { id: request_id(number, head), kind, offset, len, fua });
            }
            Ok(Some((head, RequestContent::Answered(outcome)))) => self.put_back(number, head, outcome),
            Ok(None) if queue.arm(around.memory) => {}
            Ok(None) => return RingStep::Idle,
            Err(fault) => self.on_fault(number, fault),
        }
        RingStep::Answered
    }

    fn on_fault(&mut self, number: u32, fault: RingFault) {
        let queue = &mut self.queues[number as usize];
        if queue.state == QueueState::Running {
            queue.state = QueueState::Broken;
        }
        queue.forget_former();
        self.fault = Some((queue.number, fault));
        if let Some(error) = &queue.error {
            self.platform.ring(error);
        }
    }

    /// The last rule that the guest broke since the last call, and the queue that is stopped by it.
    pub fn take_fault(&mut self) -> Option<(u16, RingFault)> {
        self.fault.take()
    }

    /// Copy payload of a write, from byte `first` on.
    ///
    /// # Errors
    /// The memory of the request was removed.
    ///
    /// # Panics
    /// The request is not under way, or has less payload.
    pub fn copy_from_guest(&self, id: RequestId, first: u64, into: &mut [u8]) -> Result<(), GuestGone> {
        let (queue, head) = self.parts(id);
        queue.request(head).payload(&self.memory, first, into).map_err(|_| GuestGone)
    }

    /// Copy data of a read, from byte `first` on.
    ///
    /// # Errors
    /// The memory of the request was removed.
    ///
    /// # Panics
    /// The request is not under way, or wants less data.
    pub fn copy_to_guest(&self, id: RequestId, first: u64, from: &[u8]) -> Result<(), GuestGone> {
        let (queue, head) = self.parts(id);
        queue.request(head).data(&self.memory, first, from).map_err(|_| GuestGone)
    }

    fn parts(&self, id: RequestId) -> (&VhostQueue<P::File>, u16) {
        let (number, head) = queue_and_head(id);
        (&self.queues[number as usize], head)
    }

    /// A request ended.
    ///
    /// # Panics
    /// It is not under way.
    pub fn end(&mut self, id: RequestId, outcome: DiskOutcome) {
        let (number, head) = queue_and_head(id);
        self.put_back(number, head, outcome);
        self.under_way -= 1;
    }

    fn put_back(&mut self, number: u32, head: u16, outcome: DiskOutcome) {
        let (_, queue, around) = self.split(number);
        if let Err(fault) = queue.end(&around, head, outcome) {
            self.on_fault(number, fault);
        }
    }

    /// Ring the events that guests wait for after [`VhostSession::end`].
    pub fn ring_guests(&mut self) {
        for queue in &mut self.queues {
            if queue.take_event_wish(&self.memory) {
                if let Some(call) = &queue.call {
                    self.platform.ring(call);
                }
            }
        }
    }

    /// The answer that the front end waits for, when the queue's last request has ended.
    pub fn take_reply(&mut self) -> Option<MessageReply<P::File>> {
        let number = self.stopping?;
        let queue = &mut self.queues[usize::from(number)];
        if !queue.has_stopped() {
            return None;
        }
        let base = queue.finish_stop();
        let kick = queue.kick.take();
        kick.iter().for_each(|kick| self.platform.unwatch(kick));
        self.stopping = None;
        let mut answer = [0; 8];
        answer[..4].copy_from_slice(&u32::from(number).to_le_bytes());
        answer[4..].copy_from_slice(&u32::from(base).to_le_bytes());
        Some(MessageReply::new(request::GET_VRING_BASE, &answer))
    }

    /// Number of requests that the engine has.
    pub fn under_way(&self) -> u32 {
        self.under_way
    }
}

/// The result of one step in the queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingStep {
    /// A request for the engine.
    Command(BlockCommand),
    /// A request that needs no engine, or one that breaks a rule.
    Answered,
    /// There is none. The platform reports when there is one.
    Idle,
}

/// The answer to a message.
enum Answer<F> {
    /// The message has an answer.
    MessageReply(MessageReply<F>),
    /// The answer comes with [`VhostSession::take_reply`].
    Later,
    /// The message has none, unless the front end wants one.
    None,
    /// The same, but the message had no effect.
    Refused,
}

fn region_place(bytes: &[u8]) -> RegionPlace {
    RegionPlace { guest: le64(bytes, 0), len: le64(bytes, 8), user: le64(bytes, 16), offset: le64(bytes, 24) }
}

/// The shape in a message about an in-flight region. Compilers end the message with 4 bytes more than its fields have.
fn inflight_shape(request: u32, payload: &[u8]) -> Result<InflightShape, MessageViolation> {
    match payload.len() {
        20 | 24 => InflightShape { queues: le16(payload, 16), entries: le16(payload, 18) }.check(),
        other => Err(MessageViolation::Length(request, other)),
    }
}

fn request_id(number: u32, head: u16) -> RequestId {
    RequestId(u64::from(number) << 16 | u64::from(head))
}

fn queue_and_head(id: RequestId) -> (u32, u16) {
    let head = u16::try_from(id.0 & u64::from(u16::MAX)).expect("just masked");
    (u32::try_from(id.0 >> 16).expect("the number of a queue"), head)
}
