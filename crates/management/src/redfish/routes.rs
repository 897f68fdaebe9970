//! The routes of Redfish.

use super::{
    accounts, changes, chassis, drives, events, managers, oem, rates, registries, sessions, storage, subscriptions,
    tasks, telemetry, volumes,
};
use crate::api::{of, route};
use crate::http::route::{HttpMethod, Need, Route};
use openraid_status::Role::{Administrator, Operator, ReadOnly};
use HttpMethod::{Delete, Get, Patch, Post};

const READ: Need = Need::Role(ReadOnly);
const OPERATE: Need = Need::Role(Operator);
const ADMINISTER: Need = Need::Role(Administrator);

pub const ROUTES: &[Route] = &[
    route(Get, "/redfish", Need::Nothing, "Versions of Redfish.", super::versions),
    route(Get, "/redfish/", Need::Nothing, "Versions of Redfish.", super::versions),
    route(Get, "/redfish/v1", Need::Nothing, "The root of Redfish.", super::root),
    route(Get, "/redfish/v1/", Need::Nothing, "The root of Redfish.", super::root),
    route(Get, "/redfish/v1/odata", Need::Nothing, "The service document.", super::odata),
    route(Get, "/redfish/v1/$metadata", Need::Nothing, "The schemas.", super::metadata),
    route(Get, "/redfish/v1/Systems", READ, "All systems.", storage::systems),
    route(Get, "/redfish/v1/Systems/1", READ, "The system.", storage::system),
    route(Get, "/redfish/v1/Systems/1/Storage", READ, "All storages.", storage::storages),
    route(Get, "/redfish/v1/Systems/1/Storage/openraid", READ, "This server.", storage::storage),
    route(Get, "/redfish/v1/Systems/1/Storage/openraid/Controllers", READ, "Controllers.", storage::controllers),
    route(Get, "/redfish/v1/Systems/1/Storage/openraid/Controllers/1", READ, "The controller.", storage::controller),
    route(Patch, "/redfish/v1/Systems/1/Storage/openraid/Controllers/1", OPERATE, "Change rates.", rates::change),
    route(Post, oem::PREDICT, OPERATE, "Predicted figures of a new volume.", oem::predict),
    route(Get, "/redfish/v1/Systems/1/Storage/openraid/Drives/{drive}", READ, "A drive.", drives::drive),
    route(
        Patch,
        "/redfish/v1/Systems/1/Storage/openraid/Drives/{drive}",
        OPERATE,
        "Switch the light of a drive.",
        chassis::change_drive,
    ),
    route(Get, chassis::ALL, READ, "All chassis.", chassis::all),
    route(Get, chassis::ONE, READ, "The machine.", chassis::one),
    route(Get, "/redfish/v1/Chassis/1/Drives", READ, "The drives in the machine.", chassis::all_drives),
    route(Get, volumes::VOLUMES, READ, "All arrays.", volumes::volumes),
    route(Post, volumes::VOLUMES, ADMINISTER, "Make an array and serve it.", changes::create),
    route(
        Post,
        "/redfish/v1/Systems/1/Storage/openraid/Volumes/Members",
        ADMINISTER,
        "Make an array and serve it.",
        changes::create,
    ),
    route(Get, "/redfish/v1/Systems/1/Storage/openraid/Volumes/{array}", READ, "An array.", volumes::volume),
    route(
        Patch,
        "/redfish/v1/Systems/1/Storage/openraid/Volumes/{array}",
        OPERATE,
        "Change an array.",
        changes::change,
    ),
    route(
        Delete,
        "/redfish/v1/Systems/1/Storage/openraid/Volumes/{array}",
        ADMINISTER,
        "Stop an array and forget it.",
        changes::delete,
    ),
    route(
        Post,
        "/redfish/v1/Systems/1/Storage/openraid/Volumes/{array}/Actions/Volume.CheckConsistency",
        OPERATE,
        "Begin a check.",
        changes::check,
    ),
    route(
        Post,
        "/redfish/v1/Systems/1/Storage/openraid/Volumes/{array}/Actions/Volume.ChangeRAIDLayout",
        ADMINISTER,
        "Begin a change of shape.",
        changes::change_layout,
    ),
    route(
        Post,
        "/redfish/v1/Systems/1/Storage/openraid/Volumes/{array}/Actions/Volume.Initialize",
        ADMINISTER,
        "Refused: it would lose data.",
        changes::initialize,
    ),
    route(
        Post,
        "/redfish/v1/Systems/1/Storage/openraid/Volumes/{array}/Actions/Oem/OpenraidVolume.Locate",
        READ,
        "The members that hold a byte.",
        oem::locate,
    ),
    route(
        Post,
        "/redfish/v1/Systems/1/Storage/openraid/Volumes/{array}/Actions/Oem/OpenraidVolume.LimitCapacity",
        ADMINISTER,
        "Let hosts have the first part of an array, or all of it.",
        changes::limit_capacity,
    ),
    route(
        Get,
        "/redfish/v1/Systems/1/Storage/openraid/Volumes/{array}/Oem/Openraid/Explanation",
        READ,
        "The decisions of an array, and its limit.",
        oem::explanation,
    ),
    route(Get, "/redfish/v1/Schemas/{schema}", Need::Nothing, "A schema of our own.", oem::schema),
    route(Get, telemetry::SERVICE, READ, "Metrics.", telemetry::service),
    route(Get, telemetry::DEFINITIONS, READ, "Definitions of all reports.", telemetry::definitions),
    route(
        Get,
        "/redfish/v1/TelemetryService/MetricReportDefinitions/{report}",
        READ,
        "The definition of a report.",
        telemetry::definition,
    ),
    route(Get, telemetry::REPORTS, READ, "All reports.", telemetry::reports),
    route(Get, "/redfish/v1/TelemetryService/MetricReports/{report}", READ, "A report.", telemetry::report),
    route(Get, "/redfish/v1/SessionService", READ, "Sessions.", sessions::service),
    route(Get, sessions::SESSIONS, READ, "All sessions.", sessions::all),
    route_with(Post, sessions::SESSIONS),
    route_with(Post, "/redfish/v1/SessionService/Sessions/Members"),
    route(Get, "/redfish/v1/SessionService/Sessions/{session}", READ, "A session.", sessions::one),
    route(Delete, "/redfish/v1/SessionService/Sessions/{session}", READ, "Sign out.", sessions::end),
    route(Get, "/redfish/v1/AccountService", READ, "Users.", accounts::service),
    route(Get, "/redfish/v1/AccountService/Roles", READ, "All roles.", accounts::roles),
    route(Get, "/redfish/v1/AccountService/Roles/{role}", READ, "A role.", accounts::role),
    route(Get, "/redfish/v1/AccountService/Accounts", READ, "All users.", accounts::all),
    route(Post, "/redfish/v1/AccountService/Accounts", ADMINISTER, "Add a user.", accounts::add),
    route(Post, "/redfish/v1/AccountService/Accounts/Members", ADMINISTER, "Add a user.", accounts::add),
    route(Get, "/redfish/v1/AccountService/Accounts/{user}", READ, "A user.", accounts::one),
    route(Patch, "/redfish/v1/AccountService/Accounts/{user}", READ, "Change a user.", accounts::change),
    route(Delete, "/redfish/v1/AccountService/Accounts/{user}", ADMINISTER, "Remove a user.", accounts::remove),
    route(Get, "/redfish/v1/TaskService", READ, "Tasks.", tasks::service),
    route(Get, "/redfish/v1/TaskService/Tasks", READ, "All tasks.", tasks::all),
    route(Get, "/redfish/v1/TaskService/Tasks/{task}", READ, "A task.", tasks::one),
    route(Delete, "/redfish/v1/TaskService/Tasks/{task}", OPERATE, "End a check.", tasks::end),
    route(Get, "/redfish/v1/TaskService/TaskMonitors/{task}", READ, "Whether a task is done.", tasks::monitor),
    route(Get, "/redfish/v1/EventService", READ, "Events.", events::service),
    route(Get, "/redfish/v1/EventService/Subscriptions", READ, "Streams and subscriptions.", subscriptions::all),
    route(Post, subscriptions::DESTINATIONS, ADMINISTER, "Push events.", subscriptions::add),
    route(Post, "/redfish/v1/EventService/Subscriptions/Members", ADMINISTER, "Push events.", subscriptions::add),
    route(
        Get,
        "/redfish/v1/EventService/Subscriptions/{stream}",
        READ,
        "A stream or subscription.",
        subscriptions::one,
    ),
    route(
        Delete,
        "/redfish/v1/EventService/Subscriptions/{stream}",
        READ,
        "End a stream or subscription.",
        subscriptions::end,
    ),
    route(Post, events::TEST, ADMINISTER, "Send a test event to all streams and subscriptions.", events::submit_test),
    route(Get, events::STREAM, READ, "Events as they come (server-sent events).", events::unreachable),
    route(Get, "/redfish/v1/Managers", READ, "All managers.", managers::all),
    route(Get, "/redfish/v1/Managers/1", READ, "This program.", managers::one),
    route(Get, "/redfish/v1/Managers/1/LogServices", READ, "Logs.", managers::logs),
    route(Get, "/redfish/v1/Managers/1/LogServices/Log", READ, "The event log.", managers::log),
    route(
        Get,
        "/redfish/v1/Managers/1/LogServices/Log/Entries",
        READ,
        "The newest entries of the event log.",
        managers::entries,
    ),
    route(Get, "/redfish/v1/Managers/1/LogServices/Log/Entries/{entry}", READ, "An entry.", managers::entry),
    route(Get, "/redfish/v1/Registries", READ, "Registries of messages.", registries::all),
    route(Get, "/redfish/v1/Registries/{registry}", READ, "A registry.", registries::one),
    route(Get, "/redfish/v1/JsonSchemas", READ, "Schemas.", registries::schemas),
    route(Get, "/redfish/v1/JsonSchemas/{schema}", READ, "A schema.", registries::schema),
];

/// Signing in.
const fn route_with(method: HttpMethod, path: &'static str) -> Route {
    let mut route = route(method, path, Need::Nothing, "Sign in.", sessions::begin);
    route.takes = of::<sessions::Credentials>();
    route
}
