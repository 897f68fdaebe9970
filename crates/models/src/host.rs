//! Hosts: the cost of a request on the processor of the requesting machine.

use crate::error::ModelErrors;
use crate::profile_head::Head;
use crate::reader::{read_file, Edges, ProfileSection};
use crate::sourced::{Rate, Sourced};
use crate::unit::Dimension;
use openraid_units::{Bytes, Nanos};

/// Maximum memory for descriptions of files.
const KEPT_MAX: u64 = 1 << 40;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostProfile {
    /// Name and title.
    pub head: Head,
    /// Processor time of a read, without the time for its bytes.
    pub read: Sourced<Nanos>,
    /// Processor time of a write, without the time for its bytes.
    pub write: Sourced<Nanos>,
    /// Processor time of a request that continues the previous one.
    pub sequential: Sourced<Nanos>,
    /// Processor time for each KiB of data.
    pub per_kib: Sourced<Nanos>,
    /// Rate of its parity computation, if the host computes parity.
    pub xor_rate: Sourced<Rate>,
    /// Number of processors. One worker uses one of them at most.
    pub processors: Sourced<u32>,
    /// Memory in which it keeps NTFS's descriptions of files; `None` if the profile does not say.
    pub kept_descriptions: Option<Sourced<Bytes>>,
}

impl HostProfile {
    /// Read a host from the text of a file.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn parse(file: &str, text: &str) -> Result<Self, ModelErrors> {
        Self::parse_at(file, text, &Edges::new())
    }

    /// Read a host with some values at an end of their range.
    ///
    /// # Errors
    /// All errors of the file.
    pub fn parse_at(file: &str, text: &str, edges: &Edges) -> Result<Self, ModelErrors> {
        let (mut parsed, fields) = read_file(file, text, edges, Self::read)?;
        (parsed.head.uncertain, parsed.head.measured) = (fields.uncertain, fields.measured);
        Ok(parsed)
    }

    fn read(top: &ProfileSection<'_>) -> Self {
        let (head, _) = Head::read(top, &["host"]);
        let cost = top.section("cost");
        let time = |base: &str| cost.quantity(base, Dimension::Time, 0, 1_000_000_000).map(Nanos);
        let ntfs = top.optional_section("ntfs");
        let host = Self {
            head,
            read: time("read"),
            write: time("write"),
            sequential: time("sequential"),
            per_kib: time("per_kib"),
            xor_rate: cost.quantity("xor_rate", Dimension::Rate, 1_000_000, u64::MAX).map(Rate),
            processors: crate::drive::small(&cost.quantity("processors", Dimension::Count, 1, 1024)),
            kept_descriptions: ntfs.as_ref().map(|ntfs| ntfs.quantity("kept", Dimension::Size, 0, KEPT_MAX).map(Bytes)),
        };
        if let Some(ntfs) = ntfs {
            ntfs.finish();
        }
        cost.finish();
        host
    }
}
