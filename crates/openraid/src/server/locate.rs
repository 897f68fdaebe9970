//! The light of a drive, switched by order: the program `led` of the table `[care]` is called.

use std::path::Path;
use std::time::Duration;

use super::Server;
use crate::care::short_program;
use crate::control::ServerAnswer;
use crate::failure::Failure;
use openraid_status::shell_quoting::command_with;

/// Maximum time of the program.
const LED_TIME_MAX: Duration = Duration::from_secs(10);

/// Call the program for the lights: state, member, array, slot.
///
/// # Errors
/// It cannot be started, did not end in time, or has failed.
pub(super) fn switch(program: &Path, words: &[&str]) -> Result<(), String> {
    let ran = short_program::run(program, words, LED_TIME_MAX)?;
    match ran.status.as_str() {
        "exit status: 0" => Ok(()),
        status => Err(format!("{} ended with {status}", program.display())),
    }
}

impl Server {
    /// Switch the light of a member on or off, so that a hand finds the drive.
    pub(super) fn locate(&self, name: &str, member: &str, off: bool) -> Result<ServerAnswer, Failure> {
        let served = self.find(name)?;
        let (found, names) = self.member(&served, member, None)?;
        let status = self.status()?;
        let drive = status.drives.iter().find(|view| view.drive == found.drive).map(|view| view.member.clone());
        let described = names.described;
        let drive = drive.ok_or_else(|| Failure::refused(format!("{described} of {name} has no drive")))?;
        let desired = self.in_force().and_then(|file| file.desired.care.led.clone()).map(|led| led.value);
        let program = desired.ok_or_else(|| {
            Failure::refused(
                "no program switches the lights of drives: write led = \"/usr/local/sbin/drive-light\" into [care] of the \
                 configuration file, then `openraid reload`",
            )
        })?;
        let slot = found.member.slot.map_or_else(|| "-".into(), |slot| slot.to_string());
        let word = if off { "locate_off" } else { "locate" };
        switch(&program, &[word, &drive, name, &slot])
            .map_err(|why| Failure::failed(format!("the light of {drive} is not switched: {why}")))?;
        self.note_located(&drive, !off);
        if off {
            return self.done(format!("the light of {drive} is off"), name);
        }
        let off = command_with("locate", [name, &names.order], "--off");
        self.done(format!("the light of {drive} is on; `{off}` ends it"), name)
    }
}
