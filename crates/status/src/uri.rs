//! Texts in addresses: names of arrays may have any character.

/// A part of an address as RFC 3986 writes it: letters, digits, `-._~` and the bytes of `also` as they are, others as `%XX`.
pub fn encoded(part: &str, also: &[u8]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also.contains(&byte);
    let one = |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    part.bytes().map(one).collect()
}
