//! Names that are made from the name of a recorded array.

/// The name of an array among others with its name: with the first eight digits of its identity.
pub fn distinct_name(name: &str, uuid: &str) -> String {
    format!("{name}-{}", uuid.get(..8).unwrap_or(uuid)).trim_start_matches('-').into()
}

/// The name of one of several raw drives that are recorded under one name.
pub fn raw_drive_name(name: &str, nth: u32) -> String {
    format!("{name}-{nth}")
}

/// The number of this raw drive among the drives that are recorded under a name; `None` if it has another name.
pub fn raw_drive_number(drive: &str, name: &str) -> Option<u32> {
    let nth = drive.strip_prefix(name)?.strip_prefix('-')?.parse().ok()?;
    (raw_drive_name(name, nth) == drive).then_some(nth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_drive_belongs_to_the_name_before_its_number_only() {
        for nth in [0, 7, 10, u32::MAX] {
            assert_eq!(raw_drive_number(&raw_drive_name("data", nth), "data"), Some(nth));
        }
        for other in ["data", "database", "database-0", "data-", "data-0-1", "data-x", "data-+1", "data-01", "dat-0"] {
            assert_eq!(raw_drive_number(other, "data"), None, "{other:?}");
        }
        assert_eq!(raw_drive_number("data-0-1", "data-0"), Some(1));
    }
}
