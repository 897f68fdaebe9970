//! openraid-runtime

#![forbid(unsafe_code)]
