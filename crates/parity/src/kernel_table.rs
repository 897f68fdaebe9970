//! One variant of all kernels: a table of functions, and the arguments they take.

/// The data blocks of one row by index; `None` stands for a block of zeroes.
pub(crate) type Sources<'a> = &'a [Option<&'a [u8]>];

/// One data block that changes: its index in the row, its old bytes and its new bytes.
#[derive(Clone, Copy, Debug)]
pub struct ParityChange<'a> {
    /// Exponent of the block's coefficient in Q, 0 to 254.
    pub index: u8,
    /// Data that parity covers now.
    pub old: &'a [u8],
    /// Data that parity will cover; as long as `old`.
    pub new: &'a [u8],
}

type Update = unsafe fn(p: Option<&mut [u8]>, q: Option<&mut [u8]>, changes: &[ParityChange<'_>]);
type SolveWithPq = unsafe fn(lost: [&mut [u8]; 2], data: Sources<'_>, p: &[u8], q: &[u8], factors: [u8; 2]);

/// The functions of one variant.
///
/// Safety of all `unsafe` ones: the CPU has the variant's features, and all slices of one call have the
/// same length.
pub(crate) struct VariantTable {
    pub(crate) name: &'static str,
    /// `destination` = XOR of the sources and, with `keep`, of its old content.
    pub(crate) xor: unsafe fn(destination: &mut [u8], sources: &[&[u8]], keep: bool),
    pub(crate) pq: unsafe fn(p: &mut [u8], q: &mut [u8], data: Sources<'_>),
    pub(crate) q: unsafe fn(q: &mut [u8], data: Sources<'_>),
    /// Bring the parities at hand up to date with the changes.
    pub(crate) update: Update,
    /// `lost` = `factor` * (`q` ^ Q of the others).
    pub(crate) solve_with_q: unsafe fn(lost: &mut [u8], data: Sources<'_>, q: &[u8], factor: u8),
    /// With s = `p` ^ P of the others and t = `q` ^ Q of the others: `lost[0]` = `factors[0]` * s ^
    /// `factors[1]` * t, `lost[1]` = s ^ `lost[0]`.
    pub(crate) solve_with_pq: SolveWithPq,
    pub(crate) p_agrees: unsafe fn(p: &[u8], data: &[&[u8]]) -> bool,
    pub(crate) pq_agrees: unsafe fn(p: &[u8], q: &[u8], data: Sources<'_>) -> bool,
    pub(crate) is_zero: unsafe fn(bytes: &[u8]) -> bool,
    pub(crate) equal: unsafe fn(a: &[u8], b: &[u8]) -> bool,
    pub(crate) crc32c: unsafe fn(register: u32, bytes: &[u8]) -> u32,
}
