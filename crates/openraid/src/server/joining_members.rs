//! Members that join a served array.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};

use openraid_core::admin::{AdminCommand, ArrayStatus, MemberState, NewMember};
use openraid_core::array::assemble::is_split_off;
use openraid_core::array::new_array::{superblock_for_new_member, NewDrive};
use openraid_core::slot_set::SlotSet;
use openraid_format::Superblock;
use openraid_nbd::Transport;
use openraid_runtime::member::{self, MemberSpec, OpenedMember, Place, ProbedMember};
use openraid_runtime::service::ServiceStatus;
use openraid_sys::Use;
use openraid_units::{ArrayId, DriveId};

use super::array_model::ServedArray;
use super::member_names::{is_named, ServedMembers};
use super::member_orders::Consent;
use super::{ListenAddress, Server};
use crate::failure::{Failure, Obstacle};
use crate::members::contents::contents;
use crate::members::{options, spec};
use crate::on_disk::sets::{self, split_text};
use crate::output;

pub(super) fn set_status(status: &ServiceStatus, set: ArrayId) -> Result<&ArrayStatus, Failure> {
    let view = status.arrays.iter().find(|view| view.status.array == set);
    view.map(|view| &view.status).ok_or_else(|| Failure::cannot_tell("the array does not run any more"))
}

/// The result of a drive's join.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum JoinOutcome {
    /// It has joined.
    Joined(MemberJoin),
    /// It has not joined: a confirmation is needed.
    Confirm {
        /// What would be lost.
        text: String,
    },
}

impl JoinOutcome {
    /// A question that the order has not answered is a refusal.
    pub(super) fn or_refused(self) -> Result<MemberJoin, Failure> {
        match self {
            Self::Joined(member) => Ok(member),
            Self::Confirm { text } => Err(Failure::refused(text)),
        }
    }
}

/// How a new member joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct MemberJoin {
    pub drive: DriveId,
    /// It was in the array before.
    pub returning: bool,
}

impl Server {
    /// The set for a new member: the given span, or else the one that needs it.
    pub(super) fn set_for_new(
        &self,
        status: &ServiceStatus,
        served: &ServedArray,
        span: Option<usize>,
    ) -> Result<ArrayId, Failure> {
        let sets = served.sets();
        if let Some(span) = span {
            let spans = served.spans().len();
            return served.spans().get(span).copied().ok_or_else(|| {
                let why = if spans == 0 { "has no spans".into() } else { format!("has the spans 0 to {}", spans - 1) };
                Failure::refused(format!("array {} {why}; --span {span} names none", served.name))
            });
        }
        // A slot that is being filled needs no other drive.
        let needs = |set: &ArrayId| {
            set_status(status, *set).is_ok_and(|status| {
                let count = |state| status.members.iter().filter(|member| member.state == state).count();
                count(MemberState::Missing) > count(MemberState::Spare)
            })
        };
        match sets.as_slice() {
            [only] => Ok(*only),
            _ => sets.iter().copied().find(needs).ok_or_else(|| {
                Failure::refused(format!(
                    "no span of array {} needs a member; say with --span which one gets it as a spare",
                    served.name
                ))
            }),
        }
    }

    /// Open a drive and add it to a set as a spare.
    pub(super) fn join(
        &self,
        served: &ServedArray,
        set: ArrayId,
        text: &str,
        consent: Consent,
    ) -> Result<JoinOutcome, Failure> {
        self.join_as(|array, member| AdminCommand::Add { array, member }, (served, set), text, consent)
    }

    /// Open a drive and let it join a set by this command.
    pub(super) fn join_as(
        &self,
        join: fn(ArrayId, NewMember) -> AdminCommand,
        (served, set): (&ServedArray, ArrayId),
        text: &str,
        consent: Consent,
    ) -> Result<JoinOutcome, Failure> {
        let spec = spec(text)?;
        let status = self.status()?;
        if !crate::members::is_memory(&spec) {
            self.check_unused(&status, served, &spec.text)?;
        }
        self.refuse_own_export(&spec)?;
        let mut options = options(Use::Exclusive);
        options.without_flush = self.without_flush;
        let (opened, probed) = member::open_and_probe(&spec, options)?;
        let set_status = set_status(&status, set)?;
        let array = set_status.superblock.clone().ok_or_else(|| {
            Failure::refused("a raw drive has no redundancy, so nothing can be added to it; make an array instead")
        })?;
        let mut returning = probed.look.superblock.clone().filter(|superblock| superblock.set_uuid == array.set_uuid);
        if let Some(superblock) = returning.take_if(|superblock| is_device(set_status, superblock)) {
            check_copy(&ServedMembers::of(&status, served), &superblock, text, consent)?;
        } else if returning.is_none() {
            check_free(&probed, consent.overwrite)?;
        }
        if let Some(superblock) = returning
            .as_ref()
            .filter(|superblock| !consent.split && is_split_off(superblock, &array, in_sync(set_status)))
        {
            return Ok(JoinOutcome::Confirm { text: format!("{text}: {}", split_text(superblock, &array)) });
        }
        let is_new = returning.is_none();
        let joined = self.attach_and_add(|member| join(set, member), &array, returning, opened)?;
        // What it was a member of before is overwritten.
        if let Err(failure) = if is_new { self.registry.forget_members(&[spec.text]) } else { Ok(()) } {
            output::warn(&failure.text());
        }
        Ok(JoinOutcome::Joined(joined))
    }

    /// Refuse a drive that this server uses already: the open would report that another program uses it.
    fn check_unused(&self, status: &ServiceStatus, served: &ServedArray, text: &str) -> Result<(), Failure> {
        let members = ServedMembers::of(status, served);
        if let Some(found) = members.named(text)?.first() {
            return Err(Failure::refused(members.already(found)));
        }
        let Some(view) = status.drives.iter().find(|view| is_named(view, text)) else { return Ok(()) };
        let has = |array: &&openraid_runtime::service::ArrayView| {
            array.status.members.iter().any(|line| line.drive == Some(view.drive))
        };
        let array = status.arrays.iter().find(has).and_then(|array| self.name_of(array.status.array));
        let whose = array.map_or_else(|| "for something else".into(), |(name, _)| format!("in array {name}"));
        let failure = Failure::refused(format!("this server uses {text} {whose}; name another drive"));
        Err(failure.hindered_by(Obstacle::UsedHere))
    }

    /// Refuse an export of this server as a member: an array would wait for itself, or the server for its own end.
    ///
    /// # Errors
    /// It is an export of this server.
    pub(super) fn refuse_own_export(&self, spec: &MemberSpec) -> Result<(), Failure> {
        let Place::Remote(uri) = &spec.place else { return Ok(()) };
        let is_own = |listening: &ListenAddress| match (&uri.transport, listening) {
            (Transport::Unix { socket }, ListenAddress::Unix(listened)) => std::fs::canonicalize(socket)
                .is_ok_and(|path| std::fs::canonicalize(listened).is_ok_and(|other| other == path)),
            (Transport::Tcp { host, port }, ListenAddress::Tcp(listened)) => {
                *port == listened.port() && is_of_host(listened.ip(), host, *port)
            }
            _ => false,
        };
        if self.listens.iter().any(is_own) {
            return Err(Failure::refused(format!(
                "{}: this server serves it itself, and an array cannot wait for itself; name a drive, or an export of another \
                 server",
                spec.text
            )));
        }
        Ok(())
    }

    fn attach_and_add(
        &self,
        join: impl FnOnce(NewMember) -> AdminCommand,
        array: &Superblock,
        returning: Option<Superblock>,
        opened: OpenedMember,
    ) -> Result<MemberJoin, Failure> {
        let (name, capacity) = (opened.spec.text.clone(), opened.info.capacity);
        let storage = opened.storage();
        let drive = self.handle.attach(opened)?;
        let was_here = returning.is_some();
        let result = match returning {
            Some(superblock) => Ok(superblock),
            None => {
                let new = NewDrive { drive, capacity, uuid: openraid_runtime::service::random_uuid() };
                superblock_for_new_member(array, &new)
                    .map_err(|error| Failure::refused(sets::create_error(&error, &|_| name.clone())))
            }
        };
        let added = result.and_then(|superblock| {
            if let Some(storage) = &storage {
                storage.allocate_metadata(&superblock).map_err(Failure::failed)?;
            }
            let member = NewMember { drive, superblock, returning: was_here };
            let added = self.handle.admin(join(member));
            added.map_err(|error| Failure::from(error).of(&name))
        });
        match added {
            Ok(_) => Ok(MemberJoin { drive, returning: was_here }),
            Err(failure) => {
                self.handle.detach(drive)?;
                Err(failure)
            }
        }
    }
}

/// Is a member with this identity listed?
fn is_device(status: &ArrayStatus, superblock: &Superblock) -> bool {
    status.members.iter().any(|line| line.device == Some(superblock.device_uuid))
}

/// Slots whose members are in sync everywhere.
fn in_sync(status: &ArrayStatus) -> SlotSet {
    let full = status.members.iter().filter(|line| line.state == MemberState::InSync && !line.replacement);
    full.filter_map(|line| line.slot).collect()
}

/// Refuse a drive with the identity of a listed member: the member itself under another name, or a copy of it.
fn check_copy(
    members: &ServedMembers<'_>,
    superblock: &Superblock,
    text: &str,
    consent: Consent,
) -> Result<(), Failure> {
    let Some(listed) = members.with_device(superblock.device_uuid)? else { return Ok(()) };
    if matches!(listed.member.state, MemberState::Faulty(_) | MemberState::Failing(_)) {
        return Err(Failure::refused(format!("{text}: {}", members.already(&listed))));
    }
    if consent.overwrite {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "{text} is a copy of {} (same device UUID); if its content may be lost, add --yes --overwrite",
        members.described(&listed, "")
    )))
}

/// Refuse a drive with content, unless the user said that it may be lost.
///
/// # Errors
/// The content, and how to use the drive anyway.
pub fn check_free(probed: &ProbedMember, overwrite: bool) -> Result<(), Failure> {
    if overwrite || probed.look.is_blank() {
        return Ok(());
    }
    Err(Failure::refused(format!(
        "{}: it holds {}; look at it with `openraid examine`, and if all of it may be lost, add --yes --overwrite",
        probed.spec,
        contents(probed)
    )))
}

/// Does this host name an address at which a server of this machine listens?
fn is_of_host(listened: IpAddr, host: &str, port: u16) -> bool {
    let Ok(addresses) = (host.trim_matches(['[', ']']), port).to_socket_addrs() else { return false };
    // A server that listens on all addresses has each address to which a socket of this machine can be bound.
    let is_local = |ip: IpAddr| UdpSocket::bind((ip, 0)).is_ok();
    let mut addresses = addresses.map(|address| address.ip());
    addresses.any(|ip| ip == listened || listened.is_unspecified() && is_local(ip))
}

#[cfg(test)]
mod tests {
    use super::is_of_host;

    #[test]
    fn an_address_of_this_machine_is_found_by_its_name_and_by_listening_everywhere() {
        let (loopback, everywhere) = ([127, 0, 0, 1].into(), [0, 0, 0, 0].into());
        assert!(is_of_host(loopback, "127.0.0.1", 1) && is_of_host(everywhere, "127.0.0.1", 1));
        assert!(is_of_host(loopback, "localhost", 1) && !is_of_host(loopback, "127.0.0.2", 1));
        // An address for documentation belongs to no machine.
        assert!(!is_of_host(everywhere, "192.0.2.7", 1) && !is_of_host(loopback, "192.0.2.7", 1));
    }
}
