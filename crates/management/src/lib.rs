//! The interfaces of a server over HTTP.
//!
//! ```text
//!  thread `management`                                       the server
//!   connection -> limits -> route -> user and role -> handler --Controller--> the commands of the control socket
//!                                                     |
//!     /api/v1   JSON, OpenAPI, events as they come    +-- ArrayModel, JournalModel ... of the crate `status`
//!     /metrics  OpenMetrics
//!     /redfish  the arrays in DMTF's words, for reading
//!     /         the console
//! ```
//!
//! The crate never touches the data path: it asks through [`Controller`] what the control socket is asked, in a thread of its
//! own, with an async runtime that no other crate may use. All limits are in [`limits`]. A client that is slow, hostile or
//! gone takes a connection of this crate and nothing else.

#![forbid(unsafe_code)]

mod api;
mod api_values;
mod auth;
mod block_devices;
mod console;
mod controller;
mod http;
pub mod lab;
pub mod limits;
mod machine_facts;
mod metrics;
mod nbd_tls;
mod redfish;
mod shared_state;
mod stripe_map;

pub use api_values::{KeptInput, KeptModel, KeptSink};
pub use auth::tokens::RevokeError;
pub use auth::users::Users;
pub use controller::{
    CommandResult, Controller, Creation, EventModel, OfferModel, PlanModel, Refusal, ScheduleInput, SettingModel,
};
pub use http::certificate_renewal::{PendingTls, Renewal, TlsFiles};
pub use http::listen::{ListenError, Management, Options};
pub use http::tls::{flaws, TlsFile, Validity};
pub use nbd_tls::{NbdTls, NbdTlsOptions, NbdTlsRuns};
pub use stripe_map::{LocationModel, PlaceModel};
