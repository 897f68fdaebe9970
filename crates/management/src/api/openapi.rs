//! The OpenAPI document, made from the table of routes and from the types that they take and give.

use std::collections::BTreeMap;

use serde_json::{json, Map, Value};

use super::ROUTES;
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::http::route::{Need, Route, Schemas};

/// The document.
pub fn reply(_: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(HttpReply::json(200, &document()))
}

pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in ROUTES.iter().filter(|route| route.path.starts_with("/api/")) {
        let operation = operation(route, &mut schemas);
        paths.entry(route.path).or_default().insert(route.method.word().to_lowercase(), operation);
    }
    let schemas: BTreeMap<String, Value> =
        schemas.into_iter().map(|(name, schema)| (name, serde_json::to_value(schema).unwrap_or_default())).collect();
    let mut components = json!({
        "schemas": schemas,
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "bearer"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": crate::http::serve::COOKIE},
        },
    });
    components["schemas"]["Problem"] = problem();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "openraid",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The functions of the command line, over HTTP. Errors are problem documents of RFC 9457.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": components,
        "security": [{"bearer": []}, {"cookie": []}],
    })
}

fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": {"type": "string", "description": "urn:openraid:problem:WORD"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string", "description": "The cause, and what to do."},
        },
    })
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let content =
        |name: &str| json!({"application/json": {"schema": {"$ref": format!("#/components/schemas/{name}")}}});
    let named = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name: &str, place: &str, required: bool| json!({"name": name, "in": place, "required": required, "schema": {"type": "string"}});
    let mut parameters: Vec<Value> = named.map(|name| parameter(name, "path", true)).collect();
    parameters.extend(route.query.iter().map(|name| parameter(name, "query", *name == "offset")));
    let changes_array = route.path.contains("{array}") && route.method.word() != "GET";
    if changes_array {
        parameters.push(parameter("If-Match", "header", false));
    }
    let success = match (route.method.word(), route.path) {
        ("POST", "/api/v1/arrays" | "/api/v1/session" | "/api/v1/users") => "201",
        ("POST", "/api/v1/lab/reviews" | "/api/v1/lab/plans" | "/api/v1/lab/comparisons") => "201",
        (
            "DELETE",
            "/api/v1/lab/reports/{report}"
            | "/api/v1/session"
            | "/api/v1/users/{user}"
            | "/api/v1/schedules/{schedule}",
        ) => "204",
        _ => "200",
    };
    let mut answer = json!({"description": "Done."});
    if let Some(gives) = route.gives {
        answer["content"] = content(&gives(schemas));
        if route.path == "/api/v1/journal" {
            let schema = &mut answer["content"]["application/json"]["schema"];
            *schema = json!({"anyOf": [schema.take(), {"type": "null"}]});
        }
    } else if success != "204" {
        answer["content"] = match route.path.ends_with(".csv") {
            true => json!({"text/csv": {"schema": {"type": "string"}}}),
            false => json!({"application/json": {"schema": {}}}),
        };
    }
    let problem = json!({
        "description": "It was not done: the document says why, and what to do.",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    });
    let role = match route.need {
        Need::Role(role) => format!(" Needs the role {}.", role.word()),
        Need::Nothing | Need::Scrape => String::new(),
    };
    let mut operation = json!({
        "summary": route.about,
        "description": format!("{}{role}", route.about),
        "operationId": operation_id(route),
        "parameters": parameters,
        "responses": {success: answer, "4XX": problem, "5XX": problem},
    });
    if let Some(takes) = route.takes {
        operation["requestBody"] = json!({"required": true, "content": content(&takes(schemas))});
    }
    if route.need == Need::Nothing {
        operation["security"] = json!([]);
    }
    operation
}

fn operation_id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/api/v1/").replace(['{', '}'], "").replace(['/', '.'], "_");
    format!("{}_{path}", route.method.word().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every reference of the document leads to a schema, and every operation has a name of its own.
    #[test]
    fn the_document_holds_together() {
        let document = document();
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(references.len() > 30, "{}", references.len());
        for reference in references {
            let name = reference.strip_prefix("#/components/schemas/").expect("a schema");
            assert!(document["components"]["schemas"].get(name).is_some(), "{name} is not there");
        }
        let mut ids: Vec<String> = ROUTES.iter().map(operation_id).collect();
        ids.sort();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count);
        let array = &document["components"]["schemas"]["ArrayModel"];
        assert_eq!(array["properties"]["size_bytes"]["type"], "integer");
        assert_eq!(
            document["paths"]["/api/v1/arrays/{array}/fail"]["post"]["responses"]["200"]["description"],
            "Done."
        );
    }

    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|inner| collect(inner, found));
            }
            Value::Array(all) => all.iter().for_each(|inner| collect(inner, found)),
            _ => {}
        }
    }
}
