//! Intel's ISA-L as an independent implementation, loaded at run time: nothing here needs it to build.

use core::ffi::{c_int, c_uint, c_void, CStr};

/// Its functions take the number of all blocks, parity included and last, and their common length.
pub type Generate = unsafe extern "C" fn(c_int, c_int, *mut *mut c_void) -> c_int;

/// Its CRC-32C takes and gives the plain register.
pub type Checksum = unsafe extern "C" fn(*const u8, c_int, c_uint) -> c_uint;

/// The functions in use. The library stays loaded until the process ends.
#[derive(Clone, Copy)]
#[allow(dead_code)] // each program that includes this file uses some of them
pub struct Isal {
    pub xor_gen: Generate,
    pub pq_gen: Generate,
    pub pq_check: Generate,
    /// The fastest CRC-32C for this CPU.
    pub crc32_iscsi: Checksum,
    /// The library's choice on a CPU with SSE4.2 and PCLMULQDQ, without VPCLMULQDQ. An internal name: other versions
    /// may not have it.
    pub crc32_iscsi_sse: Option<Checksum>,
}

/// The message if the library is missing.
pub const MISSING: &str = "libisal.so.2 is not installed (Debian: apt-get install libisal2)";

/// Alignment of blocks, and of their length, that ISA-L demands.
#[allow(dead_code)]
pub const ALIGNMENT: usize = 32;

impl Isal {
    pub fn load() -> Option<Self> {
        // SAFETY: a plain C library without constructors that touch our state; the name is terminated.
        let library = unsafe { libc::dlopen(c"libisal.so.2".as_ptr(), libc::RTLD_NOW) };
        if library.is_null() {
            return None;
        }
        // SAFETY: the library is open and the name terminated.
        let find = |name: &CStr| unsafe { libc::dlsym(library, name.as_ptr()) };
        let function = |name: &CStr| {
            let address = find(name);
            assert!(!address.is_null(), "libisal has no {name:?}");
            address
        };
        let sse = find(c"crc32_iscsi_01");
        // SAFETY: the functions have these types in isa-l/raid.h and isa-l/crc.h, and a null pointer is `None`.
        unsafe {
            Some(Self {
                xor_gen: core::mem::transmute::<*mut c_void, Generate>(function(c"xor_gen")),
                pq_gen: core::mem::transmute::<*mut c_void, Generate>(function(c"pq_gen")),
                pq_check: core::mem::transmute::<*mut c_void, Generate>(function(c"pq_check")),
                crc32_iscsi: core::mem::transmute::<*mut c_void, Checksum>(function(c"crc32_iscsi")),
                crc32_iscsi_sse: core::mem::transmute::<*mut c_void, Option<Checksum>>(sse),
            })
        }
    }
}

/// CRC-32C of some bytes by one of the library's functions, continued from the plain register.
#[allow(dead_code)]
pub fn crc32c(function: Checksum, register: u32, bytes: &[u8]) -> u32 {
    // SAFETY: the slice has that many bytes.
    unsafe { function(bytes.as_ptr(), c_int::try_from(bytes.len()).unwrap(), register) }
}

/// Run one of the functions over blocks of one length, data first.
///
/// # Safety
/// Each pointer is aligned to [`ALIGNMENT`] and has `length` bytes, a multiple of it. `xor_gen` writes the last block,
/// `pq_gen` the last two, `pq_check` none.
pub unsafe fn generate(function: Generate, blocks: &mut [*mut c_void], length: usize) {
    // SAFETY: the same contract.
    let failed = unsafe {
        function(c_int::try_from(blocks.len()).unwrap(), c_int::try_from(length).unwrap(), blocks.as_mut_ptr())
    };
    assert_eq!(failed, 0, "ISA-L refused its arguments, or found parity wrong");
}
