//! Devices that are leased to a thread which may hang on one of them forever. A caller that abandons the thread takes
//! back the devices that the thread does not use at that moment, and the thread does nothing more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use openraid_core::journal::find_device::JournalDevice;
use openraid_units::DriveId;

use crate::member::{MemberSpec, OpenedMember};

/// Devices that are leased.
#[derive(Clone, Debug)]
pub(super) struct Leased {
    pub devices: Arc<[Mutex<Option<OpenedMember>>]>,
    /// The lender wants them back.
    is_over: Arc<AtomicBool>,
    /// The name of each.
    pub specs: Vec<MemberSpec>,
    /// Each device by its index in the list.
    pub numbered: Vec<JournalDevice>,
}

impl Leased {
    pub fn new(devices: Vec<OpenedMember>) -> Self {
        let specs = devices.iter().map(|device| device.spec.clone()).collect();
        let numbered = (0..).zip(&devices).map(|(number, device)| numbered(number, device)).collect();
        let devices = devices.into_iter().map(|device| Mutex::new(Some(device))).collect();
        Self { devices, is_over: Arc::default(), specs, numbered }
    }

    /// Use a device; `None` if it is not leased any more.
    pub fn with<T>(&self, device: usize, work: impl FnOnce(&mut OpenedMember) -> T) -> Option<T> {
        let mut device = self.devices[device].lock().unwrap_or_else(PoisonError::into_inner);
        let device = device.as_mut().filter(|_| !self.is_over());
        device.map(work)
    }

    /// Does the lender want them back? Then the thread cannot use them any more.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Take the device, if it is not in use.
    pub fn take(&self, device: usize) -> Option<OpenedMember> {
        self.is_over.store(true, Ordering::SeqCst);
        self.devices[device].try_lock().ok()?.take()
    }

    /// Take back the devices that are not in use.
    pub fn take_back(&self) -> Vec<OpenedMember> {
        (0..self.devices.len()).filter_map(|device| self.take(device)).collect()
    }
}

pub(super) fn numbered(number: u16, device: &OpenedMember) -> JournalDevice {
    JournalDevice { drive: DriveId(number), capacity: device.info.capacity, block: device.info.block }
}

#[cfg(test)]
mod tests {
    use super::super::test_pair::{options, Pair};
    use super::*;
    use crate::member::open;

    #[test]
    fn a_caller_that_abandons_a_thread_takes_back_all_devices_but_the_one_in_use() {
        let pair = Pair::new("leased");
        let leased = Leased::new(pair.open());
        let is_at = leased.devices[0].lock().expect("no other thread has it");
        let back = leased.take_back();
        assert_eq!(back.iter().map(|device| &device.spec).collect::<Vec<_>>(), [&pair.specs[1]]);
        drop(back);
        assert!(leased.with(1, |_| ()).is_none(), "it was taken back");
        assert!(open(&pair.specs[0], options()).is_err());
        open(&pair.specs[1], options()).expect("it is free");
        drop(is_at);
        assert!(leased.with(0, |_| ()).is_none(), "it answers after its caller has given up");
    }
}
