//! openraid-nbd
