//! HTTP: connections, limits, requests and replies. What is asked and answered is the business of the other modules.

pub mod body;
pub mod guard;
pub mod listen;
pub mod patient;
pub mod rate;
pub mod reply;
pub mod request;
pub mod route;
pub mod serve;
pub mod tls;
