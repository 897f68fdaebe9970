//! HTTP: connections, limits, requests and replies. The other modules decide about content.

pub mod body;
pub mod guard;
pub mod listen;
pub mod patient;
pub mod places;
pub mod rate;
pub mod renew;
pub mod reply;
pub mod request;
pub mod route;
pub mod serve;
pub mod tls;
