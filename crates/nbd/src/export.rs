//! The description of an export, which a server sends before the export is used.

use crate::flags::ExportFlags;
use crate::limits::{PAYLOAD_DEFAULT_MAX, PAYLOAD_HARD_MAX, STRING_MAX};
use core::fmt;
use openraid_units::Bytes;

/// Sizes in bytes that a client should respect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockSizes {
    minimum: u32,
    preferred: u32,
    maximum: u32,
    /// Unit that requests must respect; see [`BlockSizes::any_byte`].
    unit: u32,
}

/// The sizes are not allowed by the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockSizesError {
    /// The minimum is not a power of two from 1 to 65536.
    Minimum(u32),
    /// The preferred size is not a power of two, is below 512, or is below the minimum.
    Preferred(u32),
    /// The largest payload is below the preferred size.
    Maximum(u32),
}

impl BlockSizes {
    /// The sizes that clients assume if the server sends none: single bytes, 4 KiB preferred, 32 MiB at most.
    pub const DEFAULT: Self = Self { minimum: 1, preferred: 4096, maximum: PAYLOAD_DEFAULT_MAX, unit: 1 };

    /// Sizes in bytes: the minimum unit of offset and length, the efficient unit, and the maximum payload of a request.
    ///
    /// # Errors
    /// Sizes that break the protocol's rules; see [`BlockSizesError`].
    pub const fn new(minimum: u32, preferred: u32, maximum: u32) -> Result<Self, BlockSizesError> {
        if !minimum.is_power_of_two() || minimum > 1 << 16 {
            return Err(BlockSizesError::Minimum(minimum));
        }
        if !preferred.is_power_of_two() || preferred < 512 || preferred < minimum {
            return Err(BlockSizesError::Preferred(preferred));
        }
        if maximum < preferred {
            return Err(BlockSizesError::Maximum(maximum));
        }
        Ok(Self { minimum, preferred, maximum, unit: minimum })
    }
    /// Clients get the same sizes, but requests with any offset and length are accepted. A server that can do so also
    /// serves clients that never ask for the sizes.
    #[must_use]
    pub const fn any_byte(self) -> Self {
        Self { unit: 1, ..self }
    }
    /// Unit that offsets and lengths of requests must respect.
    #[must_use]
    pub const fn unit(self) -> u32 {
        self.unit
    }
    /// Unit of offsets and lengths: a power of two from 1 to 65536.
    #[must_use]
    pub const fn minimum(self) -> u32 {
        self.minimum
    }
    /// Size and alignment from which requests are efficient: a power of two.
    #[must_use]
    pub const fn preferred(self) -> u32 {
        self.preferred
    }
    /// Maximum payload of one request. `u32::MAX` from a server means "no limit".
    #[must_use]
    pub const fn maximum(self) -> u32 {
        self.maximum
    }
}

impl fmt::Display for BlockSizesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minimum(n) => write!(f, "minimum block size {n} must be a power of two from 1 to 65536"),
            Self::Preferred(n) => {
                write!(f, "preferred block size {n} must be a power of two, at least 512 and at least the minimum")
            }
            Self::Maximum(n) => write!(f, "largest payload {n} must be at least the preferred block size"),
        }
    }
}

impl std::error::Error for BlockSizesError {}

/// A metadata context: a property of ranges that `BLOCK_STATUS` reports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MetaContext {
    /// `base:allocation`: holes and zeroes, the protocol's own context.
    Allocation,
    /// `openraid:degraded`: the ranges that lack full redundancy.
    Degraded,
}

impl MetaContext {
    /// All contexts.
    pub const ALL: [Self; 2] = [Self::Allocation, Self::Degraded];

    /// The name by which a client requests the context.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocation => "base:allocation",
            Self::Degraded => "openraid:degraded",
        }
    }
    /// The number in block status chunks. It is the same on every connection.
    #[must_use]
    pub const fn id(self) -> u32 {
        match self {
            Self::Allocation => 1,
            Self::Degraded => 2,
        }
    }
    const fn bit(self) -> u8 {
        match self {
            Self::Allocation => 1,
            Self::Degraded => 2,
        }
    }
}

/// A set of metadata contexts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ContextSet(u8);

impl ContextSet {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// All contexts.
    pub const ALL: Self = Self::NONE.with(MetaContext::Allocation).with(MetaContext::Degraded);

    /// This set with `context` added.
    #[must_use]
    pub const fn with(self, context: MetaContext) -> Self {
        Self(self.0 | context.bit())
    }
    /// Is `context` in the set?
    #[must_use]
    pub const fn contains(self, context: MetaContext) -> bool {
        self.0 & context.bit() != 0
    }
    /// Is the set empty?
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// The members, in the order of [`MetaContext::ALL`].
    pub fn iter(self) -> impl Iterator<Item = MetaContext> {
        MetaContext::ALL.into_iter().filter(move |context| self.contains(*context))
    }
}

/// An export as the server offers it to clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExportInfo {
    /// The name by which clients request the export. An empty name is allowed and makes it the default export.
    pub name: String,
    /// A line for readers; may be empty.
    pub description: String,
    /// Size of the export.
    pub size: Bytes,
    /// Abilities of the export. Before they are sent, `HAS_FLAGS` is added, and flags that require an absent flag are
    /// removed.
    pub flags: ExportFlags,
    /// Sizes that clients should respect. The server checks requests against them.
    pub blocks: BlockSizes,
    /// Metadata contexts that clients may request.
    pub contexts: ContextSet,
    /// Why every client is refused. Such an export is not listed, and a client that asks for it by name gets this text.
    pub refused: Option<String>,
}

/// The reason why an export cannot be offered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExportError {
    /// The name is longer than the protocol allows; its length in bytes.
    NameTooLong(usize),
    /// The name contains a NUL byte, which no client can send.
    NameHasNul,
    /// The description is longer than the protocol allows; its length in bytes.
    DescriptionTooLong(usize),
    /// The size exceeds signed 64-bit offsets, which clients use.
    TooLarge(Bytes),
    /// The maximum payload exceeds the limit of this server.
    PayloadTooLarge(u32),
}

impl ExportInfo {
    /// Checks all rules of the protocol for an export. A [`server::Handshake`](crate::server::Handshake) panics on an
    /// export that breaks one.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn check(&self) -> Result<(), ExportError> {
        if self.name.len() > STRING_MAX {
            return Err(ExportError::NameTooLong(self.name.len()));
        }
        if self.name.contains('\0') {
            return Err(ExportError::NameHasNul);
        }
        if self.description.len() > STRING_MAX {
            return Err(ExportError::DescriptionTooLong(self.description.len()));
        }
        if i64::try_from(self.size.get()).is_err() {
            return Err(ExportError::TooLarge(self.size));
        }
        if self.blocks.maximum > PAYLOAD_HARD_MAX {
            return Err(ExportError::PayloadTooLarge(self.blocks.maximum));
        }
        Ok(())
    }
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTooLong(n) => write!(f, "the export name has {n} bytes, at most {STRING_MAX} are allowed"),
            Self::NameHasNul => f.write_str("the export name contains a NUL byte; choose a name without it"),
            Self::DescriptionTooLong(n) => {
                write!(f, "the export description has {n} bytes, at most {STRING_MAX} are allowed")
            }
            Self::TooLarge(size) => write!(f, "an export of {size} is larger than clients can address (2^63 - 1)"),
            Self::PayloadTooLarge(n) => {
                write!(f, "a largest payload of {n} bytes is above the server's limit of {PAYLOAD_HARD_MAX}")
            }
        }
    }
}

impl std::error::Error for ExportError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_follow_the_rules_of_the_protocol() {
        assert!(BlockSizes::new(1, 512, 512).is_ok());
        assert!(BlockSizes::new(65536, 65536, u32::MAX).is_ok());
        assert_eq!(BlockSizes::new(0, 512, 512), Err(BlockSizesError::Minimum(0)));
        assert_eq!(BlockSizes::new(3, 512, 512), Err(BlockSizesError::Minimum(3)));
        assert_eq!(BlockSizes::new(1 << 17, 1 << 17, 1 << 20), Err(BlockSizesError::Minimum(1 << 17)));
        assert_eq!(BlockSizes::new(1, 256, 512), Err(BlockSizesError::Preferred(256)));
        assert_eq!(BlockSizes::new(4096, 2048, 4096), Err(BlockSizesError::Preferred(2048)));
        assert_eq!(BlockSizes::new(1, 4096, 4095), Err(BlockSizesError::Maximum(4095)));
    }

    #[test]
    fn exports_that_clients_could_not_use_are_refused() {
        let good = ExportInfo {
            name: "a".repeat(STRING_MAX),
            description: String::new(),
            size: Bytes(i64::MAX.unsigned_abs()),
            flags: ExportFlags::NONE,
            blocks: BlockSizes::DEFAULT,
            contexts: ContextSet::ALL,
            refused: None,
        };
        assert_eq!(good.check(), Ok(()));
        let bad = ExportInfo { name: "a".repeat(STRING_MAX + 1), ..good.clone() };
        assert_eq!(bad.check(), Err(ExportError::NameTooLong(4097)));
        let bad = ExportInfo { name: "a\0".into(), ..good.clone() };
        assert_eq!(bad.check(), Err(ExportError::NameHasNul));
        let bad = ExportInfo { size: Bytes(1 << 63), ..good.clone() };
        assert_eq!(bad.check(), Err(ExportError::TooLarge(Bytes(1 << 63))));
        let bad = ExportInfo { blocks: BlockSizes::new(1, 512, u32::MAX).unwrap(), ..good };
        assert_eq!(bad.check(), Err(ExportError::PayloadTooLarge(u32::MAX)));
    }

    #[test]
    fn contexts_have_distinct_ids_and_the_registered_name_for_allocation() {
        assert_eq!(MetaContext::Allocation.name(), "base:allocation");
        assert_ne!(MetaContext::Allocation.id(), MetaContext::Degraded.id());
        assert_eq!(ContextSet::ALL.iter().collect::<Vec<_>>(), MetaContext::ALL);
        assert!(ContextSet::NONE.is_empty() && !ContextSet::ALL.is_empty());
    }
}
