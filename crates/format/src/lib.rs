//! openraid-format
