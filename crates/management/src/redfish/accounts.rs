//! Users and their roles.

use serde_json::{json, Value};

use super::{check_version, collection, found, link, no_operation, object, property, resource, text, with};
use crate::api::users::{check_left, noted};
use crate::auth::password;
use crate::auth::users::{check_name, User};
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::limits::{PASSWORD_BYTES_MAX, PASSWORD_CHARACTERS_MIN, WRONG_PASSWORDS_MAX, WRONG_PASSWORD_WAIT};
use openraid_status::Role;

const SERVICE: &str = "/redfish/v1/AccountService";
const ACCOUNTS: &str = "/redfish/v1/AccountService/Accounts";
const ROLES: &str = "/redfish/v1/AccountService/Roles";

/// The account service.
pub fn service(_: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(found(&with(
        resource(SERVICE, "AccountService", "AccountService", "Users"),
        json!({
            "ServiceEnabled": true,
            "Status": {"State": "Enabled", "Health": "OK"},
            "Accounts": link(ACCOUNTS),
            "Roles": link(ROLES),
            "MinPasswordLength": PASSWORD_CHARACTERS_MIN,
            "MaxPasswordLength": PASSWORD_BYTES_MAX,
            "AccountLockoutThreshold": WRONG_PASSWORDS_MAX,
            "AccountLockoutDuration": WRONG_PASSWORD_WAIT.as_secs(),
            "AccountLockoutCounterResetAfter": WRONG_PASSWORD_WAIT.as_secs(),
            "SupportedAccountTypes": ["Redfish"],
        }),
    )))
}

pub fn roles(_: &HttpRequest) -> Result<HttpReply, Problem> {
    let paths: Vec<String> = Role::ALL.iter().map(|role| format!("{ROLES}/{}", role.word())).collect();
    Ok(found(&collection(ROLES, "RoleCollection", "Roles", &paths)))
}

/// A role, with the privileges that DMTF gives it.
pub fn role(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let id = request.parts[0].as_str();
    let role = Role::ALL.into_iter().find(|role| role.word() == id);
    let role = role.ok_or_else(|| Problem::missing(format!("there is no role {id:?}")))?;
    let privileges = match role {
        Role::Administrator => {
            vec!["Login", "ConfigureManager", "ConfigureUsers", "ConfigureComponents", "ConfigureSelf"]
        }
        Role::Operator => vec!["Login", "ConfigureComponents", "ConfigureSelf"],
        Role::ReadOnly => vec!["Login", "ConfigureSelf"],
    };
    let more = json!({"RoleId": id, "IsPredefined": true, "AssignedPrivileges": privileges});
    Ok(found(&with(resource(&format!("{ROLES}/{id}"), "Role", id, id), more)))
}

fn users(request: &HttpRequest) -> Result<Vec<User>, Problem> {
    let all = request.state.users.all().map_err(|why| Problem::new(500, "failed", why))?;
    let is_seen = |user: &User| is_administrator(request) || user.name == request.user();
    Ok(all.into_iter().filter(is_seen).collect())
}

fn is_administrator(request: &HttpRequest) -> bool {
    request.session.as_ref().is_some_and(|session| session.role == Role::Administrator)
}

/// Users that the client may see: itself, and all of them for an administrator.
pub fn all(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let paths: Vec<String> = users(request)?.iter().map(|user| format!("{ACCOUNTS}/{}", user.name)).collect();
    Ok(found(&collection(ACCOUNTS, "ManagerAccountCollection", "Users", &paths)))
}

fn document(user: &User) -> Value {
    let more = json!({
        "UserName": user.name,
        "Password": null,
        "RoleId": user.role.word(),
        "Enabled": !user.locked,
        "Locked": false,
        "AccountTypes": ["Redfish"],
        "PasswordChangeRequired": false,
        "Links": {"Role": link(&format!("{ROLES}/{}", user.role.word()))},
    });
    with(resource(&format!("{ACCOUNTS}/{}", user.name), "ManagerAccount", &user.name, "A user"), more)
}

/// The version also changes with the password, of which the document has nothing.
fn versioned_form(user: &User) -> Value {
    with(document(user), json!({"Password": crate::api::state_version::hashed(&user.password)}))
}

fn named(request: &HttpRequest) -> Result<User, Problem> {
    let id = request.parts[0].as_str();
    let found = users(request)?.into_iter().find(|user| user.name == id);
    found.ok_or_else(|| Problem::missing(format!("there is no user named {id:?}")))
}

fn shown(user: &User) -> HttpReply {
    super::of_version(document(user), super::version(&versioned_form(user)))
}

/// One user.
pub fn one(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(shown(&named(request)?))
}

/// A user in the body of a request.
#[derive(Default)]
struct AccountChange {
    name: Option<String>,
    password: Option<String>,
    role: Option<Role>,
    locked: Option<bool>,
}

fn asked(request: &HttpRequest) -> Result<AccountChange, Problem> {
    let mut change = AccountChange::default();
    for (key, value) in object(request)? {
        match key.as_str() {
            "UserName" => change.name = Some(text(&key, &value)?),
            "Password" => change.password = Some(text(&key, &value)?),
            "RoleId" => {
                let id = text(&key, &value)?;
                let role = Role::ALL.into_iter().find(|role| role.word() == id);
                let unknown = || property("property-value", &key, "use Administrator, Operator or ReadOnly");
                change.role = Some(role.ok_or_else(unknown)?);
            }
            "Enabled" => {
                let enabled = value.as_bool().ok_or_else(|| property("property-value", &key, "use true or false"))?;
                change.locked = Some(!enabled);
            }
            // An address is kept out for a minute, not a user for ever: there is nothing to unlock.
            "Locked" if value == Value::Bool(false) => {}
            "Locked" => return Err(property("property-value", &key, "a user is kept out by Enabled: false")),
            "AccountTypes" if value == json!(["Redfish"]) => {}
            "AccountTypes" => return Err(property("property-value", &key, "use [\"Redfish\"]")),
            "Description" | "Name" if value.is_string() => {}
            "Id" | "Links" | "PasswordChangeRequired" => {
                return Err(property("property-read-only", &key, "it is not for clients to set"))
            }
            _ => return Err(property("property-unknown", &key, "a user has no such property")),
        }
    }
    if let Some(secret) = &change.password {
        password::check_new(secret).map_err(|why| property("property-value", "Password", &why))?;
    }
    Ok(change)
}

/// Add a user.
pub fn add(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let change = asked(request)?;
    let missing = |name: &str| property("property-missing", name, "it is missing");
    let name = change.name.ok_or_else(|| missing("UserName"))?;
    let secret = change.password.ok_or_else(|| missing("Password"))?;
    let role = change.role.ok_or_else(|| missing("RoleId"))?;
    check_name(&name).map_err(|why| property("property-value", "UserName", &why))?;
    let user =
        User { name: name.clone(), role, password: password::hash(&secret), locked: change.locked.unwrap_or(false) };
    let copy = user.clone();
    let added = request.state.users.change(|users| {
        if users.iter().any(|known| known.name == name) {
            return Err(format!("there is a user named {name} already"));
        }
        users.push(user);
        users.sort_by(|a, b| a.name.cmp(&b.name));
        check_left(users)
    });
    added.map_err(|why| Problem::new(409, "refused", why))?;
    noted(request, format!("user {name} added with the role {}", role.word()));
    let reply = shown(&copy).with("location", format!("{ACCOUNTS}/{name}"));
    Ok(HttpReply { status: 201, ..reply })
}

/// Change a user: oneself the password, an administrator everything.
pub fn change(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let known = named(request)?;
    check_version(request, &versioned_form(&known))?;
    if object(request)?.is_empty() {
        return Err(no_operation("Password, RoleId, Enabled"));
    }
    let change = asked(request)?;
    if change.name.as_ref().is_some_and(|name| *name != known.name) {
        return Err(property("property-read-only", "UserName", "a user keeps its name; add another one"));
    }
    let is_more = change.role.is_some_and(|role| role != known.role)
        || change.locked.is_some_and(|locked| locked != known.locked);
    if is_more && !is_administrator(request) {
        return Err(Problem::new(
            403,
            "forbidden",
            "a user may change only their own password; other changes need the role Administrator",
        ));
    }
    let hash = change.password.as_deref().map(password::hash);
    let changed = request.state.users.change(|users| {
        let Some(user) = users.iter_mut().find(|user| user.name == known.name) else { return Ok(None) };
        user.role = change.role.unwrap_or(user.role);
        user.locked = change.locked.unwrap_or(user.locked);
        user.password = hash.unwrap_or_else(|| user.password.clone());
        let copy = user.clone();
        check_left(users)?;
        Ok(Some(copy))
    });
    let changed = changed.map_err(|why| Problem::new(409, "refused", why))?;
    let changed = changed.ok_or_else(|| Problem::missing(format!("there is no user named {:?}", known.name)))?;
    request.state.sessions.end_all_of(&known.name);
    noted(request, format!("user {} changed: role {}, locked {}", known.name, changed.role.word(), changed.locked));
    Ok(shown(&changed))
}

/// Remove a user.
pub fn remove(request: &HttpRequest) -> Result<HttpReply, Problem> {
    check_version(request, &versioned_form(&named(request)?))?;
    crate::api::users::remove(request).map(|reply| reply.with("odata-version", "4.0"))
}
