//! The methods that make an array consistent after a crash: mdadm's names, and openraid's own.

use clap::ValueEnum;

use crate::failure::Failure;

/// mdadm's `--consistency-policy`, with `controller-journal` in place of md's own `journal`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ConsistencyWord {
    /// Everything is read and made equal.
    Resync,
    /// Regions that a write-intent bitmap marks are read and made equal.
    Bitmap,
    /// Partial parity is logged on the members: RAID 5 and the spans of RAID 50.
    Ppl,
    /// Acknowledged writes are repeated from the controller's journal.
    ControllerJournal,
}

impl ConsistencyWord {
    /// The word on the command line.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Resync => "resync",
            Self::Bitmap => "bitmap",
            Self::Ppl => "ppl",
            Self::ControllerJournal => "controller-journal",
        }
    }
}

/// Does a new array get a bitmap? `None`: its size decides.
///
/// # Errors
/// Two options that contradict each other.
pub fn bitmap_wanted(policy: Option<ConsistencyWord>, bitmap: Option<bool>) -> Result<Option<bool>, Failure> {
    let wanted = match policy {
        None => return Ok(bitmap),
        Some(ConsistencyWord::Bitmap) => true,
        Some(ConsistencyWord::Resync | ConsistencyWord::Ppl | ConsistencyWord::ControllerJournal) => false,
    };
    match (policy, bitmap) {
        (Some(policy), Some(bitmap)) if bitmap != wanted => Err(Failure::usage(format!(
            "--consistency-policy {} and --bitmap contradict each other; leave --bitmap out",
            policy.text()
        ))),
        _ => Ok(Some(wanted)),
    }
}
