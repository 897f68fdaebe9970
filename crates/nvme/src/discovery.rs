//! The log of all subsystems that a host may use, with their addresses.

use core::net::IpAddr;

use crate::association::{Association, QueuePlace};
use crate::nqn::NQN_FIELD_BYTES;
use crate::subsystem::{Port, PortId};
use crate::target::NvmeTarget;
use crate::wire::{put, put_text};

/// Bytes of the log's head, and of each entry.
const ENTRY_BYTES: usize = 1024;

/// The whole log for one host.
pub fn log(association: &Association, target: &NvmeTarget) -> Vec<u8> {
    let mut log = vec![0; ENTRY_BYTES];
    let mut count = 0_u64;
    for offered in target.offered().filter(|offered| offered.subsystem.hosts.has(&association.host.nqn)) {
        for (number, port) in (0..).map(PortId).zip(&target.settings().ports) {
            let Some(address) = address(*port, association.admin) else { continue };
            log.extend_from_slice(&entry(offered.nqn.as_str(), number, address, port.service));
            count += 1;
        }
    }
    put(&mut log, 0, &target.changes().to_le_bytes());
    put(&mut log, 8, &count.to_le_bytes());
    log
}

/// The address of a port for this host. A port on all addresses is reached where the host reached this one. Another machine cannot
/// reach the loopback.
fn address(port: Port, admin: QueuePlace) -> Option<IpAddr> {
    // A socket of both families gives an IPv4 address inside IPv6.
    let local = admin.local.to_canonical();
    let address = port.address.unwrap_or(local);
    (local.is_loopback() || !address.is_loopback()).then_some(address)
}

fn entry(name: &str, port: PortId, address: IpAddr, service: u16) -> [u8; ENTRY_BYTES] {
    const TCP: u8 = 3;
    const NVM_SUBSYSTEM: u8 = 2;
    // Nothing is said of a secure channel: nvme-cli asks for TLS where none is required.
    const NO_HEAD: u8 = 1 << 2;
    const ADMIN_ENTRIES: u16 = 32;
    let mut bytes = [0; ENTRY_BYTES];
    let family = match address {
        IpAddr::V4(_) => 1,
        IpAddr::V6(_) => 2,
    };
    put(&mut bytes, 0, &[TCP, family, NVM_SUBSYSTEM, NO_HEAD]);
    // On the wire ports are counted from 1.
    put(&mut bytes, 4, &(port.0 + 1).to_le_bytes());
    put(&mut bytes, 6, &u16::MAX.to_le_bytes());
    put(&mut bytes, 8, &ADMIN_ENTRIES.to_le_bytes());
    put_text(&mut bytes, (32, 32), &service.to_string(), b' ');
    put_text(&mut bytes, (256, NQN_FIELD_BYTES), name, 0);
    put_text(&mut bytes, (512, 256), &address.to_string(), b' ');
    bytes
}
