//! The routes: `/api/v1`, `/metrics`, and the files of the console.

mod alarms;
pub mod arrays;
mod events;
mod lab;
pub mod manage;
mod openapi;
pub mod sign_in;
pub mod state_version;
pub mod stream;
pub mod support;
mod tokens;
pub mod users;
mod values;

use utoipa::ToSchema;

use crate::api_values::{KeptInput, KeptModel};
use crate::controller::{Creation, EventModel, PlanModel, ScheduleInput};
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::http::route::{HttpMethod, Need, Route, Schema, Schemas};
use crate::lab::{
    ChoicesModel, ComparisonInput, JobModel, LabModel, PlanInput, PredictionInput, PredictionModel, ReviewInput,
};
use crate::stripe_map::PlaceModel;
use crate::{console, metrics};
use openraid_status::schedules::ScheduleModel;
use openraid_status::Role::{Administrator, Operator, ReadOnly};
use openraid_status::{ArrayModel, JournalModel, LimitModel, ReshapePlanModel, ServerModel};
use HttpMethod::{Delete, Get, Patch, Post};

/// A type in the document.
fn schema<T: ToSchema>(schemas: &mut Schemas) -> String {
    let name = T::name().into_owned();
    if !schemas.iter().any(|(known, _)| *known == name) {
        schemas.push((name.clone(), T::schema()));
        T::schemas(schemas);
    }
    name
}

/// The schema of a type.
pub const fn of<T: ToSchema>() -> Option<Schema> {
    Some(schema::<T>)
}

type Handler = fn(&HttpRequest) -> Result<HttpReply, Problem>;

/// A route without bodies and query.
pub const fn route(method: HttpMethod, path: &'static str, need: Need, about: &'static str, handler: Handler) -> Route {
    Route { method, path, need, about, takes: None, gives: None, query: &[], handler }
}

impl Route {
    const fn takes<T: ToSchema>(mut self) -> Self {
        self.takes = of::<T>();
        self
    }
    const fn gives<T: ToSchema>(mut self) -> Self {
        self.gives = of::<T>();
        self
    }
    const fn asked(mut self, query: &'static [&'static str]) -> Self {
        self.query = query;
        self
    }
}

const READ: Need = Need::Role(ReadOnly);
const OPERATE: Need = Need::Role(Operator);
const ADMINISTER: Need = Need::Role(Administrator);

/// The query of both forms of the event log.
const EVENTS_ASKED: &[&str] = &["after", "before", "limit", "level", "array", "unacknowledged", "text"];

/// All of them but those of Redfish.
pub const ROUTES: &[Route] = &[
    route(Get, "/", Need::Nothing, "The console.", console::page),
    route(Get, "/console/{version}/{file}", Need::Nothing, "A file of the console.", console::file),
    route(Get, "/metrics", Need::Scrape, "Figures for Prometheus, as OpenMetrics.", metrics::reply),
    route(Get, "/api/v1/openapi.json", Need::Nothing, "This document.", openapi::reply),
    route(
        Post,
        "/api/v1/session",
        Need::Nothing,
        "Sign in: with a one-time secret, or with name and password.",
        sign_in::begin,
    )
    .takes::<sign_in::SignIn>()
    .gives::<sign_in::SessionModel>(),
    route(Get, "/api/v1/session", READ, "The session of this client.", sign_in::current)
        .gives::<sign_in::SessionModel>(),
    route(Delete, "/api/v1/session", READ, "Sign out.", sign_in::end),
    route(Get, "/api/v1/server", READ, "The server.", manage::server).gives::<ServerModel>(),
    route(Get, "/api/v1/arrays", READ, "All arrays.", arrays::all).gives::<arrays::ArraysModel>(),
    route(Post, "/api/v1/arrays", ADMINISTER, "Make an array and serve it.", manage::create)
        .takes::<Creation>()
        .gives::<manage::DoneModel>(),
    route(Post, "/api/v1/plan", READ, "A preview of a new array. Nothing is written.", manage::plan)
        .takes::<Creation>()
        .gives::<PlanModel>(),
    route(Get, "/api/v1/arrays/{array}", READ, "One array. ETag is the version of its state.", arrays::one)
        .gives::<ArrayModel>(),
    route(Delete, "/api/v1/arrays/{array}", ADMINISTER, "Stop an array; its members keep their data.", manage::stop)
        .takes::<manage::StopInput>()
        .gives::<manage::DoneModel>(),
    route(Get, "/api/v1/arrays/{array}/limit", READ, "The limit of an array now.", arrays::limit).gives::<LimitModel>(),
    route(Get, "/api/v1/arrays/{array}/place", READ, "The members that hold a byte.", arrays::place)
        .gives::<PlaceModel>()
        .asked(&["offset"]),
    route(Get, "/api/v1/arrays/{array}/explain", READ, "The decisions of an array, and its limit.", lab::explain),
    route(
        Get,
        "/api/v1/arrays/{array}/stories",
        READ,
        "Stories of the slowest requests, or of one. Requests are recorded while clients ask for stories.",
        lab::stories,
    )
    .asked(&["slowest", "request"]),
    route(Get, "/api/v1/lab", READ, "Jobs and reports of the laboratory.", lab::all).gives::<LabModel>(),
    route(Get, "/api/v1/lab/choices", READ, "Systems, drives and patterns of the simulator.", lab::choices)
        .gives::<ChoicesModel>(),
    route(Post, "/api/v1/lab/reviews", OPERATE, "Begin a review.", lab::review)
        .takes::<ReviewInput>()
        .gives::<JobModel>(),
    route(Post, "/api/v1/lab/plans", OPERATE, "Begin a plan.", lab::plan).takes::<PlanInput>().gives::<JobModel>(),
    route(Post, "/api/v1/lab/comparisons", OPERATE, "Begin a comparison of two reviews.", lab::comparison)
        .takes::<ComparisonInput>()
        .gives::<JobModel>(),
    route(Delete, "/api/v1/lab/jobs/{job}", OPERATE, "End a job.", lab::cancel).gives::<JobModel>(),
    route(Get, "/api/v1/lab/reports/{report}/{file}", READ, "A file of a report.", lab::file),
    route(Delete, "/api/v1/lab/reports/{report}", OPERATE, "Remove a report.", lab::remove)
        .takes::<lab::ConfirmReport>(),
    route(
        Post,
        "/api/v1/predictions",
        OPERATE,
        "Predicted figures of arrays of these drives. Repeat the request while the answer is pending.",
        lab::predict,
    )
    .takes::<PredictionInput>()
    .gives::<PredictionModel>(),
    route(Patch, "/api/v1/arrays/{array}/settings", OPERATE, "Change settings, as openraid set does.", manage::set)
        .takes::<manage::SetInput>()
        .gives::<manage::DoneModel>(),
    route(Post, "/api/v1/arrays/{array}/fail", OPERATE, "Fail a member.", manage::fail)
        .takes::<manage::FailInput>()
        .gives::<manage::DoneModel>(),
    route(Post, "/api/v1/arrays/{array}/add", OPERATE, "Add a member or a spare.", manage::add)
        .takes::<manage::AddInput>()
        .gives::<manage::DoneModel>(),
    route(Post, "/api/v1/arrays/{array}/reshape", ADMINISTER, "Change the shape or size of an array.", manage::reshape)
        .takes::<manage::ReshapeInput>()
        .gives::<manage::DoneModel>(),
    route(
        Delete,
        "/api/v1/arrays/{array}/reshape",
        ADMINISTER,
        "Turn the change of shape around: what has moved moves back.",
        manage::cancel_reshape,
    )
    .gives::<manage::DoneModel>(),
    route(
        Post,
        "/api/v1/arrays/{array}/reshape/plan",
        OPERATE,
        "What a change of shape would do. Nothing is written.",
        manage::plan_reshape,
    )
    .takes::<manage::ReshapeInput>()
    .gives::<ReshapePlanModel>(),
    route(Post, "/api/v1/arrays/{array}/locate", OPERATE, "Switch the light of a member.", manage::locate)
        .takes::<manage::LocateInput>()
        .gives::<manage::DoneModel>(),
    route(Post, "/api/v1/arrays/{array}/remove", OPERATE, "Take a failed member or a spare out.", manage::remove)
        .takes::<manage::RemoveInput>()
        .gives::<manage::DoneModel>(),
    route(Post, "/api/v1/arrays/{array}/replace", OPERATE, "Copy a member to another drive.", manage::replace)
        .takes::<manage::ReplaceInput>()
        .gives::<manage::DoneModel>(),
    route(Post, "/api/v1/arrays/{array}/check", OPERATE, "Read everything and compare.", manage::check)
        .takes::<manage::CheckInput>()
        .gives::<manage::DoneModel>(),
    route(Delete, "/api/v1/arrays/{array}/check", OPERATE, "End a check or repair.", manage::stop_check)
        .gives::<manage::DoneModel>(),
    route(Post, "/api/v1/arrays/{array}/rename", ADMINISTER, "Give an array another name.", manage::rename)
        .takes::<manage::RenameInput>()
        .gives::<manage::DoneModel>(),
    route(Post, "/api/v1/arrays/{array}/pause", OPERATE, "Pause background work.", manage::pause)
        .gives::<manage::DoneModel>(),
    route(Post, "/api/v1/arrays/{array}/resume", OPERATE, "Resume background work.", manage::resume)
        .gives::<manage::DoneModel>(),
    route(Get, "/api/v1/drives", READ, "All drives, with the arrays that they belong to.", arrays::drives)
        .gives::<arrays::DrivesModel>(),
    route(Get, "/api/v1/journal", READ, "The journal.", arrays::journal).gives::<JournalModel>(),
    route(Get, "/api/v1/settings", READ, "The desired state in force.", manage::settings),
    route(Get, "/api/v1/kept", ADMINISTER, "Values that are kept apart from the configuration file.", values::all)
        .gives::<KeptModel>(),
    route(
        Patch,
        "/api/v1/kept",
        ADMINISTER,
        "Set cache, journal, spares for all arrays, sinks or exports, apart from the configuration file.",
        values::change,
    )
    .takes::<KeptInput>()
    .gives::<values::KeptAnswer>(),
    route(Get, "/api/v1/settings/known", READ, "Every setting that an array has.", manage::known_settings)
        .gives::<manage::SettingsModel>(),
    route(Get, "/api/v1/arrays/{array}/checks", READ, "The last checks and repairs of an array.", alarms::checks)
        .gives::<alarms::ChecksModel>(),
    route(Get, "/api/v1/alarms", READ, "Alarms, the most important first.", alarms::list)
        .gives::<alarms::AlarmsModel>()
        .asked(&["level", "array", "ended"]),
    route(Post, "/api/v1/alarms/acknowledge", OPERATE, "Acknowledge alarms.", alarms::acknowledge)
        .takes::<alarms::AcknowledgeAlarms>()
        .gives::<alarms::AcknowledgedModel>(),
    route(Post, "/api/v1/alarms/test", OPERATE, "Send a test alarm.", alarms::test)
        .takes::<alarms::TestInput>()
        .gives::<alarms::TestsModel>(),
    route(Get, "/api/v1/sinks", READ, "The sinks of alarms.", alarms::sinks).gives::<alarms::SinksModel>(),
    route(Get, "/api/v1/schedules", READ, "Schedules of checks and patrol reads.", alarms::schedules)
        .gives::<alarms::SchedulesModel>(),
    route(Post, "/api/v1/schedules", OPERATE, "Keep a schedule, or change a kept one.", alarms::keep_schedule)
        .takes::<ScheduleInput>()
        .gives::<ScheduleModel>(),
    route(Delete, "/api/v1/schedules/{schedule}", OPERATE, "Remove a kept schedule.", alarms::forget_schedule),
    route(Get, "/api/v1/events", READ, "Events, oldest first.", events::list)
        .gives::<events::EventsModel>()
        .asked(EVENTS_ASKED),
    route(Get, "/api/v1/events.csv", READ, "The same events as lines with commas.", events::lines).asked(EVENTS_ASKED),
    route(Get, "/api/v1/support", ADMINISTER, "A support archive: all of it in one document.", support::archive),
    route(Post, "/api/v1/events/acknowledge", OPERATE, "Acknowledge events.", events::acknowledge)
        .takes::<events::Acknowledge>(),
    route(
        Get,
        stream::PATH,
        READ,
        "Events as they come, and the state every second (server-sent events).",
        stream::unreachable,
    )
    .gives::<EventModel>()
    .asked(&["after"]),
    route(Get, "/api/v1/tokens", ADMINISTER, "All tokens that last.", tokens::all).gives::<tokens::TokensModel>(),
    route(Post, "/api/v1/tokens", ADMINISTER, "Make a token that lasts until it is revoked.", tokens::make)
        .takes::<tokens::NewToken>()
        .gives::<tokens::TokenModel>(),
    route(Delete, "/api/v1/tokens/{token}", ADMINISTER, "Revoke a token.", tokens::revoke),
    route(Get, "/api/v1/users", ADMINISTER, "All users.", users::all).gives::<users::UsersModel>(),
    route(Post, "/api/v1/users", ADMINISTER, "Add a user.", users::add).takes::<users::NewUser>(),
    route(Patch, "/api/v1/users/{user}", ADMINISTER, "Change a user.", users::change).takes::<users::ChangeUser>(),
    route(Delete, "/api/v1/users/{user}", ADMINISTER, "Remove a user.", users::remove),
];
