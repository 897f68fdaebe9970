//! The pool in the kernel's table of buffers. For registered memory the kernel need not look up the pages in each
//! transfer.
//!
//! Registered memory is allocated and pinned. Therefore a piece is registered at its first use, and a server whose
//! arrays are idle pins one piece. Kernels before 5.19 cannot do that; with these the whole pool is registered at the
//! start.

use std::sync::Arc;

use io_uring::Submitter;
use openraid_units::{Bytes, PoolOffset};

use crate::command::{REGISTERED_BYTES_MAX, REGISTERED_BYTES_MIN, REGISTERED_PIECES_MAX};
use crate::errno::Note;
use crate::frame_pool::Mapping;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Piece {
    /// No command has used the piece.
    Unused,
    Registered,
    /// The kernel refused the piece; its commands are not registered.
    Refused,
}

/// The pool from its start on, in pieces of one size; the last one may be shorter.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    len: usize,
    piece_len: usize,
    pieces: Vec<Piece>,
}

impl Buffers {
    /// Registers `most` bytes of the pool, at once or each piece at its first use.
    pub(crate) fn register(ring: &Submitter<'_>, mapping: &Arc<Mapping>, most: Bytes, notes: &mut Vec<Note>) -> Self {
        let len = usize::try_from(most.get()).map_or(mapping.len(), |most| most.min(mapping.len()));
        if len == 0 {
            return Self::default();
        }
        let piece_len = REGISTERED_BYTES_MIN.max(len.div_ceil(REGISTERED_PIECES_MAX).next_power_of_two());
        let count = len.div_ceil(piece_len);
        let is_sparse = |count: usize| ring.register_buffers_sparse(u32::try_from(count).expect("few pieces")).is_ok();
        let result = if piece_len <= REGISTERED_BYTES_MAX && is_sparse(count) {
            let mut lazy = Self { len, piece_len, pieces: vec![Piece::Unused; count] };
            // If the kernel accepts the first piece, it accepts the others, except for the limit of locked memory.
            lazy.put(ring, mapping, 0).map(|()| lazy)
        } else {
            Self::register_all(ring, mapping, len)
        };
        result.unwrap_or_else(|error| {
            notes.push(Note(format!(
                "{} MiB of the frame pool cannot be registered with io_uring ({error}): the limit of locked memory is \
                 too low, so I/O is a little slower; raise it with `ulimit -l` or LimitMEMLOCK=",
                len >> 20
            )));
            Self::default()
        })
    }

    fn register_all(ring: &Submitter<'_>, mapping: &Arc<Mapping>, len: usize) -> std::io::Result<Self> {
        let count = len.div_ceil(REGISTERED_BYTES_MAX);
        let all = Self { len, piece_len: REGISTERED_BYTES_MAX, pieces: vec![Piece::Registered; count] };
        let pieces: Vec<libc::iovec> = (0..count).map(|nth| all.place(mapping, nth)).collect();
        // SAFETY: as in `put`.
        unsafe { ring.register_buffers(&pieces) }.map(|()| all)
    }

    fn place(&self, mapping: &Arc<Mapping>, nth: usize) -> libc::iovec {
        let start = nth * self.piece_len;
        libc::iovec {
            iov_base: mapping.address(PoolOffset(start as u64)).cast(),
            iov_len: (self.len - start).min(self.piece_len),
        }
    }

    fn put(&mut self, ring: &Submitter<'_>, mapping: &Arc<Mapping>, nth: usize) -> std::io::Result<()> {
        let number = u32::try_from(nth).expect("few pieces");
        // SAFETY: the memory is mapped as long as the ring keeps the mapping, and it is used only by commands, whose ranges
        // are marked in the pool.
        let put = unsafe { ring.register_buffers_update(number, &[self.place(mapping, nth)], None) };
        self.pieces[nth] = if put.is_ok() { Piece::Registered } else { Piece::Refused };
        put
    }

    /// Number of bytes of the pool, from its start on, that are registered or will be at their first use.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The index of the buffer that contains the `len` bytes at `start`; none if no single buffer contains them.
    /// Metadata is outside the pool and has none.
    pub(crate) fn of(&mut self, ring: &Submitter<'_>, mapping: &Arc<Mapping>, start: usize, len: usize) -> Option<u16> {
        let end = start + len;
        if len == 0 || end > self.len {
            return None;
        }
        let (first, last) = (start / self.piece_len, (end - 1) / self.piece_len);
        if first != last {
            return None;
        }
        if self.pieces[first] == Piece::Unused {
            // A refused piece is not tried again; its commands work without registration.
            let _ = self.put(ring, mapping, first);
        }
        (self.pieces[first] == Piece::Registered).then(|| u16::try_from(first).ok()).flatten()
    }
}
