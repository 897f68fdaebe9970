//! A client of the HTTP interfaces that does not use the server's code.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }
    /// It is a problem document with this status, whose text has these words.
    #[track_caller]
    pub fn refused(&self, status: u16, words: &[&str]) {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], status);
        let detail = problem["detail"].as_str().expect("a text");
        words.iter().for_each(|word| assert!(detail.contains(word), "{word:?} is not in: {detail}"));
    }
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

/// The address of a server, and a token.
#[derive(Clone)]
pub struct Web {
    pub host: String,
    pub token: Option<String>,
}

impl Web {
    /// A client of the address that the server prints: `http://HOST:PORT/`.
    pub fn at(url: &Value) -> Self {
        let url = url.as_str().expect("an address");
        Self { host: url.trim_start_matches("http://").trim_end_matches('/').into(), token: None }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
        stream
    }

    /// Send these bytes, and read one answer.
    pub fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("sent");
        read(&mut BufReader::new(stream))
    }

    pub fn ask_with(&self, method: &str, path: &str, body: Option<&str>, headers: &[(&str, &str)]) -> Answer {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text.push_str(&format!("Host: {}\r\n", self.host));
        }
        if let Some(token) = &self.token {
            text.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        headers.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
        if let Some(body) = body {
            if !headers.iter().any(|(name, _)| *name == "Content-Type") {
                text.push_str("Content-Type: application/json\r\n");
            }
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(body.unwrap_or_default());
        self.raw(text.as_bytes())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask_with("GET", path, None, &[])
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.ask_with("POST", path, Some(body), &[])
    }
}

/// Read an answer with its whole body.
pub fn read(reader: &mut impl BufRead) -> Answer {
    let (status, headers) = head(reader);
    let of = |name: &str| headers.iter().find(|(known, _): &&(String, String)| known.eq_ignore_ascii_case(name));
    let mut body = Vec::new();
    match of("content-length").and_then(|(_, value)| value.parse().ok()) {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body).expect("the body");
        }
        None => {
            reader.read_to_end(&mut body).expect("the body");
        }
    }
    Answer { status, headers, body }
}

/// Read the head of an answer.
pub fn head(reader: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut lines = std::iter::from_fn(|| {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        Some(line.trim_end().to_owned()).filter(|line| !line.is_empty())
    });
    let first = lines.next().expect("an answer");
    let status = first.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    let headers = lines.filter_map(|line| line.split_once(": ").map(|(a, b)| (a.to_owned(), b.to_owned()))).collect();
    (status, headers)
}
