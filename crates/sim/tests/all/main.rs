//! Tests of the engine in a simulated machine that share one program: a link for each file takes longer than most of them run. Long hunts
//! are programs of their own, next to this folder. So are files that change the state of a process: an allocator, a hook for panics.

#[path = "../support/mod.rs"]
mod support;

mod adding;
mod announced;
mod append;
mod background;
mod bounds;
mod cache;
mod counts;
mod degraded;
mod destage;
mod determinism;
mod doubt;
mod failing;
mod first_sync;
mod force;
mod healthy;
mod journal;
mod journal_back;
mod journal_join;
mod journal_mirror_resync;
mod journal_older;
mod journal_other;
mod journal_redo;
mod journal_reservation;
mod journal_silent;
mod journal_spill;
mod journal_table;
mod journal_unfit;
mod media;
mod nested;
mod nested_refilled;
mod one_defect;
mod out_of_reach;
mod paced;
mod pulled;
mod reading;
mod refused;
mod repeated;
mod reshape;
mod resize;
mod restart;
mod room;
mod saved_runs;
mod shape_records;
mod shape_returns;
mod sharing;
mod silent;
mod stories;
mod streams;
mod striped;
mod write_hole;
