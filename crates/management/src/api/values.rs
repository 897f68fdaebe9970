//! Values of the server that the API keeps apart from the configuration file.

use serde::Serialize;
use utoipa::ToSchema;

use crate::api_values::{KeptInput, KeptModel};
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;

/// The answer to a change.
#[derive(Serialize, ToSchema)]
pub struct KeptAnswer {
    /// Changes that are in force, changes for the next start, and failures; a sentence on each line.
    text: String,
    /// The kept values after the change.
    kept: KeptModel,
}

/// The kept values.
pub fn all(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(HttpReply::json(200, &request.state.controller.kept()))
}

/// Change kept values.
pub fn change(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let input: KeptInput = request.input()?;
    let controller = &request.state.controller;
    let done = controller.keep(&input);
    let came = match &done {
        Ok(_) => "done".to_owned(),
        Err(refusal) => format!("refused: {}", refusal.text.lines().next().unwrap_or_default()),
    };
    let parts = [
        ("cache", input.cache.is_some()),
        ("journal", input.journal.is_some()),
        ("spares", input.spares.is_some()),
        ("sinks", input.sinks.is_some()),
        ("exports", input.exports.is_some()),
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|(_, is_given)| *is_given).map(|(part, _)| part).collect();
    controller.audit(None, format!("{} by HTTP: {} set: {came}", request.user(), parts.join(", ")));
    request.state.forget_snapshot();
    Ok(HttpReply::json(200, &KeptAnswer { text: done?, kept: controller.kept() }))
}
