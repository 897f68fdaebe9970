//! A small reader of XML that knows just enough to refuse text that is not well-formed.

use std::collections::BTreeSet;

/// One element as it begins.
#[derive(Clone, Debug)]
pub struct Element {
    pub tag: String,
    pub attributes: Vec<(String, String)>,
    /// The text directly within it, entities as written.
    pub text: String,
    /// Tags and indices of the elements around it, outermost first.
    pub around: Vec<usize>,
}

impl Element {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn number(&self, name: &str) -> f64 {
        let Some(value) = self.get(name) else { panic!("{} has no {name}", self.tag) };
        value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number"))
    }

    pub fn has_class(&self, class: &str) -> bool {
        self.get("class").is_some_and(|all| all.split(' ').any(|one| one == class))
    }
}

/// All elements of a document, in the order of their beginnings.
///
/// # Panics
/// If the text is not well-formed: tags that do not match, bad attributes, bare `&` or `<`, ids given twice,
/// references to ids that are not there.
pub fn read(document: &str) -> Vec<Element> {
    let mut rest = document.strip_prefix("<!DOCTYPE html>\n").expect("no document type");
    let mut elements: Vec<Element> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    while let Some(at) = rest.find('<') {
        let (text, tag) = rest.split_at(at);
        check_text(text);
        match open.last() {
            Some(&parent) => elements[parent].text.push_str(text.trim()),
            None => assert_eq!(text.trim(), "", "text outside of the root"),
        }
        let end = tag.find('>').expect("a tag that does not end");
        let inner = &tag[1..end];
        rest = &tag[end + 1..];
        if let Some(name) = inner.strip_prefix('/') {
            let begun = open.pop().unwrap_or_else(|| panic!("</{name}> closes nothing"));
            assert_eq!(elements[begun].tag, name, "tags cross");
            continue;
        }
        let (inner, empty) = inner.strip_suffix('/').map_or((inner, false), |inner| (inner, true));
        assert!(!open.is_empty() || elements.is_empty(), "two roots");
        let element = begin(inner, &open);
        elements.push(element);
        if !empty {
            open.push(elements.len() - 1);
        }
    }
    assert_eq!(rest.trim(), "", "text after the root");
    assert_eq!(open, Vec::<usize>::new(), "elements are left open");
    references(&elements);
    elements
}

fn begin(inner: &str, open: &[usize]) -> Element {
    let (tag, mut rest) = inner.split_once(' ').unwrap_or((inner, ""));
    assert!(!tag.is_empty() && tag.chars().all(|c| c.is_ascii_alphanumeric()), "bad tag: {tag}");
    let mut attributes: Vec<(String, String)> = Vec::new();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").unwrap_or_else(|| panic!("bad attribute: {rest}"));
        let (value, behind) = value.split_once('"').unwrap_or_else(|| panic!("open attribute: {rest}"));
        assert!(name.chars().all(|c| c.is_ascii_alphabetic() || c == '-'), "bad attribute name: {name}");
        assert!(!attributes.iter().any(|(known, _)| known == name), "{name} is given twice");
        assert!(!value.contains('<'));
        check_text(value);
        attributes.push((name.into(), value.into()));
        rest = behind.strip_prefix(' ').unwrap_or(behind);
    }
    Element { tag: tag.into(), attributes, text: String::new(), around: open.to_vec() }
}

/// Every `&` begins one of the entities that XML knows or a number of a character that it allows.
fn check_text(text: &str) {
    assert!(text.is_ascii(), "not ASCII: {text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "control characters: {text:?}");
    for piece in text.split('&').skip(1) {
        let (entity, _) = piece.split_once(';').unwrap_or_else(|| panic!("bare &: {piece}"));
        if ["amp", "lt", "gt", "quot"].contains(&entity) {
            continue;
        }
        let code = entity.strip_prefix('#').and_then(|digits| digits.parse::<u32>().ok());
        let character = code.and_then(char::from_u32).unwrap_or_else(|| panic!("bad entity: {entity}"));
        let allowed = matches!(character, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
        assert!(allowed, "a character that XML forbids: {entity}");
    }
}

fn references(elements: &[Element]) {
    let mut ids = BTreeSet::new();
    for id in elements.iter().filter_map(|element| element.get("id")) {
        assert!(ids.insert(id), "id {id} is given twice");
    }
    for element in elements {
        let links = element.get("href").and_then(|href| href.strip_prefix('#'));
        let labels = element.get("aria-labelledby").into_iter().flat_map(|all| all.split(' '));
        for wanted in links.into_iter().chain(labels) {
            assert!(ids.contains(wanted), "nothing has the id {wanted}");
        }
    }
}
