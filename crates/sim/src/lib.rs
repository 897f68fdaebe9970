//! openraid-sim
