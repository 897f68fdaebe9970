//! Small aligned buffers for metadata: superblocks, bitmaps, logs.
//!
//! Metadata is not kept in frames. The core's encoders make its bytes, which are copied once into a buffer of this
//! kind. The buffer belongs to the engine until the kernel has returned the command.

use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Maximum size of a metadata transfer in bytes. An md superblock has at most 4 KiB, and a bitmap is written in pieces.
pub const METADATA_BYTES_MAX: usize = 64 << 10;

/// Alignment in bytes: `O_DIRECT` requires it on a device with blocks of 4 KiB, the largest size.
const ALIGNMENT: usize = 4096;

/// An owned byte string at a 4 KiB boundary, from 1 to [`METADATA_BYTES_MAX`] bytes long. Dereferences to its bytes.
pub struct AlignedBuffer {
    bytes: NonNull<u8>,
    len: u32,
    capacity: u32,
}

// SAFETY: the buffer owns its memory alone, as a Vec does.
unsafe impl Send for AlignedBuffer {}
// SAFETY: shared references only read.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// A buffer of `len` zero bytes. Panics if `len` is zero or above [`METADATA_BYTES_MAX`].
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        assert!(len > 0 && len <= METADATA_BYTES_MAX, "metadata buffer of {len} bytes: 1 to {METADATA_BYTES_MAX}");
        let capacity = len.next_multiple_of(ALIGNMENT);
        let layout = layout(capacity);
        // SAFETY: the layout is not empty (len > 0).
        let Some(bytes) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { handle_alloc_error(layout) };
        Self { bytes, len: small(len), capacity: small(capacity) }
    }

    /// A buffer with a copy of `source`. Panics on the same lengths as [`AlignedBuffer::zeroed`].
    #[must_use]
    pub fn copy_of(source: &[u8]) -> Self {
        let mut buffer = Self::zeroed(source.len());
        buffer.copy_from_slice(source);
        buffer
    }

    /// Copies `source` into this buffer and changes its length, if there is room. Otherwise returns false.
    pub(crate) fn refill(&mut self, source: &[u8]) -> bool {
        if source.is_empty() || source.len() > self.capacity as usize {
            return false;
        }
        self.len = small(source.len());
        self.copy_from_slice(source);
        true
    }

    /// The address of the bytes, for the kernel.
    pub(crate) fn address(&self) -> *mut u8 {
        self.bytes.as_ptr()
    }
}

fn small(len: usize) -> u32 {
    u32::try_from(len).expect("metadata buffers are at most METADATA_BYTES_MAX")
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, ALIGNMENT).expect("64 KiB on a 4 KiB boundary is a valid layout")
}

impl Deref for AlignedBuffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: `bytes` points to `capacity >= len` initialised bytes owned by self.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len as usize) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in deref, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.len as usize) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `zeroed` with the same layout.
        unsafe { dealloc(self.bytes.as_ptr(), layout(self.capacity as usize)) }
    }
}

impl fmt::Debug for AlignedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuffer({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_refillable_within_their_capacity() {
        let mut buffer = AlignedBuffer::zeroed(512);
        assert_eq!(buffer.address() as usize % ALIGNMENT, 0);
        assert_eq!(&buffer[..], &[0u8; 512][..]);
        assert!(buffer.refill(&[7u8; 4096]));
        assert_eq!(&buffer[..], &[7u8; 4096][..]);
        assert!(!buffer.refill(&[7u8; 4097]));
        assert_eq!(buffer.len(), 4096);
    }

    #[test]
    #[should_panic(expected = "metadata buffer of 65537 bytes")]
    fn a_buffer_above_the_limit_is_a_bug() {
        let _ = AlignedBuffer::zeroed(METADATA_BYTES_MAX + 1);
    }
}
