//! The client's side: negotiation, requests, replies. Members on other machines and command-line tools use it.

mod handshake;
mod transmission;

pub use handshake::{
    ChosenContext, ClientError, ClientEvent, ClientHandshake, ClientOptions, ClientSession, ClientStep, Goal,
    ListedExport, OptionRefusal,
};
pub use transmission::{
    ClientTransmission, Finished, Pending, PendingTable, ReplyError, ReplyEvent, ReplyParsed, RequestError, Violation,
};
