//! Members that are files or block devices: their commands go to io_uring, and its errors become errors of the core.

use openraid_core::actions::{Data, DriveCommand, DriveOp};
use openraid_core::events::{DriveError, DriveInfo};
use openraid_sys::{Facts, FaultKind, IoError, MemberSlot, Operation, OperationKind, PoolRange};
use openraid_units::DriveLba;

/// The core's facts about a file or device.
#[must_use]
pub fn info(facts: &Facts) -> DriveInfo {
    DriveInfo {
        capacity: facts.size,
        block: facts.logical_block,
        // The engine's order of commands for a medium that is not known is that of flash.
        rotational: facts.rotational == Some(true),
        discard: facts.discard,
        discard_zeroes: facts.discard_zeroes,
        write_zeroes: facts.fast_zero,
        room_wait: facts.room_wait,
        // A flush of a file writes records of the file system too.
        flush_waits: !facts.block_device,
    }
}

/// A command for io_uring. `metadata` is the payload if it is not in frames.
#[must_use]
#[inline]
pub fn operation<'a>(command: &DriveCommand, metadata: &'a [u8], member: MemberSlot) -> Operation<'a> {
    let (at, len) = (command.lba, command.len);
    let verb = match (command.op, command.data) {
        (DriveOp::Flush, _) => OperationKind::Flush,
        (DriveOp::Discard, _) => OperationKind::Discard { at, len },
        // Zeroes keep their space: a later write must not fail for lack of space.
        (DriveOp::WriteZeroes { may_discard }, _) => OperationKind::Zero { at, len, keep: !may_discard },
        (DriveOp::Read, Data::Frames(into)) => OperationKind::Read { at, into: PoolRange::new(into, len.bytes()) },
        (DriveOp::Write { fua }, Data::Frames(from)) => {
            OperationKind::Write { at, from: PoolRange::new(from, len.bytes()), fua }
        }
        (DriveOp::Write { fua }, Data::Metadata(_)) => OperationKind::WriteMetadata { at, bytes: metadata, fua },
        _ => panic!("bug: a command without its payload: {command:?}"),
    };
    Operation { member, user_data: command.tag.0, verb }
}

/// The command of a drive, to judge the meaning of its error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedCommand {
    /// The command.
    pub op: DriveOp,
    /// Its first sector.
    pub lba: DriveLba,
}

/// An error of the kernel as an error of a drive. `is_gone` says whether the device is gone: the kernel has many
/// words for that, "no space left" among them, because a disk that was pulled has no sectors.
#[must_use]
pub fn drive_error(error: IoError, asked: FailedCommand, is_gone: bool) -> DriveError {
    let fault = if is_gone { FaultKind::Gone } else { error.fault() };
    let advice = matches!(asked.op, DriveOp::Discard | DriveOp::WriteZeroes { .. });
    match fault {
        FaultKind::Gone => DriveError::Gone,
        _ if asked.op == DriveOp::Flush => DriveError::FlushFailed,
        FaultKind::Unsupported => DriveError::Unsupported,
        // The kernel says "invalid" for ranges that the device cannot discard or zero.
        FaultKind::Protocol if advice => DriveError::Unsupported,
        FaultKind::Media => DriveError::Media { lba: asked.lba },
        FaultKind::NoSpace => DriveError::NoSpace,
        FaultKind::ReadOnly => DriveError::ReadOnly,
        // A member that became shorter is not the one that the array was made on; more than the missing sectors may be
        // wrong.
        FaultKind::Truncated | FaultKind::Busy | FaultKind::Protocol => DriveError::Protocol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraid_sys::Errno;

    #[test]
    fn errors_of_the_kernel_mean_what_the_engine_can_act_on() {
        let lba = DriveLba(7);
        let of = |number, op| drive_error(IoError::Os(Errno(number)), FailedCommand { op, lba }, false);
        const EIO: i32 = 5;
        const ENXIO: i32 = 6;
        const ENODEV: i32 = 19;
        const EINVAL: i32 = 22;
        const ENOSPC: i32 = 28;
        const EROFS: i32 = 30;
        const EOPNOTSUPP: i32 = 95;
        assert_eq!(of(EIO, DriveOp::Read), DriveError::Media { lba });
        assert_eq!(of(EIO, DriveOp::Flush), DriveError::FlushFailed);
        assert_eq!(of(ENOSPC, DriveOp::Flush), DriveError::FlushFailed);
        assert_eq!(of(ENXIO, DriveOp::Flush), DriveError::Gone);
        assert_eq!(of(ENODEV, DriveOp::Read), DriveError::Gone);
        assert_eq!(of(ENOSPC, DriveOp::Write { fua: false }), DriveError::NoSpace);
        assert_eq!(of(EROFS, DriveOp::Write { fua: true }), DriveError::ReadOnly);
        assert_eq!(of(EOPNOTSUPP, DriveOp::Discard), DriveError::Unsupported);
        assert_eq!(of(EINVAL, DriveOp::WriteZeroes { may_discard: false }), DriveError::Unsupported);
        assert_eq!(of(EINVAL, DriveOp::Read), DriveError::Protocol);
        let short =
            |is_gone| drive_error(IoError::Truncated { done: 512 }, FailedCommand { op: DriveOp::Read, lba }, is_gone);
        assert_eq!([false, true].map(short), [DriveError::Protocol, DriveError::Gone]);
        // A disk that was pulled has no sectors, and the kernel's word for a write there is "no space".
        for (number, op) in [(ENOSPC, DriveOp::Write { fua: true }), (EIO, DriveOp::Read), (EIO, DriveOp::Flush)] {
            let error = drive_error(IoError::Os(Errno(number)), FailedCommand { op, lba }, true);
            assert_eq!(error, DriveError::Gone, "{number} {op:?}");
        }
    }
}
