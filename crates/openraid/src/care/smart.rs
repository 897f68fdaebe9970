//! The health that a drive reports: from the JSON of smartctl to figures and states.
//!
//! Single attributes do not predict a failure, and their raw values differ by vendor. So the drive's own verdict
//! counts, the counters of sectors count by their increase since they were first seen, and wear counts by the vendor's
//! percentage. Fields are those of smartctl 7 (`smartctl --json -a`); a field that is missing, or of another type, is
//! unknown.

use openraid_status::alarm::Severity;
use openraid_status::care::SmartModel;
use openraid_status::EventName;
use serde_json::Value;

/// From this percentage on a drive is worn.
const WORN_PERCENT: u64 = 90;
/// Its rated life is over.
const SPENT_PERCENT: u64 = 100;
/// A disk that is as warm as this is too warm, in degrees Celsius.
const DISK_HOT: i64 = 60;
/// The same of a drive without rotating media.
const FLASH_HOT: i64 = 75;
/// The bits of NVMe's critical warning but for the temperature: spare blocks, reliability, read-only, backup of memory.
const NVME_FAILING: u64 = 0b1_1101;

/// Read what smartctl printed.
///
/// # Errors
/// It is no JSON, or smartctl could not ask the drive: in words.
pub fn parse(output: &[u8], status: &str, at_seconds: u64) -> Result<SmartModel, String> {
    let root: Value = serde_json::from_slice(output)
        .map_err(|error| format!("smartctl printed no JSON ({status}): {error}; version 7 or later is needed"))?;
    let number = |path: &str| root.pointer(path).and_then(Value::as_u64);
    let text = |path: &str| root.pointer(path).and_then(Value::as_str).map(|text| text.chars().take(64).collect());
    let attribute = |id: u64| {
        let table = root.pointer("/ata_smart_attributes/table")?.as_array()?;
        table.iter().find(|row| row["id"].as_u64() == Some(id))
    };
    // The lower 32 bits: some vendors put other counters above.
    let raw = |id: u64| attribute(id).and_then(|row| row["raw"]["value"].as_u64()).map(|raw| raw & 0xffff_ffff);
    let model = SmartModel {
        at_seconds,
        model: text("/model_name").or_else(|| text("/scsi_model_name")),
        serial: text("/serial_number"),
        firmware: text("/firmware_version").or_else(|| text("/scsi_revision")),
        link: text("/interface_speed/current/string"),
        passed: root.pointer("/smart_status/passed").and_then(Value::as_bool),
        failing_attributes: failing(&root),
        critical_warning: number("/nvme_smart_health_information_log/critical_warning"),
        temperature_celsius: root.pointer("/temperature/current").and_then(Value::as_i64),
        rotating: number("/rotation_rate").map(|rate| rate > 0),
        reallocated_sectors: raw(5).or_else(|| number("/scsi_grown_defect_list")),
        pending_sectors: raw(197),
        uncorrectable_sectors: raw(198).or_else(|| number("/nvme_smart_health_information_log/media_errors")),
        reported_errors: raw(187),
        command_timeouts: raw(188).map(|raw| raw & 0xffff),
        used_percent: used(&root),
        power_on_hours: number("/power_on_time/hours"),
    };
    let says_nothing = model.passed.is_none() && model.temperature_celsius.is_none() && model.power_on_hours.is_none();
    if says_nothing {
        let messages = root.pointer("/smartctl/messages").and_then(Value::as_array);
        let said = messages.into_iter().flatten().find_map(|message| message["string"].as_str());
        return Err(match said {
            Some(said) => format!("smartctl: {}", said.chars().take(200).collect::<String>()),
            None => format!("smartctl reports nothing about its health ({status})"),
        });
    }
    Ok(model)
}

fn failing(root: &Value) -> Vec<String> {
    let table = root.pointer("/ata_smart_attributes/table").and_then(Value::as_array);
    let is_failing = |row: &&Value| row["when_failed"].as_str() == Some("now");
    let name = |row: &Value| row["name"].as_str().unwrap_or("an attribute").chars().take(64).collect();
    table.into_iter().flatten().filter(is_failing).map(name).take(16).collect()
}

/// The share of its rated life that is used, in per cent.
fn used(root: &Value) -> Option<u64> {
    let direct = [
        "/nvme_smart_health_information_log/percentage_used",
        "/endurance_used/current_percent",
        "/scsi_percentage_used_endurance_indicator",
    ];
    if let Some(used) = direct.iter().find_map(|path| root.pointer(path).and_then(Value::as_u64)) {
        return Some(used);
    }
    // Normalised values count down from 100. Only names that say so are believed: the numbers differ by vendor.
    let names = ["Media_Wearout_Indicator", "SSD_Life_Left", "Percent_Lifetime_Remain", "Wear_Leveling_Count"];
    let table = root.pointer("/ata_smart_attributes/table")?.as_array()?;
    let row = table.iter().find(|row| row["name"].as_str().is_some_and(|name| names.contains(&name)))?;
    Some(100_u64.saturating_sub(row["value"].as_u64()?))
}

/// A state of a drive that should be known of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SmartFinding {
    /// The event's name.
    pub event: EventName,
    /// Its severity.
    pub level: Severity,
    pub text: String,
}

/// Faults of a drive. `first` is the state in which it was seen first.
pub fn judge(now: &SmartModel, first: &SmartModel) -> Vec<SmartFinding> {
    let mut found = Vec::new();
    let mut add = |event: EventName, level, text: String| found.push(SmartFinding { event, level, text });
    if now.passed == Some(false) {
        let text = "the drive reports that it is failing (SMART status); replace it";
        add(EventName::DrivePredictiveFailure, Severity::Critical, text.into());
    } else if let Some(bits) = now.critical_warning.map(|bits| bits & NVME_FAILING).filter(|bits| *bits > 0) {
        let text = format!("the drive gives a critical warning (bits {bits:#x}); replace it");
        add(EventName::DrivePredictiveFailure, Severity::Critical, text);
    } else if !now.failing_attributes.is_empty() {
        let names = now.failing_attributes.join(", ");
        add(
            EventName::DrivePredictiveFailure,
            Severity::Warning,
            format!("below the vendor's threshold: {names}; replace it soon"),
        );
    }
    let counters = [
        ("reallocated sectors", now.reallocated_sectors, first.reallocated_sectors),
        ("pending sectors", now.pending_sectors, first.pending_sectors),
        ("uncorrectable sectors", now.uncorrectable_sectors, first.uncorrectable_sectors),
        ("reported errors", now.reported_errors, first.reported_errors),
    ];
    let grown = counters.into_iter().filter_map(|(name, now, first)| {
        let (now, first) = (now?, first?);
        (now > first).then(|| format!("{now} {name}, {first} when first seen"))
    });
    let grown: Vec<String> = grown.collect();
    if !grown.is_empty() {
        add(EventName::DriveErrorsGrow, Severity::Warning, grown.join("; "));
    }
    match now.used_percent {
        Some(used) if used >= SPENT_PERCENT => {
            add(EventName::DriveWorn, Severity::Critical, format!("{used} % of its rated writes are used: replace it"));
        }
        Some(used) if used >= WORN_PERCENT => {
            add(EventName::DriveWorn, Severity::Warning, format!("{used} % of its rated writes are used"));
        }
        _ => {}
    }
    let hot = if now.rotating == Some(true) { DISK_HOT } else { FLASH_HOT };
    if let Some(now) = now.temperature_celsius.filter(|now| *now >= hot) {
        add(EventName::DriveHot, Severity::Warning, format!("{now} degrees Celsius; {hot} is too warm"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As smartctl 7.3 prints it of a disk, shortened.
    const DISK: &str = r#"{"smartctl": {"version": [7, 3], "exit_status": 0}, "model_name": "WDC WD40EFRX-68N32N0",
        "serial_number": "WD-WCC7K1234567", "firmware_version": "82.00A82", "rotation_rate": 5400, "smart_status": {"passed": true},
        "ata_smart_attributes": {"table": [
            {"id": 5, "name": "Reallocated_Sector_Ct", "value": 200, "thresh": 140, "when_failed": "", "raw": {"value": 0}},
            {"id": 188, "name": "Command_Timeout", "value": 100, "when_failed": "", "raw": {"value": 4295032833}},
            {"id": 197, "name": "Current_Pending_Sector", "value": 200, "when_failed": "", "raw": {"value": 3}}]},
        "interface_speed": {"current": {"string": "6.0 Gb/s"}}, "power_on_time": {"hours": 31245}, "temperature": {"current": 34}}"#;
    /// An SSD on NVMe.
    const NVME: &str = r#"{"smartctl": {"exit_status": 0}, "model_name": "Samsung SSD 980 PRO 1TB", "smart_status": {"passed": true},
        "nvme_smart_health_information_log": {"critical_warning": 0, "percentage_used": 93, "media_errors": 0},
        "temperature": {"current": 41}, "power_on_time": {"hours": 900}}"#;

    fn read(text: &str) -> SmartModel {
        parse(text.as_bytes(), "exit status: 0", 7).expect("it is good")
    }

    fn events(text: &str, first: &str) -> Vec<(EventName, Severity)> {
        judge(&read(text), &read(first)).into_iter().map(|verdict| (verdict.event, verdict.level)).collect()
    }

    #[test]
    fn a_drive_is_judged_by_its_own_word_and_by_what_grows() {
        let disk = read(DISK);
        assert_eq!((disk.link.as_deref(), disk.firmware.as_deref()), (Some("6.0 Gb/s"), Some("82.00A82")));
        assert_eq!((disk.passed, disk.temperature_celsius, disk.rotating), (Some(true), Some(34), Some(true)));
        assert_eq!(
            (disk.reallocated_sectors, disk.pending_sectors, disk.command_timeouts),
            (Some(0), Some(3), Some(1))
        );
        assert_eq!(disk.serial.as_deref(), Some("WD-WCC7K1234567"));
        assert_eq!(events(DISK, DISK), [], "three pending sectors that were there before are no news");
        let more = DISK.replace("\"value\": 3", "\"value\": 4");
        assert_eq!(events(&more, DISK), [(EventName::DriveErrorsGrow, Severity::Warning)]);
        let bad = DISK.replace("true", "false").replace("34", "61");
        let wanted =
            [(EventName::DrivePredictiveFailure, Severity::Critical), (EventName::DriveHot, Severity::Warning)];
        assert_eq!(events(&bad, DISK), wanted);
        let below = DISK.replacen("\"when_failed\": \"\"", "\"when_failed\": \"now\"", 1);
        assert_eq!(events(&below, DISK), [(EventName::DrivePredictiveFailure, Severity::Warning)]);
        assert_eq!(events(NVME, NVME), [(EventName::DriveWorn, Severity::Warning)]);
        let spent = NVME.replace("93", "101").replace("\"critical_warning\": 0", "\"critical_warning\": 4");
        let wanted =
            [(EventName::DrivePredictiveFailure, Severity::Critical), (EventName::DriveWorn, Severity::Critical)];
        assert_eq!(events(&spent, NVME), wanted);
        let hot = NVME.replace("\"critical_warning\": 0", "\"critical_warning\": 2");
        assert_eq!(
            events(&hot, NVME),
            [(EventName::DriveWorn, Severity::Warning)],
            "the temperature has an alarm of its own"
        );
    }

    #[test]
    fn output_that_cannot_be_read_has_a_reason() {
        let why = |text: &str| parse(text.as_bytes(), "exit status: 2", 7).expect_err(text);
        for garbage in ["", "smartctl 6.6 2017-11-05", "{\"a\": ", "\u{0}\u{1}"] {
            assert!(why(garbage).contains("no JSON (exit status: 2)"), "{garbage:?}");
        }
        for empty in ["{}", "[]", "7", "null", r#"{"smart_status": {"passed": "yes"}, "temperature": 7}"#] {
            assert_eq!(why(empty), "smartctl reports nothing about its health (exit status: 2)");
        }
        let text = r#"{"smartctl": {"messages": [{"string": "/dev/sdx: Unable to detect device type", "severity": "error"}]}}"#;
        assert_eq!(why(text), "smartctl: /dev/sdx: Unable to detect device type");
        // Types that are not the documented ones count as not known.
        let odd =
            r#"{"smart_status": {"passed": true}, "ata_smart_attributes": {"table": {"id": 5}}, "power_on_time": -4}"#;
        assert_eq!(read(odd).reallocated_sectors, None);
    }
}
