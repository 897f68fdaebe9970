//! The table of routes: from it come the way to a handler, the role that a request needs, and the OpenAPI document.

use hyper::Method;

use super::reply::{HttpReply, Problem};
use super::request::HttpRequest;
use openraid_status::Role;

/// The handler of a request.
pub type Handler = fn(&HttpRequest) -> Result<HttpReply, Problem>;

/// Schemas by their names.
pub type Schemas = Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>;

/// Adds a type to the schemas, and returns its name.
pub type Schema = fn(&mut Schemas) -> String;

/// The right that a client needs for a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Every client.
    Nothing,
    /// A session with at least this role.
    Role(Role),
    /// Every client of this machine if no other can come, else a session.
    Scrape,
}

#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub method: HttpMethod,
    /// Its path; parts in braces are named.
    pub path: &'static str,
    /// The right that it needs.
    pub need: Need,
    /// Its description, in a sentence.
    pub about: &'static str,
    /// The type of its body.
    pub takes: Option<Schema>,
    /// The body that it gives.
    pub gives: Option<Schema>,
    /// The type of its query.
    pub query: &'static [&'static str],
    pub handler: Handler,
}

/// Methods that there are routes for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HttpMethod {
    Get,
    /// Do.
    Post,
    /// Change.
    Patch,
    /// End or remove.
    Delete,
}

impl HttpMethod {
    /// As HTTP writes it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    fn is(self, method: &Method) -> bool {
        method.as_str() == self.word() || (self == Self::Get && *method == Method::HEAD)
    }
}

/// The route of a request, and the parts of the path that it names.
///
/// # Errors
/// There is none.
pub fn find(routes: &[Route], method: &Method, path: &[String]) -> Result<(Route, Vec<String>), Problem> {
    let mut allowed = Vec::new();
    for route in routes {
        let Some(parts) = matches(route.path, path) else { continue };
        if route.method.is(method) {
            return Ok((*route, parts));
        }
        allowed.push(route.method.word());
    }
    if allowed.is_empty() {
        let path = shown(path);
        return Err(Problem::missing(format!("there is nothing at {path}; see /api/v1/openapi.json")));
    }
    let allow = allowed.join(", ");
    let text = format!("{method} is not possible at {}; use {allow}", shown(path));
    Err(Problem::new(405, "method-not-allowed", text).with("allow", allow))
}

/// The methods that a path has, as `Allow` writes them.
pub fn allowed(routes: &[Route], path: &[String]) -> String {
    let of_path = routes.iter().filter(|route| matches(route.path, path).is_some());
    let words: Vec<&str> =
        of_path.map(|route| if route.method == HttpMethod::Get { "GET, HEAD" } else { route.method.word() }).collect();
    words.join(", ")
}

/// The path in a message.
fn shown(path: &[String]) -> String {
    format!("/{}", path.join("/"))
}

/// Only the name of an array may have a slash: md gives such names, and other parts may be those of files.
fn matches(pattern: &str, path: &[String]) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let (mut wanted, mut given) = (pattern.strip_prefix('/')?.split('/'), path.iter());
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(parts),
            (Some(name), Some(part)) if name == part => {}
            (Some("{array}"), Some(part)) if !part.is_empty() => parts.push(part.clone()),
            (Some(name), Some(part)) if name.starts_with('{') && !part.is_empty() && !part.contains('/') => {
                parts.push(part.clone());
            }
            _ => return None,
        }
    }
}
