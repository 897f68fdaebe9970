//! Tokens that last, for administrators.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::users::noted;
use crate::auth::tokens::{RevokeError, SessionToken};
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use openraid_status::Role;

/// A token that lasts until it is revoked.
#[derive(Serialize, ToSchema)]
pub struct TokenModel {
    /// Name of the token.
    pub name: String,
    /// Role of its holder.
    pub role: Role,
    /// Seconds since 1970 at which it was made.
    pub since_seconds: u64,
    /// Secret of a new token, to be sent as `Authorization: Bearer TOKEN`; it is shown once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// All tokens that last.
#[derive(Serialize, ToSchema)]
pub struct TokensModel {
    /// All tokens, in the order of their names.
    pub tokens: Vec<TokenModel>,
}

/// A new token.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Name of the new token.
    pub name: String,
    /// Role of its holder.
    pub role: Role,
}

fn model(token: SessionToken, secret: Option<String>) -> TokenModel {
    TokenModel { name: token.name, role: token.role, since_seconds: token.since_seconds, token: secret }
}

/// All tokens.
pub fn all(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let tokens = request.state.tokens.all().map_err(|why| Problem::new(500, "failed", why))?;
    Ok(HttpReply::json(200, &TokensModel { tokens: tokens.into_iter().map(|token| model(token, None)).collect() }))
}

/// Make a token.
pub fn make(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let NewToken { name, role } = request.input()?;
    let made = request.state.tokens.make(&name, role).map_err(|why| Problem::new(409, "refused", why));
    let (secret, token) = made?;
    noted(request, format!("token {name} made with the role {}", role.word()));
    Ok(HttpReply::json(201, &model(token, Some(secret))).with("location", format!("/api/v1/tokens/{name}")))
}

/// Revoke a token.
pub fn revoke(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let name = &request.parts[0];
    request.state.tokens.revoke(name).map_err(|error| match &error {
        RevokeError::Unknown(_) => Problem::missing(error.to_string()),
        RevokeError::File(_) => Problem::new(500, "failed", error.to_string()),
    })?;
    noted(request, format!("token {name} revoked"));
    Ok(HttpReply::empty(204))
}
