//! The commands in flight, and the objects that each needs until the kernel has returned it.

use crate::buffer::AlignedBuffer;
use crate::command::{IoError, MemberCommand, Opcode, IN_FLIGHT_MAX};
use crate::errno::Errno;
use crate::frame_pool::PoolRange;
use openraid_units::SECTOR_BYTES;

/// Memory that a command uses.
#[derive(Debug)]
pub(crate) enum Memory {
    None,
    /// Memory of the pool that the kernel writes.
    PoolWritten(PoolRange),
    /// Memory of the pool that the kernel reads.
    PoolRead(PoolRange),
    /// An owned buffer. If `deliver` is set, the caller gets it with the completion.
    Owned {
        buffer: AlignedBuffer,
        deliver: bool,
    },
}

/// One command in flight. `command` is always the original command; `done` is its number of complete bytes.
#[derive(Debug)]
pub(crate) struct CommandEntry {
    pub user_data: u64,
    pub command: MemberCommand,
    pub memory: Memory,
    pub done: u64,
}

/// The next step after an answer of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    Finished(Result<u32, IoError>),
    /// The kernel did a part; this command is for the rest.
    Again(MemberCommand),
}

impl CommandEntry {
    /// Judges one answer. A short transfer is continued until the kernel makes no more progress. Bytes that were not
    /// transferred are never reported as transferred.
    pub(crate) fn judge(&mut self, result: Result<u32, Errno>) -> Next {
        let reads = self.command.opcode == Opcode::Read;
        if !reads && !matches!(self.command.opcode, Opcode::Write { .. }) {
            return Next::Finished(result.map(|_| 0).map_err(IoError::Os));
        }
        let short = IoError::Truncated { done: small(self.done) };
        let rest = self.command.len - self.done;
        match result {
            Err(Errno(libc::EINTR)) => Next::Again(self.rest()),
            // After the end of a file that was shortened, the kernel refuses direct transfers because of their
            // alignment.
            Err(Errno(libc::EINVAL)) if reads && self.done > 0 => Next::Finished(Err(short)),
            Err(error) => Next::Finished(Err(IoError::Os(error))),
            Ok(more) => {
                let more = u64::from(more);
                assert!(more <= rest, "bug: the kernel transferred {more} bytes of {rest}");
                if more == rest {
                    self.done = self.command.len;
                    return Next::Finished(Ok(small(self.done)));
                }
                let whole = more - more % SECTOR_BYTES;
                self.done += whole;
                if whole > 0 && (whole == more || !reads) {
                    Next::Again(self.rest())
                } else if reads {
                    Next::Finished(Err(IoError::Truncated { done: small(self.done) }))
                } else {
                    Next::Finished(Err(IoError::Os(Errno(libc::ENOSPC))))
                }
            }
        }
    }

    fn rest(&self) -> MemberCommand {
        let offset = usize::try_from(self.done).expect("a transfer is at most TRANSFER_BYTES_MAX");
        MemberCommand {
            at: self.command.at + self.done,
            len: self.command.len - self.done,
            address: self.command.address.wrapping_add(offset),
            ..self.command
        }
    }
}

fn small(len: u64) -> u32 {
    u32::try_from(len).expect("a transfer is at most TRANSFER_BYTES_MAX")
}

/// A table of fixed size. The key of a removed entry is reused.
pub(crate) struct CommandTable {
    entries: Vec<Option<CommandEntry>>,
    free: Vec<u32>,
}

impl CommandTable {
    pub(crate) fn new() -> Self {
        let last = u32::try_from(IN_FLIGHT_MAX).expect("a small limit");
        Self { entries: (0..last).map(|_| None).collect(), free: (0..last).rev().collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Inserts an entry and sets the key of its command. The caller has checked that there is room.
    pub(crate) fn insert(&mut self, mut entry: CommandEntry) -> MemberCommand {
        let key = self.free.pop().expect("bug: no check for room before an insertion");
        entry.command.key = key;
        let command = entry.command;
        self.entries[key as usize] = Some(entry);
        command
    }

    pub(crate) fn get_mut(&mut self, key: u32) -> &mut CommandEntry {
        self.entries[key as usize].as_mut().expect("bug: an answer to a command that is not in flight")
    }

    pub(crate) fn remove(&mut self, key: u32) -> CommandEntry {
        let entry = self.entries[key as usize].take().expect("bug: a command finished twice");
        self.free.push(key);
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(opcode: Opcode, len: u64) -> CommandEntry {
        let command = MemberCommand { key: 0, slot: 0, opcode, at: 8192, len, address: std::ptr::null_mut() };
        CommandEntry { user_data: 1, command, memory: Memory::None, done: 0 }
    }

    fn finished(next: Next) -> Result<u32, IoError> {
        match next {
            Next::Finished(result) => result,
            Next::Again(command) => panic!("continued with {command:?}"),
        }
    }

    fn again(next: Next) -> (u64, u64, usize) {
        match next {
            Next::Again(rest) => (rest.at, rest.len, rest.address as usize),
            Next::Finished(result) => panic!("finished with {result:?}"),
        }
    }

    #[test]
    fn a_short_read_continues_where_it_stopped_and_ends_truncated_without_progress() {
        let mut read = entry(Opcode::Read, 4096);
        assert_eq!(again(read.judge(Ok(1024))), (9216, 3072, 1024));
        assert_eq!(again(read.judge(Err(Errno(libc::EINTR)))), (9216, 3072, 1024));
        assert_eq!(again(read.judge(Ok(512))), (9728, 2560, 1536));
        assert_eq!(finished(read.judge(Ok(0))), Err(IoError::Truncated { done: 1536 }));
    }

    #[test]
    fn a_read_of_half_a_sector_is_truncated_at_once() {
        assert_eq!(finished(entry(Opcode::Read, 4096).judge(Ok(700))), Err(IoError::Truncated { done: 512 }));
        assert_eq!(finished(entry(Opcode::Read, 4096).judge(Ok(0))), Err(IoError::Truncated { done: 0 }));
    }

    #[test]
    fn an_alignment_error_means_the_end_only_after_a_short_read() {
        let mut read = entry(Opcode::Read, 4096);
        assert_eq!(finished(entry(Opcode::Read, 4096).judge(Err(Errno(libc::EINVAL)))), Err(os(libc::EINVAL)));
        let _ = read.judge(Ok(512));
        assert_eq!(finished(read.judge(Err(Errno(libc::EINVAL)))), Err(IoError::Truncated { done: 512 }));
    }

    fn os(number: i32) -> IoError {
        IoError::Os(Errno(number))
    }

    #[test]
    fn a_short_write_continues_and_ends_with_no_space_without_progress() {
        let mut write = entry(Opcode::Write { fua: true }, 4096);
        assert_eq!(again(write.judge(Ok(700))), (8704, 3584, 512), "half sectors are written again");
        assert_eq!(finished(write.judge(Ok(100))), Err(os(libc::ENOSPC)));
        assert_eq!(finished(entry(Opcode::Write { fua: false }, 4096).judge(Ok(4096))), Ok(4096));
    }

    #[test]
    fn commands_without_bytes_finish_with_the_first_answer() {
        assert_eq!(finished(entry(Opcode::Flush, 0).judge(Ok(0))), Ok(0));
        assert_eq!(finished(entry(Opcode::Flush, 0).judge(Err(Errno(libc::EIO)))), Err(os(libc::EIO)));
        assert_eq!(finished(entry(Opcode::Allocate { mode: 0 }, 4096).judge(Ok(0))), Ok(0));
    }
}
