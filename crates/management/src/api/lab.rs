//! The laboratory: jobs, reports, predictions.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::arrays::named;
use super::manage::checked;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::lab::{JobInput, PredictionInput};
use crate::limits::STORIES_MAX;

/// The policy of a report for browsers: it may be shown. Its styles are inside, and it has no programs.
const REPORT_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox allow-same-origin allow-popups; \
     form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

/// The report's name, typed again.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmReport {
    /// Name of the report, typed again as a confirmation.
    confirm: String,
}

/// Jobs and reports.
pub fn all(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(HttpReply::json(200, &request.state.controller.lab()?))
}

/// Systems, drives and patterns of the simulator.
pub fn choices(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(HttpReply::json(200, &request.state.controller.choices()?))
}

/// Begin a review.
pub fn review(request: &HttpRequest) -> Result<HttpReply, Problem> {
    begin(request, JobInput::Review(request.input()?))
}

/// Begin a plan.
pub fn plan(request: &HttpRequest) -> Result<HttpReply, Problem> {
    begin(request, JobInput::Plan(request.input()?))
}

/// Begin a comparison.
pub fn comparison(request: &HttpRequest) -> Result<HttpReply, Problem> {
    begin(request, JobInput::Comparison(request.input()?))
}

fn begin(request: &HttpRequest, input: JobInput) -> Result<HttpReply, Problem> {
    let begun = request.state.controller.begin_job(&input, request.user());
    let came = match &begun {
        Ok(job) => format!("begun: {}", job.command),
        Err(refusal) => format!("refused: {}", refusal.text.lines().next().unwrap_or_default()),
    };
    audit(request, &format!("report {:?}: {came}", input.name()));
    Ok(HttpReply::json(201, &begun?))
}

/// End a job.
pub fn cancel(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let number = request.parts[0].parse().ok();
    let job = number.and_then(|number| request.state.controller.cancel_job(number));
    let job = job.ok_or_else(|| Problem::missing(format!("no job {} runs", request.parts[0])))?;
    audit(request, &format!("report {:?}: cancelled", job.name));
    Ok(HttpReply::json(200, &job))
}

/// A file of a report.
pub fn file(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let (name, file) = (&request.parts[0], &request.parts[1]);
    let bytes = request.state.controller.report(name, file)?;
    let bytes = bytes.ok_or_else(|| Problem::missing(format!("there is no file {file:?} of a report {name:?}")))?;
    let kind = if file.ends_with(".html") { "text/html; charset=utf-8" } else { "application/json" };
    Ok(HttpReply::text(kind, bytes).with("content-security-policy", REPORT_POLICY))
}

/// Remove a report.
pub fn remove(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let name = &request.parts[0];
    let ConfirmReport { confirm } = request.input()?;
    if confirm != *name {
        let text = format!("confirm={confirm}: type the name of the report, {name}, to confirm this");
        return Err(Problem::new(428, "confirm", text));
    }
    if !request.state.controller.remove_report(name)? {
        return Err(Problem::missing(format!("there is no report {name:?}")));
    }
    audit(request, &format!("report {name:?}: removed"));
    Ok(HttpReply::empty(204))
}

/// Predict the figures of levels.
pub fn predict(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let input: PredictionInput = request.input()?;
    checked(&input.creation)?;
    Ok(HttpReply::json(200, &request.state.controller.predict(&input)?))
}

/// The decisions of an array, and its limit.
pub fn explain(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = named(request)?;
    Ok(HttpReply::json(200, &request.state.controller.explain(&array.name)?))
}

/// Stories of the slowest requests, or of one.
pub fn stories(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = named(request)?;
    let (slowest, one) = (request.number("slowest")?, request.number("request")?);
    let controller = &request.state.controller;
    let stories: Value = match (slowest, one) {
        (Some(_), Some(_)) => return Err(Problem::bad("give slowest or request, not both")),
        (None, Some(number)) => controller.story(&array.name, number)?,
        (count, None) => {
            let count = count.unwrap_or(1);
            if count == 0 || count > STORIES_MAX {
                return Err(Problem::bad(format!("slowest={count}: use 1 to {STORIES_MAX}")));
            }
            controller.slowest(&array.name, count)?
        }
    };
    Ok(HttpReply::json(200, &stories))
}

fn audit(request: &HttpRequest, what: &str) {
    request.state.controller.audit(None, format!("{} by HTTP: {what}", request.user()));
}
