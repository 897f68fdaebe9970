//! A disk cannot sustain a rate that its link does not carry.

use openraid_models::{DriveKind, DriveProfile, Library};

#[test]
fn a_disk_that_is_faster_than_its_link_is_refused_with_both_rates() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/drives/wd740gd.toml")).unwrap();
    let with = |rate: u32| {
        let changed = text.replace("rate_outer_mbs = { value = 72,", &format!("rate_outer_mbs = {{ value = {rate},"));
        assert_eq!(changed == text, rate == 72);
        DriveProfile::parse("own.toml", &changed)
    };
    assert!(with(72).is_ok() && with(100).is_ok());
    let wrong = with(101).unwrap_err().to_string();
    assert!(wrong.contains("rate_outer") && wrong.contains("above the link's rate"), "{wrong}");
    for drive in Library::builtin().drives() {
        if let DriveKind::Disk(disk) = &drive.kind {
            assert!(disk.rate_outer.value <= disk.link_rate.value, "{}", drive.head.name);
        }
    }
}
