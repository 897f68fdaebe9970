//! Error numbers of replies.

use core::fmt;

/// An error as it is sent in a reply. The protocol defines exactly these.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NbdError {
    /// The export is read-only, or policy forbids the request.
    NotPermitted,
    /// Reading or writing failed.
    InputOutput,
    /// The server lacks memory. Servers should not send this.
    NoMemory,
    /// The request is invalid: unknown, misaligned, or outside the export.
    Invalid,
    /// A write past the end, or no space left to allocate.
    NoSpace,
    /// The request is larger than the server handles.
    Overflow,
    /// A fast zero request could not be done fast.
    NotSupported,
    /// The server is stopping; the client has to disconnect.
    ShuttingDown,
}

impl NbdError {
    /// All errors.
    pub const ALL: [Self; 8] = [
        Self::NotPermitted,
        Self::InputOutput,
        Self::NoMemory,
        Self::Invalid,
        Self::NoSpace,
        Self::Overflow,
        Self::NotSupported,
        Self::ShuttingDown,
    ];

    /// The number in the reply. The numbers equal Linux' errno values, whatever the host is.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::NotPermitted => 1,
            Self::InputOutput => 5,
            Self::NoMemory => 12,
            Self::Invalid => 22,
            Self::NoSpace => 28,
            Self::Overflow => 75,
            Self::NotSupported => 95,
            Self::ShuttingDown => 108,
        }
    }

    /// The error for a number in a reply. As the protocol requires, unknown numbers count as [`NbdError::Invalid`]. 0
    /// is no error and gives `None`.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => return None,
            1 => Self::NotPermitted,
            5 => Self::InputOutput,
            12 => Self::NoMemory,
            28 => Self::NoSpace,
            75 => Self::Overflow,
            95 => Self::NotSupported,
            108 => Self::ShuttingDown,
            _ => Self::Invalid,
        })
    }
}

impl fmt::Display for NbdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPermitted => "operation not permitted (the export may be read-only)",
            Self::InputOutput => "input/output error",
            Self::NoMemory => "the server has no memory for the request",
            Self::Invalid => "invalid request",
            Self::NoSpace => "no space left, or beyond the end of the export",
            Self::Overflow => "request too large for the server",
            Self::NotSupported => "not supported for this request",
            Self::ShuttingDown => "the server is shutting down",
        })
    }
}

impl std::error::Error for NbdError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_protocol_document() {
        let codes: Vec<u32> = NbdError::ALL.iter().map(|e| e.code()).collect();
        assert_eq!(codes, [1, 5, 12, 22, 28, 75, 95, 108]);
    }

    #[test]
    fn every_code_comes_back_and_unknown_ones_are_invalid() {
        for error in NbdError::ALL {
            assert_eq!(NbdError::from_code(error.code()), Some(error));
        }
        assert_eq!(NbdError::from_code(0), None);
        assert_eq!(NbdError::from_code(2), Some(NbdError::Invalid));
        assert_eq!(NbdError::from_code(u32::MAX), Some(NbdError::Invalid));
    }
}
