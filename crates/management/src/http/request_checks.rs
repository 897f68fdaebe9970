//! Checks of a request before it is looked at: the host that it names, the page that it comes from, its path.

use std::borrow::Cow;
use std::net::IpAddr;

use hyper::{HeaderMap, Method};
use percent_encoding::percent_decode_str;

use super::reply::Problem;

/// The header Host must be an address, a name of this machine, or a configured name. Otherwise the page of a foreign
/// site could let its own name resolve to this server (DNS rebinding).
///
/// # Errors
/// The header is missing, or has another name.
pub fn check_host(headers: &HeaderMap, names: &[String]) -> Result<(), Problem> {
    let Some(host) = headers.get("host").and_then(|host| host.to_str().ok()) else {
        return Err(Problem::bad("the header Host is missing, or is not text"));
    };
    let name = host_name(host);
    let is_address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    let is_name = |known: &String| known.eq_ignore_ascii_case(name);
    if is_address || name.eq_ignore_ascii_case("localhost") || names.iter().any(is_name) {
        return Ok(());
    }
    let text = format!("{name:?} is not a name of this server; add it to management.names, or use its address");
    Err(Problem::new(421, "wrong-host", text))
}

/// The host without its port.
fn host_name(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if host[colon + 1..].bytes().all(|byte| byte.is_ascii_digit()) && !host.ends_with(']') => {
            &host[..colon]
        }
        _ => host,
    }
}

/// A page of another site may not change anything here, and may not read answers.
///
/// # Errors
/// It tries to.
pub fn check_origin(method: &Method, headers: &HeaderMap, is_tls: bool) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let refused = |what: &str| {
        Err(Problem::new(403, "cross-site", format!("{what}: pages of other sites may not use this server")))
    };
    if let Some(origin) = text("origin") {
        let scheme = if is_tls { "https" } else { "http" };
        let here = format!("{scheme}://{}", text("host").unwrap_or_default());
        if !origin.eq_ignore_ascii_case(&here) {
            return refused(&format!("Origin {origin}"));
        }
    }
    let is_safe = matches!(*method, Method::GET | Method::HEAD);
    match text("sec-fetch-site") {
        Some("same-origin" | "none") | None => Ok(()),
        // A link on another page may lead to the console.
        Some(_) if is_safe && text("sec-fetch-mode") == Some("navigate") => Ok(()),
        Some(site) => refused(&format!("Sec-Fetch-Site {site}")),
    }
}

/// The parts of the path between its slashes, each decoded. A path that could mean another place than it seems to is refused.
///
/// # Errors
/// It is no plain path.
pub fn path_of(raw: &str) -> Result<Vec<String>, Problem> {
    let parts: Option<Vec<String>> = raw
        .strip_prefix('/')
        .map_or_else(|| Some(vec!["..".into()]), |inner| inner.split('/').map(|part| decoded(part, false)).collect());
    let parts = parts.ok_or_else(|| Problem::bad("the path is not UTF-8 text"))?;
    let is_bad = |part: &str| part == "." || part == "..";
    let leads_away = |part: &String| {
        part.split(['/', '\\']).any(is_bad) || part.contains("//") || part.chars().any(char::is_control)
    };
    let (_, inner) = parts.split_last().expect("one part at least");
    if parts.iter().any(leads_away) || inner.iter().any(String::is_empty) {
        return Err(Problem::bad("the path has parts that lead elsewhere: . or .. or nothing between two slashes"));
    }
    Ok(parts)
}

/// The query, decoded.
///
/// # Errors
/// It is no text, or names something twice.
pub fn query_of(raw: &str) -> Result<Vec<(String, String)>, Problem> {
    let mut query: Vec<(String, String)> = Vec::new();
    for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let both = decoded(key, true).zip(decoded(value, true));
        let (key, value) = both.ok_or_else(|| Problem::bad("the query is not UTF-8 text"))?;
        if query.iter().any(|(known, _)| *known == key) {
            return Err(Problem::bad(format!("the query has {key} twice")));
        }
        query.push((key, value));
    }
    Ok(query)
}

/// None if a `%` stands before anything but two digits, which the library would pass through, or if the result is no text.
fn decoded(raw: &str, plus: bool) -> Option<String> {
    let is_escape = |after: &str| after.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    let raw = if plus { raw.replace('+', " ") } else { raw.to_owned() };
    let text = raw.split('%').skip(1).all(is_escape).then(|| percent_decode_str(&raw).decode_utf8())?;
    text.ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().expect("name"), value.parse().expect("value"))).collect()
    }

    #[test]
    fn a_name_that_points_here_without_being_ours_is_refused() {
        let names = ["nas.example".to_owned()];
        for good in ["localhost", "127.0.0.1:8080", "[::1]:8080", "[::1]", "NAS.example:443", "10.0.0.9"] {
            assert_eq!(check_host(&headers(&[("host", good)]), &names), Ok(()), "{good}");
        }
        for bad in ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "", "nas.example.evil:80"] {
            assert!(check_host(&headers(&[("host", bad)]), &names).is_err(), "{bad}");
        }
        assert!(check_host(&headers(&[]), &names).is_err());
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let at = |more: &[(&'static str, &str)]| headers(&[&[("host", "localhost:1")], more].concat());
        let check = |method: &Method, more: &[(&'static str, &str)]| check_origin(method, &at(more), false).is_ok();
        assert!(check(&Method::POST, &[]));
        assert!(check(&Method::POST, &[("origin", "http://localhost:1"), ("sec-fetch-site", "same-origin")]));
        for origin in ["http://evil.example", "https://localhost:1", "null", "http://localhost:2"] {
            assert!(!check(&Method::POST, &[("origin", origin)]), "{origin}");
        }
        assert!(!check(&Method::POST, &[("sec-fetch-site", "cross-site")]));
        assert!(!check(&Method::GET, &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")]));
        assert!(check(&Method::GET, &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]));
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        let parts = |raw: &str| path_of(raw).map(|parts| parts.join("|"));
        assert_eq!(parts("/api/v1/arrays/a%20b").as_deref(), Ok("api|v1|arrays|a b"));
        assert_eq!(parts("/").as_deref(), Ok(""));
        // A slash that is encoded ends no part.
        assert_eq!(parts("/arrays/a%2fb/").as_deref(), Ok("arrays|a/b|"));
        let bad = [
            "/..",
            "/a/../b",
            "/%2e%2e/x",
            "/a//b",
            "//x",
            "x",
            "/a%00",
            "/a%zz",
            "/a%f",
            "/%ff",
            "/a\\..\\b",
            "/a%2f..%2fb",
            "/%2f%2fx",
            "*",
        ];
        for bad in bad {
            assert!(path_of(bad).is_err(), "{bad}");
        }
        assert_eq!(query_of("a=1&b=x+y%26"), Ok(vec![("a".into(), "1".into()), ("b".into(), "x y&".into())]));
        assert!(query_of("a=1&a=2").is_err());
    }
}
