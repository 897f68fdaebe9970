//! The client's side: negotiation, requests, replies. For members on other machines and for tools.

mod handshake;
mod transmission;

pub use handshake::{
    ChosenContext, ClientError, ClientEvent, ClientHandshake, ClientOptions, ClientSession, ClientStep, Goal,
    ListedExport, OptionRefusal,
};
pub use transmission::{
    ClientTransmission, Finished, Pending, PendingTable, ReplyError, ReplyEvent, ReplyParsed, RequestError, Violation,
};
