//! Small aligned buffers for metadata: superblocks, bitmaps, logs.
//!
//! Metadata does not live in frames: its bytes are made by the core's encoders, copied once into a buffer of this
//! kind, and the buffer belongs to the engine until the kernel has given the command back.

use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// The largest metadata transfer, in bytes. An md superblock is 4 KiB at most, a bitmap is written by pieces.
pub const METADATA_BYTES_MAX: usize = 64 << 10;

/// Alignment in bytes: what `O_DIRECT` asks for on every device with blocks up to 4 KiB.
const ALIGNMENT: usize = 4096;

/// An owned run of bytes on a 4 KiB boundary, 1 to [`METADATA_BYTES_MAX`] long. Dereferences to its bytes.
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

    /// Take `source` into this buffer if there is room for it, changing the length; else say no.
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
