//! Requests, pieces and their queues without a world: an array that is only a size, and frames.

use alloc::vec;
use alloc::vec::Vec;
use openraid_units::{ArrayId, ArrayOffset, BlockSize, Instant, Nanos, Sectors, SetId, Token};

use super::frame_shortage::Starved;
use super::request_life::NextPiece;
use super::transfer::TransferEnd;
use super::Requests;
use crate::actions::{Actions, Direction, ReplyStatus};
use crate::array::volume::Arrays;
use crate::array::volume::{Array, Volume};
use crate::events::{BlockRequest, HostGone, RequestKind};
use crate::frames::Frames;
use crate::geometry::Divisor;
use crate::limits::Limits;
use crate::slab::NONE;
use crate::trace::Trace;

const WRITE: RequestKind = RequestKind::Write { fua: false };
const ARRAY: ArrayId = ArrayId(0);
const PATIENCE: Nanos = Nanos::from_secs(30);

struct Bench {
    requests: Requests,
    arrays: Arrays,
    host: Frames,
    actions: Actions,
}

impl Bench {
    /// An array with blocks of 512 bytes, pieces of 16 KiB, and this many bytes of frames.
    fn new(frames: u64) -> Self {
        let limits = Limits { requests_max: 4, pieces_max: 8, ..Limits::small() };
        let mut arrays = Arrays::new();
        let (volume, piece) = (Volume::Direct(SetId(0)), Divisor::new(16_384));
        arrays.put(ARRAY, Array::new(BlockSize::B512, volume, piece, Instant::ZERO));
        let (requests, actions) = (Requests::new(&limits), Actions::new(&limits));
        Self { requests, arrays, host: Frames::new(0, frames), actions }
    }

    fn request(kind: RequestKind, offset: u64, len: u64) -> BlockRequest {
        BlockRequest { token: Token(offset), array: ARRAY, kind, offset: ArrayOffset(offset), len }
    }

    /// A host's request that has begun.
    fn begin(&mut self, kind: RequestKind, offset: u64, len: u64) -> u32 {
        let index = self.requests.admit(Self::request(kind, offset, len));
        assert!(!self.requests.begin(index));
        index
    }

    /// Cut pieces until none can be cut.
    fn cut(&mut self) -> Vec<u32> {
        let mut made = Vec::new();
        loop {
            match self.requests.cut_next(&self.arrays, &mut self.host) {
                NextPiece::Made(piece) => {
                    self.requests.start_piece(piece, &self.arrays, &mut self.actions);
                    made.push(piece);
                }
                NextPiece::HasEnough => {}
                NextPiece::None | NextPiece::Starves(_) => return made,
            }
        }
    }

    /// The pieces that need operations, in their order; they leave the queue.
    fn split_all(&mut self) -> Vec<u32> {
        let mut order = Vec::new();
        while let Some(piece) = self.requests.first_to_split() {
            self.requests.end_splitting(piece);
            order.push(piece);
        }
        order
    }
}

#[test]
fn a_host_may_have_as_many_requests_as_the_limit_and_read_ahead_does_not_count() {
    let mut bench = Bench::new(1 << 20);
    let read = |at| Bench::request(RequestKind::Read, at, 512);
    let run = bench.host.take(4096).unwrap();
    bench.requests.insert_ahead(read(0), |request| super::piece::Piece::ahead(request, Sectors(0), Sectors(8), run));
    assert!(bench.requests.is_idle(), "no host waits for it");
    for number in 0..4 {
        bench.requests.submit(read(number * 512)).unwrap();
    }
    assert_eq!(bench.requests.submit(read(9)).unwrap_err().0, read(9));
    assert_eq!(bench.requests.next_submitted(), Some(read(0)));
    let index = bench.requests.admit(read(0));
    assert_eq!((bench.requests.get(index).number(), bench.requests.admitted()), (1, 1));
    assert!(bench.requests.submit(read(9)).is_err(), "it is inside, and three others are not");
    bench.requests.remove(index);
    assert!(bench.requests.submit(read(9)).is_ok());
    assert_eq!(
        bench.requests.submitted().map(|request| request.offset.get()).collect::<Vec<_>>(),
        [512, 1024, 1536, 9]
    );
}

#[test]
fn a_write_has_two_pieces_without_payload_and_the_next_one_is_cut_when_payload_arrives() {
    let mut bench = Bench::new(1 << 20);
    let write = bench.begin(WRITE, 8192, 49_152);
    // 8 KiB to the multiple of 16 KiB, then 16 KiB each.
    let pieces = bench.cut();
    let asked: Vec<_> =
        bench.actions.transfers.iter().map(|transfer| (transfer.offset, transfer.len, transfer.last)).collect();
    assert_eq!(asked, [(0, 8192, false), (8192, 16_384, false)]);
    assert!(bench.actions.transfers.iter().all(|transfer| transfer.direction == Direction::FromHost));
    let tag = bench.requests.piece_tag(pieces[0]);
    let received = TransferEnd::Received { request: write, len: 8192 };
    assert_eq!(bench.requests.transfer_ended(tag, Ok(())), received);
    assert_eq!(bench.split_all(), [pieces[0]]);
    assert_eq!(bench.cut().len(), 1);
    let gone = bench.requests.piece_tag(pieces[1]);
    assert_eq!(bench.requests.transfer_ended(gone, Err(HostGone)), TransferEnd::Over);
    assert_eq!(bench.requests.piece(pieces[1]).error(), Some(ReplyStatus::Offline));
    let free = bench.host.free_frames();
    assert_eq!(bench.requests.end_piece(pieces[1], &mut bench.host), None, "two pieces are in work");
    assert_eq!(bench.host.free_frames(), free + 4);
    assert!(bench.cut().is_empty(), "no more is cut of a request that has failed");
}

#[test]
fn pieces_of_a_read_are_sent_in_order_and_the_last_one_ends_the_request() {
    let mut bench = Bench::new(1 << 20);
    let read = bench.begin(RequestKind::Read, 0, 32_768);
    let pieces = bench.cut();
    assert_eq!((pieces.len(), bench.split_all()), (2, pieces.clone()));
    let mut trace = Trace::new(0);
    bench.requests.send_in_turn(pieces[1], &mut trace, &mut bench.actions);
    assert!(bench.actions.transfers.is_empty(), "the first one is not complete");
    bench.requests.send_in_turn(pieces[0], &mut trace, &mut bench.actions);
    let sent: Vec<_> = bench.actions.transfers.iter().map(|transfer| (transfer.offset, transfer.last)).collect();
    assert_eq!(sent, [(0, false), (16_384, true)]);
    let over = pieces.iter().map(|piece| {
        let tag = bench.requests.piece_tag(*piece);
        assert_eq!(bench.requests.transfer_ended(tag, Ok(())), TransferEnd::Over);
        bench.requests.end_piece(*piece, &mut bench.host)
    });
    assert_eq!(over.collect::<Vec<_>>(), [None, Some(read)]);
}

#[test]
fn a_request_without_frames_waits_and_fails_only_if_none_can_come_back() {
    // The first zone has two of four frames, and the whole request needs four.
    let mut bench = Bench::new(16_384);
    let hung = bench.host.take(8192).unwrap();
    let first = bench.begin(RequestKind::Read, 0, 8192);
    assert_eq!(bench.requests.cut_next(&bench.arrays, &mut bench.host), NextPiece::Starves(first));
    let now = Instant::ZERO + PATIENCE;
    assert_eq!(bench.requests.take_starved(&bench.host, now, PATIENCE), None, "an operation returns them");
    // All zones are spent on commands that were given up.
    let mut given_up = vec![hung];
    _ = bench.host.give_up(hung);
    while let Some(run) = bench.host.take(4096) {
        _ = bench.host.give_up(run);
        given_up.push(run);
    }
    given_up.iter().for_each(|run| _ = bench.host.release(*run));
    assert_eq!(bench.requests.take_starved(&bench.host, now, PATIENCE), None, "the wait begins");
    assert_eq!(bench.requests.starved_deadline(PATIENCE), Some(now + PATIENCE));
    let late = now + PATIENCE;
    assert_eq!(bench.requests.take_starved(&bench.host, late, PATIENCE), Some(Starved::Request(first)));
    assert_eq!(bench.requests.fail_waiting(first, &mut bench.host), Some(first));
    assert_eq!((bench.requests.get(first).status(), bench.requests.wants_pieces()), (ReplyStatus::IoError, false));
}

#[test]
fn pieces_in_a_chain_continue_in_its_order_and_get_its_error() {
    let mut bench = Bench::new(1 << 20);
    bench.begin(RequestKind::Read, 0, 3 * 16_384);
    let pieces = bench.cut();
    let mut first = NONE;
    for piece in &pieces {
        assert_eq!(bench.requests.first_to_split(), Some(*piece));
        first = bench.requests.wait_in_chain(*piece, first);
        bench.requests.leave_splitting();
        assert!(bench.requests.piece(*piece).is_queued());
    }
    assert!(!bench.requests.wants_ops());
    bench.requests.release_chain(first, Some(ReplyStatus::IoError));
    // The last that came is the first of the chain.
    assert_eq!(bench.split_all(), [pieces[2], pieces[1], pieces[0]]);
    assert!(pieces.iter().all(|piece| bench.requests.piece(*piece).has_failed()));
    assert!(!bench.requests.piece(pieces[0]).is_queued());
}

#[test]
fn the_oldest_write_that_has_waited_eight_turns_goes_before_the_others() {
    let mut bench = Bench::new(1 << 20);
    let at = |number: u64| number * 16_384;
    for number in 0..2 {
        bench.begin(RequestKind::Read, at(number), 16_384);
    }
    bench.begin(RequestKind::Read, at(1) + 512, 512);
    let pieces = bench.cut();
    (0..8).for_each(|_| bench.requests.count_turn(pieces[1]));
    let is_behind =
        |bench: &Bench| pieces.iter().map(|piece| bench.requests.is_behind_starved(*piece)).collect::<Vec<_>>();
    assert_eq!(is_behind(&bench), [false, false, true], "the third one has a sector in common with the second");
    (0..7).for_each(|_| bench.requests.count_turn(pieces[0]));
    assert_eq!(is_behind(&bench), [false, false, true]);
    bench.requests.count_turn(pieces[0]);
    assert_eq!(is_behind(&bench), [false; 3], "the first request is older, and has nothing in common with the others");
    bench.requests.end_turns(pieces[0]);
    assert_eq!(is_behind(&bench), [false; 3]);
}
