//! Members of a served array by the names that users give them, and the names that the server reports.
//!
//! ```text
//!  /srv/d2, nbd://host/d2, ram:64M   the name that the member was given; another path to the same file will do
//!  slot:2, slot:1.2                  what holds this slot (of a span) now
//!  drive:5                           the number that this server gave it, which stays while the member is in its array
//! ```
//!
//! A name must mean one member. A slot whose member has changed is refused while the former member is listed: a command
//! for one of them must not reach the other.

use std::path::Path;

use openraid_core::admin::{MemberState, MemberStatus};
use openraid_format::Uuid;
use openraid_runtime::service::{DriveView, ServiceStatus};
use openraid_status::shell_quoting::command;
use openraid_units::{ArrayId, DriveId};

use super::array_model::{member_model, ServedArray};
use super::joining_members::set_status;
use crate::failure::Failure;
use crate::output::array::state_text;

/// A member of a served array.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamedMember {
    /// The set that it belongs to: the array, or one of its spans.
    pub set: ArrayId,
    pub drive: DriveId,
    /// Its line in the set's table.
    pub member: MemberStatus,
}

/// The members of a served array, and their drives.
#[derive(Clone, Copy)]
pub(super) struct ServedMembers<'a> {
    status: &'a ServiceStatus,
    served: &'a ServedArray,
}

impl<'a> ServedMembers<'a> {
    /// Members of this array.
    pub const fn of(status: &'a ServiceStatus, served: &'a ServedArray) -> Self {
        Self { status, served }
    }

    fn all(self) -> Result<Vec<NamedMember>, Failure> {
        let mut all = Vec::new();
        for set in self.served.sets() {
            let lines = set_status(self.status, set)?.members.iter();
            all.extend(lines.filter_map(|line| Some(NamedMember { set, drive: line.drive?, member: *line })));
        }
        Ok(all)
    }

    fn view(self, drive: DriveId) -> Option<&'a DriveView> {
        self.status.drives.iter().find(|view| view.drive == drive)
    }

    /// Find a member by one of its names.
    ///
    /// # Errors
    /// No member has the name, or several have it, or the slot has another member than before; the text lists the
    /// members.
    pub fn find(self, text: &str) -> Result<NamedMember, Failure> {
        if let Some(place) = text.strip_prefix("slot:") {
            return self.in_slot(place);
        }
        let all = self.all()?;
        if let Some(number) = text.strip_prefix("drive:") {
            let number: Option<u16> = number.parse().ok();
            let found = all.iter().find(|found| Some(found.drive.0) == number);
            return found.copied().ok_or_else(|| self.unknown(text, &all));
        }
        let named = self.named(text)?;
        match named.as_slice() {
            [] => Err(self.unknown(text, &all)),
            [one] => Ok(*one),
            several => Err(Failure::refused(format!(
                "{text} names {} members of array {}; say which by its drive number:\n{}",
                several.len(),
                self.served.name,
                self.list(several)
            ))),
        }
    }

    /// The same, for the member with this identity, if one is given.
    ///
    /// # Errors
    /// As [`ServedMembers::find`], or it is another member now.
    pub fn find_seen(self, text: &str, device: Option<&str>) -> Result<NamedMember, Failure> {
        let found = self.find(text)?;
        let uuid = found.member.device.map(|device| device.to_string());
        if device.is_some() && device != uuid.as_deref() {
            return Err(Failure::refused(format!(
                "{text} of array {} is {} now, not the member that was asked for; look again with `{}`",
                self.served.name,
                self.described(&found, ""),
                command("show", [&self.served.name])
            )));
        }
        Ok(found)
    }

    /// All members that have this name.
    ///
    /// # Errors
    /// The array does not run any more.
    pub fn named(self, text: &str) -> Result<Vec<NamedMember>, Failure> {
        let is_it = |found: &NamedMember| self.view(found.drive).is_some_and(|view| is_named(view, text));
        Ok(self.all()?.into_iter().filter(is_it).collect())
    }

    /// Does the text mean a present member? Slots and numbers do.
    ///
    /// # Errors
    /// The array does not run any more.
    pub fn knows(self, text: &str) -> Result<bool, Failure> {
        Ok(text.starts_with("slot:") || text.starts_with("drive:") || !self.named(text)?.is_empty())
    }

    /// The member with this identity.
    ///
    /// # Errors
    /// The array does not run any more.
    pub fn with_device(self, device: Uuid) -> Result<Option<NamedMember>, Failure> {
        Ok(self.all()?.into_iter().find(|found| found.member.device == Some(device)))
    }

    /// Why a listed member cannot join, and the remedy.
    pub fn already(self, found: &NamedMember) -> String {
        let (described, name, order) = (self.described(found, ""), &self.served.name, self.order_name(found));
        match found.member.state {
            MemberState::Faulty(_) | MemberState::Failing(_) => format!(
                "{described} is still listed in {name}; remove it first: `{}`, then add it again",
                command("remove", [name, &order])
            ),
            _ => format!("{described} is a member of {name} already; see `{}`", command("show", [name])),
        }
    }

    fn unknown(self, text: &str, all: &[NamedMember]) -> Failure {
        let known: Vec<String> = all.iter().map(|found| self.order_name(found)).collect();
        let known = if known.is_empty() { "none".into() } else { known.join(", ") };
        Failure::refused(format!("{text} is not a member of array {}; its members are: {known}", self.served.name))
    }

    /// A line for each: number, name, slot, state.
    fn list(self, members: &[NamedMember]) -> String {
        let line = |found: &NamedMember| format!("  drive:{}  {}", found.drive, self.described(found, ""));
        members.iter().map(line).collect::<Vec<String>>().join("\n")
    }

    /// The member's state in words.
    pub fn state(self, found: &NamedMember) -> String {
        state_text(&member_model(&found.member, &self.status.drives))
    }

    /// The name of a member with its slot and state: `/srv/d2 (slot 2, in sync)`. If `asked` is its name, slot and
    /// state are left out.
    pub fn described(self, found: &NamedMember, asked: &str) -> String {
        self.text_of(found, asked, true)
    }

    /// The same without the state, for an order that changes it: `/srv/d2 (slot 2)`.
    pub fn placed(self, found: &NamedMember, asked: &str) -> String {
        self.text_of(found, asked, false)
    }

    fn text_of(self, found: &NamedMember, asked: &str, with_state: bool) -> String {
        let view = self.view(found.drive);
        let mut parts = Vec::new();
        if view.is_none_or(|view| view.member != asked) {
            parts.extend(found.member.slot.map(|slot| format!("slot {slot}")));
            parts.extend(with_state.then(|| self.state(found)));
        }
        if !self.is_only_name(found) {
            parts.push(format!("drive:{}", found.drive));
        }
        parts.extend(view.and_then(|view| view.names.serial.as_ref()).map(|serial| format!("serial {serial}")));
        let name = view.map_or_else(|| format!("drive:{}", found.drive), |view| view.member.clone());
        if parts.is_empty() {
            name
        } else {
            format!("{name} ({})", parts.join(", "))
        }
    }

    /// The name by which a command finds only this member: its own, or its number if others have the same name.
    pub fn order_name(self, found: &NamedMember) -> String {
        match self.view(found.drive) {
            Some(view) if self.is_only_name(found) => view.member.clone(),
            _ => format!("drive:{}", found.drive),
        }
    }

    /// Has no other member the name of this one?
    fn is_only_name(self, found: &NamedMember) -> bool {
        let member = self.view(found.drive).map(|view| view.member.as_str()).unwrap_or_default();
        let is_same = |other: &NamedMember| self.view(other.drive).is_some_and(|view| view.member == member);
        self.all().is_ok_and(|all| all.iter().filter(|other| is_same(other)).count() == 1)
    }

    fn in_slot(self, place: &str) -> Result<NamedMember, Failure> {
        let sets = self.served.sets();
        let name = &self.served.name;
        let wrong = || {
            let form = if sets.len() > 1 { "slot:SPAN.SLOT" } else { "slot:SLOT" };
            Failure::refused(format!("slot:{place} is not a slot of array {name}; write {form}, as `show` counts them"))
        };
        let (span, slot) = match place.split_once('.') {
            Some((span, slot)) => (span.parse::<usize>().map_err(|_| wrong())?, slot),
            None if sets.len() == 1 => (0, place),
            None => return Err(wrong()),
        };
        let slot: u16 = slot.parse().map_err(|_| wrong())?;
        let set = *sets.get(span).ok_or_else(wrong)?;
        let lines = &set_status(self.status, set)?.members;
        let holder = lines.iter().find(|line| line.slot.is_some_and(|place| place.0 == slot) && !line.replacement);
        let holder = holder.ok_or_else(wrong)?;
        let found = |line: &MemberStatus| Some(NamedMember { set, drive: line.drive?, member: *line });
        let had_it = lines.iter().filter(|line| line.slot.is_none() && line.left.is_some_and(|place| place.0 == slot));
        let had_it: Vec<NamedMember> = had_it.filter_map(found).collect();
        match (found(holder), had_it.as_slice()) {
            (Some(holder), []) => Ok(holder),
            (None, [one]) => Ok(*one),
            (None, []) => Err(Failure::refused(format!("slot {place} of array {name} has no member"))),
            (holder, before) => {
                let now = holder.map_or_else(|| "no member".into(), |holder| self.described(&holder, ""));
                let before: Vec<String> = before.iter().map(|found| self.described(found, "")).collect();
                Err(Failure::refused(format!(
                    "slot {place} of array {name} has changed: it has {now}, and had {} before; name the member by its path or \
                     drive number",
                    before.join(" and ")
                )))
            }
        }
    }

    /// Members that failed or were replaced, by their names for commands. A member whose failure is not recorded yet
    /// counts.
    pub fn faulty(self) -> Vec<String> {
        let all = self.all().unwrap_or_default();
        let faulty =
            all.iter().filter(|found| matches!(found.member.state, MemberState::Faulty(_) | MemberState::Failing(_)));
        faulty.map(|found| self.order_name(found)).collect()
    }
}

/// Is this text the name of a drive, or another path to the same file or device?
pub(super) fn is_named(view: &DriveView, text: &str) -> bool {
    if view.member == text {
        return true;
    }
    let resolved = |path: &str| Path::new(path).canonicalize().ok();
    resolved(text).is_some_and(|path| resolved(&view.member) == Some(path))
}

#[cfg(test)]
mod tests {
    use openraid_format::{MdLevel, MinorVersion, SetName};
    use openraid_runtime::member::{open, OpenOptions};
    use openraid_runtime::service::CreateRequest;
    use openraid_sys::Use;
    use openraid_units::Sectors;

    use super::*;
    use crate::in_process::trial::quiet_service;
    use crate::members::spec;

    #[test]
    fn orders_name_a_member_by_its_path_its_place_and_its_serial_number() {
        let service = quiet_service().expect("it starts");
        let opened = |name| open(&spec(name).expect("a name"), OpenOptions::new(Use::Exclusive)).expect("memory opens");
        let request = CreateRequest {
            name: SetName::new(None, "data").expect("a short name"),
            level: MdLevel::Raid5,
            layout: 2,
            chunk: Sectors::kib(64),
            minor: MinorVersion::V1_2,
            slots: ["ram:32M", "ram:33M", "ram:33M"].map(|name| Some(opened(name))).into(),
            spares: Vec::new(),
            size: None,
            assume_clean: true,
            bitmap: false,
            ppl: false,
        };
        let served = ServedArray::of(service.handle().create(request).expect("it is made"));
        // Memory has no serial number.
        let mut status = service.handle().status().expect("it runs");
        for (view, serial) in status.drives.iter_mut().zip([Some("WD-WMAKE1"), Some("WD-WMAKE2"), None]) {
            view.names.serial = serial.map(Into::into);
        }
        let members = ServedMembers::of(&status, &served);
        let [first, second, third] = ["slot:0", "slot:1", "slot:2"]
            .map(|slot| members.find(slot).unwrap_or_else(|why| panic!("{}", why.text())));
        assert_eq!(members.described(&first, ""), "ram:32M (slot 0, in sync, serial WD-WMAKE1)");
        assert_eq!(members.placed(&first, "slot:0"), "ram:32M (slot 0, serial WD-WMAKE1)");
        assert_eq!(members.placed(&third, "slot:2"), format!("ram:33M (slot 2, drive:{})", third.drive));
        assert_eq!(members.described(&first, "ram:32M"), "ram:32M (serial WD-WMAKE1)", "as the order names it");
        let model = super::super::array_model::model(&status, &served, &Default::default()).expect("it runs");
        let listed = crate::verb::list::text(&[model], &[]);
        let row =
            |serial: &str| listed.lines().filter(|line| line.starts_with("data ") && line.contains(serial)).count();
        assert_eq!(
            ["SERIAL", "WD-WMAKE1", "WD-WMAKE2"].map(|word| listed.matches(word).count()),
            [1, 1, 1],
            "{listed}"
        );
        assert_eq!((row("WD-WMAKE1"), row("WD-WMAKE2")), (1, 1), "{listed}");
        let already = members.already(&first);
        assert!(already.starts_with("ram:32M (slot 0, in sync, serial WD-WMAKE1) is a member of data"), "{already}");
        // Two of one name are distinguished by it.
        let refused = members.find("ram:33M").expect_err("two have this name").text();
        for found in [&second, &third] {
            assert!(refused.contains(&format!("drive:{}  {}", found.drive, members.described(found, ""))), "{refused}");
        }
        assert!(refused.contains("serial WD-WMAKE2)") && refused.matches("serial").count() == 1, "{refused}");
        let device = third.member.device.expect("it has a superblock").to_string();
        let other = members.find_seen("slot:0", Some(&device)).expect_err("another member is there").text();
        assert!(other.contains("is ram:32M (slot 0, in sync, serial WD-WMAKE1) now"), "{other}");
    }
}
