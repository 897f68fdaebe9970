//! The machine: its name, and what its firmware says of it (SMBIOS, by the kernel's `/sys/class/dmi/id`).

use std::fs::read_to_string;

/// Words with which firmware fills fields that its maker left empty.
const FILLERS: [&str; 5] =
    ["to be filled by o.e.m.", "default string", "not specified", "system serial number", "none"];

/// The machine. Everything may be unknown: some fields are for root alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineIdentity {
    /// Its host name.
    pub host: Option<String>,
    /// Its maker.
    pub vendor: Option<String>,
    pub model: Option<String>,
    /// Its serial number.
    pub serial: Option<String>,
    pub uuid: Option<String>,
    /// The kind of its chassis, in a word of Redfish.
    pub kind: &'static str,
}

impl MachineIdentity {
    /// This machine.
    pub fn here() -> Self {
        let dmi = |name: &str| text(&format!("/sys/class/dmi/id/{name}"));
        Self {
            host: text("/proc/sys/kernel/hostname"),
            vendor: dmi("sys_vendor"),
            model: dmi("product_name"),
            serial: dmi("product_serial"),
            uuid: dmi("product_uuid"),
            kind: kind(dmi("chassis_type").as_deref().unwrap_or_default()),
        }
    }
}

/// The kind of a chassis, by its number in SMBIOS (7.4.1).
fn kind(number: &str) -> &'static str {
    match number {
        "3" | "4" | "5" | "6" | "7" | "13" | "15" | "16" | "24" | "35" => "StandAlone",
        "17" | "23" => "RackMount",
        "28" => "Blade",
        _ => "Other",
    }
}

fn text(path: &str) -> Option<String> {
    let text = read_to_string(path).ok()?.trim().to_owned();
    (!text.is_empty() && !FILLERS.contains(&text.to_lowercase().as_str())).then_some(text)
}
