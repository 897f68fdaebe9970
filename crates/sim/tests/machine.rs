//! The machine compared with closed forms: counts exact, means within three standard errors or one percent.

#![allow(clippy::cast_possible_truncation)] // small numbers, and statistics in floating point

#[path = "machine/beside_hosts.rs"]
mod beside_hosts;
#[path = "machine/closed.rs"]
mod closed;
#[path = "machine/counts.rs"]
mod counts;
#[path = "machine/journal.rs"]
mod journal;
#[path = "machine/profiles.rs"]
mod profiles;
#[path = "machine/queues.rs"]
mod queues;
#[path = "machine/quirks.rs"]
mod quirks;
#[path = "machine/reshape.rs"]
mod reshape;
#[path = "machine/support.rs"]
mod support;
#[path = "machine/ways.rs"]
mod ways;
