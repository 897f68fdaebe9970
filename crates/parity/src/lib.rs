//! openraid-parity
