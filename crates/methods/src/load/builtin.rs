//! The mixes of the reviews.
//!
//! File-Server and Web-Server are the mixes that Iometer contained; four publications have the same values. The
//! Workstation mix was only printed as a picture, and the table below is from memory. Its shares add up to 100 %; it
//! has 60 % of reads and a mean size of 19 KB, which matches the text of the reviews. Figures from this mix have the
//! corresponding uncertainty.

use super::access::{AccessLine, AccessSpec};

const K: u32 = 1 << 10;

fn made(name: &str, lines: Vec<AccessLine>) -> AccessSpec {
    AccessSpec::new(name, lines).unwrap_or_else(|error| panic!("bug: the mix {name} is none: {error}"))
}

/// Requests of one size.
///
/// # Panics
/// No request can have the size or the percentage. Callers check both first.
#[must_use]
pub fn one_size(name: &str, bytes: u32, read: u8, random: u8) -> AccessSpec {
    made(name, vec![AccessLine::new(bytes, 100, read, random)])
}

/// Requests of 8 KiB at random positions; `reads` percent of them are reads.
#[must_use]
pub fn database(bytes: u32, read: u8) -> AccessSpec {
    one_size("database", bytes, read, 100)
}

/// The File-Server mix: 80 % reads, all at random positions.
#[must_use]
pub fn file_server() -> AccessSpec {
    let sizes = [(512, 10), (K, 5), (2 * K, 5), (4 * K, 60), (8 * K, 2), (16 * K, 4), (32 * K, 4), (64 * K, 10)];
    made("file-server", sizes.map(|(bytes, share)| AccessLine::new(bytes, share, 80, 100)).to_vec())
}

/// The Web-Server mix: only reads, all at random positions.
#[must_use]
pub fn web_server() -> AccessSpec {
    let sizes = [
        (512, 22),
        (K, 15),
        (2 * K, 8),
        (4 * K, 23),
        (8 * K, 15),
        (16 * K, 2),
        (32 * K, 6),
        (64 * K, 7),
        (128 * K, 1),
        (512 * K, 1),
    ];
    made("web-server", sizes.map(|(bytes, share)| AccessLine::new(bytes, share, 100, 100)).to_vec())
}

/// The Workstation mix. The module's description explains its uncertain source.
#[must_use]
pub fn workstation() -> AccessSpec {
    let lines = [
        (512, 1, 0, 100),
        (K, 2, 0, 100),
        (2 * K, 1, 0, 100),
        (4 * K, 50, 60, 80),
        (8 * K, 4, 50, 100),
        (16 * K, 6, 50, 100),
        (20 * K, 3, 50, 100),
        (24 * K, 2, 50, 100),
        (28 * K, 1, 50, 100),
        (32 * K, 13, 70, 70),
        (48 * K, 2, 50, 100),
        (52 * K, 1, 50, 100),
        (64 * K, 14, 80, 60),
    ];
    let lines = lines.map(|(bytes, share, read, random)| AccessLine::new(bytes, share, read, random));
    made("workstation", lines.to_vec())
}

/// The Streaming mix: large sequential reads of three sizes.
#[must_use]
pub fn streaming() -> AccessSpec {
    let sizes = [(64 * K, 34), (128 * K, 33), (256 * K, 33)];
    made("streaming", sizes.map(|(bytes, share)| AccessLine::new(bytes, share, 100, 0)).to_vec())
}

/// The load for a use, with its number of workers and the number of outstanding requests of each.
///
/// These mixes are conventions of this project. They come from general knowledge of such systems and not from a
/// measurement. Several guests of a hypervisor send small requests and write as much as they read. A player or editor
/// reads a few long streams. A backup writes few long streams and reads little. A home server does some of all this for
/// few users.
#[must_use]
pub fn used_for(word: &str) -> Option<(AccessSpec, u16, u32)> {
    const M: u32 = 1 << 20;
    let line = AccessLine::new;
    Some(match word {
        "vm" => {
            let lines = vec![
                line(4 * K, 55, 50, 90),
                line(8 * K, 15, 60, 90),
                line(16 * K, 12, 60, 80),
                line(32 * K, 8, 60, 60),
                line(64 * K, 10, 60, 40),
            ];
            (made(word, lines), 4, 4)
        }
        "video" => (made(word, vec![line(M, 80, 85, 0), line(256 * K, 15, 75, 0), line(4 * K, 5, 60, 100)]), 4, 2),
        "backup" => (made(word, vec![line(M, 85, 10, 0), line(64 * K, 10, 30, 50), line(4 * K, 5, 60, 100)]), 2, 4),
        "home" => {
            let lines = vec![
                line(4 * K, 25, 70, 90),
                line(16 * K, 15, 70, 80),
                line(64 * K, 25, 75, 30),
                line(256 * K, 15, 80, 10),
                line(M, 20, 75, 0),
            ];
            (made(word, lines), 2, 1)
        }
        _ => return None,
    })
}

/// The uses that [`used_for`] knows.
pub const USES: [&str; 4] = ["vm", "video", "backup", "home"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixes_have_the_sums_that_are_published() {
        assert_eq!((file_server().read_percent(), file_server().random_percent()), (80.0, 100.0));
        assert_eq!((web_server().read_percent(), web_server().writes()), (100.0, false));
        // 51.2 + 51.2 + 102.4 + 2457.6 + 163.84 + 655.36 + 1310.72 + 6553.6 bytes
        assert!((file_server().mean_bytes() - 11_345.92).abs() < 1e-6);
        let work = workstation();
        assert!((59.0..63.0).contains(&work.read_percent()), "{}", work.read_percent());
        assert!((18_500.0..20_500.0).contains(&work.mean_bytes()), "{}", work.mean_bytes());
        assert_eq!(streaming().random_percent(), 0.0);
    }

    #[test]
    fn every_use_is_a_load_of_its_kind() {
        let of = |word| used_for(word).unwrap_or_else(|| panic!("{word} is a use"));
        assert!(USES.iter().all(|word| of(word).0.name() == *word));
        // Guests write often and at random positions, a backup writes, a player reads sequentially.
        assert!((45.0..65.0).contains(&of("vm").0.read_percent()) && of("vm").0.random_percent() > 70.0);
        assert!(of("backup").0.read_percent() < 20.0 && of("backup").0.random_percent() < 15.0);
        assert!(of("video").0.read_percent() > 75.0 && of("video").0.random_percent() < 10.0);
        assert!(of("home").1 < of("vm").1 && used_for("tape").is_none());
    }
}
