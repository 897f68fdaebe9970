//! What the API sets of the server beside the configuration file.

use serde::Serialize;
use utoipa::ToSchema;

use crate::http::reply::{Problem, Reply};
use crate::http::request::Request;
use crate::kept::{KeptInput, KeptModel};

/// The answer to a change.
#[derive(Serialize, ToSchema)]
pub struct KeptAnswer {
    /// What is in force now, what takes effect at the next start, and what could not be done; a sentence on each line.
    text: String,
    /// What is kept now.
    kept: KeptModel,
}

/// What is kept.
pub fn own(request: &Request) -> Result<Reply, Problem> {
    Ok(Reply::json(200, &request.state.controller.kept()))
}

/// Change what is kept.
pub fn change(request: &Request) -> Result<Reply, Problem> {
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
    Ok(Reply::json(200, &KeptAnswer { text: done?, kept: controller.kept() }))
}
