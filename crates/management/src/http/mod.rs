//! HTTP: connections, limits, requests and replies. The other modules decide about content.

pub mod body;
pub mod certificate_renewal;
pub mod connection_places;
pub mod listen;
pub mod rate_limit;
pub mod reply;
pub mod request;
pub mod request_checks;
pub mod route;
pub mod serve;
pub mod slow_client;
pub mod tls;
