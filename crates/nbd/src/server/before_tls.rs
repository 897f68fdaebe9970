//! The negotiation on an address that has TLS only, until the client begins TLS. The owner of the socket reads the fields,
//! and its limits decide how many options and bytes it takes.

use super::handshake::CloseReason;
use super::options::{push_refusal, push_reply, Refused};
use crate::wire::{option, rep, Reader, FLAG_FIXED_NEWSTYLE, FLAG_NO_ZEROES, MAGIC_OPTION, MAGIC_SERVER};

pub use crate::wire::{GREETING_BYTES, OPTION_BYTES};

const TLS_REQUIRED: Refused = Refused::new(rep::ERR_TLS_REQD, "this address wants TLS: nbds://");

/// Append the greeting of a server to `out`: [`GREETING_BYTES`].
pub fn greet(out: &mut Vec<u8>) {
    out.extend_from_slice(&MAGIC_SERVER.to_be_bytes());
    out.extend_from_slice(&MAGIC_OPTION.to_be_bytes());
    out.extend_from_slice(&(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
}

/// Check the flags of a client.
///
/// # Errors
/// It set flags that the protocol does not define.
pub fn check_flags(flags: u32) -> Result<(), CloseReason> {
    match flags & !u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES) {
        0 => Ok(()),
        _ => Err(CloseReason::UnknownClientFlags(flags)),
    }
}

/// The number of an option and the length of its payload in bytes, from its header of [`OPTION_BYTES`].
///
/// # Errors
/// It does not begin with the magic number of an option.
///
/// # Panics
/// The header is shorter.
pub fn header(bytes: &[u8]) -> Result<(u32, u32), CloseReason> {
    let mut reader = Reader::new(bytes);
    let magic = reader.u64().expect("an option header is held");
    let option = reader.u32().expect("an option header is held");
    let length = reader.u32().expect("an option header is held");
    if magic == MAGIC_OPTION {
        Ok((option, length))
    } else {
        Err(CloseReason::BadOptionMagic(magic))
    }
}

/// Answer an option before TLS: append the answer to `out`. True if the client begins TLS after it.
///
/// # Errors
/// The connection must be closed, after the output if there is any.
pub fn answer(option: u32, payload_bytes: u32, out: &mut Vec<u8>) -> Result<bool, CloseReason> {
    match option {
        option::STARTTLS if payload_bytes == 0 => push_reply(out, option, rep::ACK, &[]),
        option::STARTTLS => push_reply(out, option, rep::ERR_INVALID, &[]),
        option::ABORT => {
            push_reply(out, option, rep::ACK, &[]);
            return Err(CloseReason::Aborted);
        }
        option::EXPORT_NAME => return Err(CloseReason::ExportNameRefused),
        _ => push_refusal(out, option, &TLS_REQUIRED),
    }
    Ok(option == option::STARTTLS && payload_bytes == 0)
}
