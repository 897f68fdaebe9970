//! Messages of the kernel and of udev about block devices: a drive that is pulled is failed at once, without any request to it,
//! and one that comes back is looked at at once.
//!
//! A message only says when to look. So lost and doubled ones do no harm, and the search of [`appearing_drives`](super::appearing_drives)
//! continues.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use openraid_runtime::service::DriveView;
use openraid_sys::{DeviceEvents, DeviceNews};

use super::Server;
use crate::output;

/// Interval of the search for drives that are gone while messages arrive: it finds what a lost one would have told.
const SWEEP_EVERY: Duration = Duration::from_secs(60);
/// A message that comes within this time after the search has found its drive was not lost.
const LATE_MAX: Duration = Duration::from_secs(5);

impl Server {
    /// Follow the messages in a thread of their own, as long as this server exists.
    pub fn begin_following_devices(self: &Arc<Self>) {
        let mut events = match DeviceEvents::listen() {
            Ok(events) => events,
            Err(error) => {
                return output::warn(&format!(
                    "no messages about devices arrive here ({error}): a drive that is pulled is noticed within some seconds"
                ))
            }
        };
        self.hears_devices.store(true, Ordering::Relaxed);
        let server = Arc::downgrade(self);
        let follow = move || loop {
            let news = events.next_news();
            let Some(server) = server.upgrade() else { return };
            match news {
                Ok(news) => server.on_device_news(news),
                Err(error) => {
                    server.hears_devices.store(false, Ordering::Relaxed);
                    return output::warn(&format!("no more messages about devices arrive: {error}"));
                }
            }
        };
        if thread::Builder::new().name("devices".into()).spawn(follow).is_err() {
            self.hears_devices.store(false, Ordering::Relaxed);
        }
    }

    fn on_device_news(self: &Arc<Self>, news: DeviceNews) {
        self.heard_devices.fetch_add(1, Ordering::Relaxed);
        // A device without a size is gone, too: a network block device that was disconnected, for example.
        self.look_for_lost();
        if news != DeviceNews::Changed {
            self.state().plugs.try_all_again();
        }
        self.begin_looking_for_drives();
    }

    /// Tell the engine of drives that are gone. Returns their names.
    fn look_for_lost(&self) -> Vec<String> {
        // An error means that the service is ending.
        let lost = self.handle.look_for_lost().unwrap_or_default();
        if lost.is_empty() {
            return Vec::new();
        }
        let drives = self.status().map(|status| status.drives).unwrap_or_default();
        drives.into_iter().filter(|view| lost.contains(&view.drive)).map(|DriveView { member, .. }| member).collect()
    }

    /// Search for drives that are gone without a message, if it is due.
    pub(super) fn sweep_for_lost(&self) {
        let hears = self.hears_devices.load(Ordering::Relaxed);
        if hears && self.state().plugs.swept.is_some_and(|at| at.elapsed() < SWEEP_EVERY) {
            return;
        }
        self.state().plugs.swept = Some(Instant::now());
        let heard = self.heard_devices.load(Ordering::Relaxed);
        let lost = self.look_for_lost();
        if !hears || lost.is_empty() {
            return;
        }
        thread::sleep(LATE_MAX);
        if heard == self.heard_devices.load(Ordering::Relaxed) {
            lost.iter().for_each(|member| output::warn(&format!("{member} is gone, and no message about it arrived")));
        }
    }
}
