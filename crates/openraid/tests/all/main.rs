//! Tests of the program that share one test program: a link for each file takes longer than most of them run. Files that run again in a Linux
//! guest, and measurements, are programs of their own, next to this folder.

#[path = "../support/mod.rs"]
mod support;

mod alarms;
mod alert_rules;
mod api_values;
mod attach;
mod bad_blocks;
mod bad_input;
mod care;
mod config;
mod copies;
mod disk;
mod documents;
mod exits;
mod explain;
mod foreign;
mod guides;
mod http;
mod http_alarms;
mod journal;
mod journal_devices;
mod journal_older;
mod lockless;
mod logical_blocks;
mod member_flags;
mod nbd_tls;
mod nvme;
mod orders;
mod ppl;
mod readme;
mod redfish;
mod registry;
mod remote;
mod rename;
mod reports;
mod reshape;
mod resize;
mod restart;
mod schedules;
mod scrub;
mod served;
mod sinks;
mod spans;
mod start_problems;
mod stopped;
mod striped;
mod two_programs;
mod unread;
mod words;
