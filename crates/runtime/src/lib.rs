//! openraid-runtime
