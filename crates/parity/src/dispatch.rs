//! Which variant serves on this CPU.

use crate::kernel_table::VariantTable;
use crate::{reference, word};
use core::fmt;

/// All functions of this crate in one variant. Copy it freely: it is one pointer.
#[derive(Clone, Copy)]
pub struct Kernels {
    /// Always a table whose instructions this CPU has.
    pub(crate) table: &'static VariantTable,
}

/// A variant, and whether this CPU can run it; slowest first.
type Variant = (&'static VariantTable, fn() -> bool);

#[cfg(target_arch = "x86_64")]
static VARIANTS: [Variant; 5] = [
    (&reference::TABLE, || true),
    (&word::TABLE, || true),
    (&crate::avx2::TABLE, || std::arch::is_x86_feature_detected!("avx2")),
    (&crate::avx512::TABLE, has_avx512),
    (&crate::gfni::TABLE, has_gfni),
];

#[cfg(not(target_arch = "x86_64"))]
static VARIANTS: [Variant; 2] = [(&reference::TABLE, || true), (&word::TABLE, || true)];

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512bw")
}

#[cfg(target_arch = "x86_64")]
fn has_gfni() -> bool {
    use std::arch::is_x86_feature_detected;
    has_avx512()
        && is_x86_feature_detected!("gfni")
        && is_x86_feature_detected!("vpclmulqdq")
        && is_x86_feature_detected!("pclmulqdq")
}

impl Kernels {
    /// The fastest variant that this CPU can run. Call it once and keep the result.
    #[must_use]
    pub fn detect() -> Self {
        Self::all_supported().last().map_or_else(Self::reference, |(_, kernels)| kernels)
    }

    /// The plain scalar variant: an oracle for tests, far too slow for service.
    #[must_use]
    pub fn reference() -> Self {
        Self { table: &reference::TABLE }
    }

    /// All variants that this CPU can run, with their names; slowest first.
    pub fn all_supported() -> impl Iterator<Item = (&'static str, Self)> {
        VARIANTS.iter().filter(|(_, runs_here)| runs_here()).map(|(table, _)| (table.name, Self { table }))
    }

    /// The variant of that name; `None` where there is none or this CPU cannot run it.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all_supported().find(|(known, _)| *known == name).map(|(_, kernels)| kernels)
    }

    /// The variant's name: `reference`, `word`, `avx2`, `avx512` or `gfni`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.table.name
    }
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernels({})", self.name())
    }
}
