//! Drives with shingled recording: a rebuild onto one may take days, because random writes rewrite whole zones.
//!
//! Host-managed and host-aware drives say so in sysfs. Drive-managed ones do not: their models are listed here, from the lists
//! that Western Digital, Seagate and Toshiba have published since April 2020.

/// The beginnings of models that are drive-managed.
const MODELS: &[&str] = &[
    "WDC WD20EFAX",
    "WDC WD30EFAX",
    "WDC WD40EFAX",
    "WDC WD60EFAX",
    "WDC WD10SPZX",
    "WDC WD20SPZX",
    "WDC WD20EZAZ",
    "WDC WD60EZAZ",
    "ST2000DM008",
    "ST3000DM007",
    "ST4000DM004",
    "ST5000DM000",
    "ST6000DM003",
    "ST8000DM004",
    "ST8000AS0002",
    "ST5000LM000",
    "ST4000LM024",
    "ST3000LM024",
    "ST2000LM015",
    "ST1000LM048",
    "TOSHIBA HDWL110",
    "TOSHIBA HDWL120",
    "TOSHIBA DT02ABA400",
    "TOSHIBA DT02ABA600",
    "TOSHIBA MQ04ABF100",
    "TOSHIBA MQ04UBD200",
];

/// Why a drive is known to be shingled, if it is. `zoned` is sysfs's `queue/zoned`.
pub fn why(model: Option<&str>, zoned: Option<&str>) -> Option<String> {
    match (zoned, model) {
        (Some(zoned @ ("host-aware" | "host-managed")), _) => Some(format!("the kernel says that it is {zoned}")),
        (_, Some(model)) => {
            let known = MODELS.iter().find(|known| model.starts_with(**known) || model.starts_with(bare(known)));
            known.map(|_| format!("its maker says so of {model}"))
        }
        _ => None,
    }
}

/// The warning about a shingled drive, by its model and sysfs's `queue/zoned`.
pub fn warning(model: Option<&str>, zoned: Option<&str>) -> Option<String> {
    let why = why(model, zoned)?;
    Some(format!("it has shingled recording ({why}): a rebuild onto it may take days"))
}

/// The model without its maker, as the kernel reports it for drives of some controllers.
fn bare(model: &'static str) -> &'static str {
    model.split_once(' ').map_or(model, |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shingled_drives_are_known_by_the_kernel_or_by_their_model() {
        assert!(why(None, Some("host-managed")).is_some_and(|why| why.contains("host-managed")));
        for model in ["WDC WD40EFAX-68JH4N0", "WD40EFAX-68JH4N0", "ST8000DM004-2CX188"] {
            assert!(why(Some(model), Some("none")).is_some(), "{model}");
        }
        for model in ["WDC WD40EFRX-68N32N0", "ST4000VN008-2DR166", "Samsung SSD 980 PRO 1TB", ""] {
            assert_eq!(why(Some(model), Some("none")), None, "{model}");
        }
        assert_eq!(why(None, None), None);
        let said = warning(Some("ST8000DM004-2CX188"), Some("none")).expect("a warning");
        assert_eq!(
            said,
            "it has shingled recording (its maker says so of ST8000DM004-2CX188): a rebuild onto it may take days"
        );
    }
}
