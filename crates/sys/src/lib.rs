//! openraid-sys
