//! Users, for administrators.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::password;
use crate::auth::users::{check_name, User};
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use openraid_status::Role;

/// A user without the password.
#[derive(Serialize, ToSchema)]
pub struct UserModel {
    /// Name of the user.
    pub name: String,
    /// Role of the user.
    pub role: Role,
    /// Is the user barred from signing in?
    pub locked: bool,
}

/// All users.
#[derive(Serialize, ToSchema)]
pub struct UsersModel {
    /// All users, in the order of their names.
    pub users: Vec<UserModel>,
}

/// A new user.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// Name of the new user.
    pub name: String,
    /// Role of the new user.
    #[serde(default = "read_only")]
    pub role: Role,
    /// Password of the new user.
    pub password: String,
}

const fn read_only() -> Role {
    Role::ReadOnly
}

/// The changes of a user.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeUser {
    /// The new role; without it, the role stays.
    #[serde(default)]
    pub role: Option<Role>,
    /// The new password; without it, the password stays.
    #[serde(default)]
    pub password: Option<String>,
    /// Bar the user from signing in, or permit it again; without it, this stays.
    #[serde(default)]
    pub locked: Option<bool>,
}

fn model(user: &User) -> UserModel {
    UserModel { name: user.name.clone(), role: user.role, locked: user.locked }
}

/// All users.
pub fn all(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let users = request.state.users.all().map_err(|why| Problem::new(500, "failed", why))?;
    Ok(HttpReply::json(200, &UsersModel { users: users.iter().map(model).collect() }))
}

/// Write to the event log that the client has changed something.
pub fn noted(request: &HttpRequest, text: String) {
    request.state.controller.audit(None, format!("{} by HTTP: {text}", request.user()));
}

/// Add a user.
pub fn add(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let NewUser { name, role, password } = request.input()?;
    check_name(&name).map_err(Problem::bad)?;
    password::check_new(&password).map_err(Problem::bad)?;
    let user = User { name: name.clone(), role, password: password::hash(&password), locked: false };
    let shown = model(&user);
    let added = request.state.users.change(|users| {
        if users.iter().any(|known| known.name == name) {
            return Err(format!("there is a user named {name} already"));
        }
        users.push(user);
        users.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    });
    added.map_err(|why| Problem::new(409, "refused", why))?;
    noted(request, format!("user {name} added with the role {}", role.word()));
    Ok(HttpReply::json(201, &shown).with("location", format!("/api/v1/users/{name}")))
}

/// An administrator must be left that can sign in.
///
/// # Errors
/// There is none.
pub fn check_left(users: &[User]) -> Result<(), String> {
    if users.is_empty() || users.iter().any(|user| user.role == Role::Administrator && !user.locked) {
        return Ok(());
    }
    Err("no administrator that can sign in would be left".into())
}

/// Change a user.
pub fn change(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let input: ChangeUser = request.input()?;
    let name = request.parts[0].clone();
    if let Some(password) = &input.password {
        password::check_new(password).map_err(Problem::bad)?;
    }
    let hash = input.password.as_deref().map(password::hash);
    let changed = request.state.users.change(|users| {
        let Some(user) = users.iter_mut().find(|user| user.name == name) else { return Ok(None) };
        user.role = input.role.unwrap_or(user.role);
        user.locked = input.locked.unwrap_or(user.locked);
        user.password = hash.unwrap_or_else(|| user.password.clone());
        let shown = model(user);
        check_left(users)?;
        Ok(Some(shown))
    });
    let changed = changed.map_err(|why| Problem::new(409, "refused", why))?;
    let changed = changed.ok_or_else(|| Problem::missing(format!("there is no user named {name:?}")))?;
    request.state.sessions.end_all_of(&name);
    noted(request, format!("user {name} changed: role {}, locked {}", changed.role.word(), changed.locked));
    Ok(HttpReply::json(200, &changed))
}

/// Remove a user.
pub fn remove(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let name = request.parts[0].clone();
    let removed = request.state.users.change(|users| {
        let before = users.len();
        users.retain(|user| user.name != name);
        check_left(users)?;
        Ok(users.len() < before)
    });
    if !removed.map_err(|why| Problem::new(409, "refused", why))? {
        return Err(Problem::missing(format!("there is no user named {name:?}")));
    }
    request.state.sessions.end_all_of(&name);
    noted(request, format!("user {name} removed"));
    Ok(HttpReply::empty(204))
}
