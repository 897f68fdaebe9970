//! The rate of a link by its standard: MB (10^6 bytes) per second in one direction, without the protocols above it.
//!
//! Sources: SATA 1.0 to 3.0 and SAS-1, SAS-2 (8b/10b, so a tenth of the bit rate); SPI-4 (Ultra320); PCI 2.2 and PCI-X
//! 1.0 (bytes x clock, as rounded by their data sheets); PCI Express 1.1, 2.0 (8b/10b) and 3.0 (128b/130b) per lane;
//! DMI 2.0 equals four lanes of PCI Express 2.0.

use crate::metric::NotApplicable;

/// 8 GT/s, 128 of 130 bits, 8 bits a byte.
const PCIE3_LANE: f64 = 8000.0 * 128.0 / 130.0 / 8.0;

const LINKS: &[(&str, f64)] = &[
    ("sata1", 150.0),
    ("sata3", 300.0),
    ("sata6", 600.0),
    ("sas3", 300.0),
    ("sas6", 600.0),
    ("u320", 320.0),
    ("pci64_33", 266.0),
    ("pci64_66", 533.0),
    ("pcix64_133", 1064.0),
    ("pcie1_x1", 250.0),
    ("pcie1_x4", 1000.0),
    ("pcie1_x8", 2000.0),
    ("pcie2_x1", 500.0),
    ("pcie2_x4", 2000.0),
    ("pcie2_x8", 4000.0),
    ("pcie3_x1", PCIE3_LANE),
    ("pcie3_x4", 4.0 * PCIE3_LANE),
    ("pcie3_x8", 8.0 * PCIE3_LANE),
    ("dmi2", 2000.0),
];

/// MB/s of a link in one direction.
///
/// # Errors
/// There is no link of this name.
pub fn link_mbps(name: &str) -> Result<f64, NotApplicable> {
    let found = LINKS.iter().find(|(link, _)| *link == name).map(|(_, mbps)| *mbps);
    found.ok_or_else(|| {
        let names: Vec<&str> = LINKS.iter().map(|(link, _)| *link).collect();
        NotApplicable::new(format!("unknown link; known are {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis_arguments::BUSES;

    #[test]
    fn links_carry_width_times_clock() {
        // Serial links with 8b/10b: a tenth of the bit rate. Parallel links: bytes times MHz.
        let within = |name: &str, mbps: f64| {
            let given = link_mbps(name).unwrap_or_default();
            assert!((given / mbps - 1.0).abs() < 0.01, "{name}: {given} against {mbps}");
        };
        within("sata1", 1500.0 / 10.0);
        within("sas6", 6000.0 / 10.0);
        within("pci64_33", 8.0 * 100.0 / 3.0);
        within("pci64_66", 8.0 * 200.0 / 3.0);
        within("pcix64_133", 8.0 * 400.0 / 3.0);
        within("u320", 2.0 * 160.0);
        for (lanes, width) in [("x1", 1.0), ("x4", 4.0), ("x8", 8.0)] {
            within(&format!("pcie1_{lanes}"), 2500.0 / 10.0 * width);
            within(&format!("pcie2_{lanes}"), 5000.0 / 10.0 * width);
            within(&format!("pcie3_{lanes}"), 984.6 * width);
        }
        for bus in BUSES {
            assert!(link_mbps(bus).is_ok(), "{bus}");
        }
        assert!(link_mbps("token_ring").is_err());
    }
}
