//! openraid-core
