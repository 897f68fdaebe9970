//! `openraid path`: how NVMe hosts reach an array by the addresses of this server (ANA). The words are in `host_path`.

use openraid_config::Access;
use openraid_status::shell_quoting::command_with;
use openraid_status::PathWord;

use super::{ListenAddress, Server};
use crate::control::ServerAnswer;
use crate::failure::Failure;
use crate::words::host_path::{self, PATH};

impl Server {
    /// Change how NVMe hosts reach an array by the addresses of this server.
    pub(super) fn set_path(&self, name: &str, word: PathWord) -> Result<ServerAnswer, Failure> {
        let path = host_path::state(word).map_err(Failure::usage)?;
        let served = self.find(name)?;
        self.registry.refuse_if_locked()?;
        let has_paths = self.listens.iter().any(|address| matches!(address, ListenAddress::Nvme(_)));
        let is_blocked = served.access == Access::Blocked;
        // The service does not know an array that is blocked. It is offered with this state later.
        if !(is_blocked && has_paths) {
            self.handle.set_path(served.array, path).map_err(|error| Failure::from(error).of(name))?;
        }
        self.change_served(name, |served| served.path = path);
        let notes = self.keep(&served, &[(PATH.into(), word.to_string())], None);
        let notes: String = notes.iter().map(|note| format!("\nnote: {note}")).collect();
        let unblock = || format!("it is blocked, until `{}`", command_with("set", [name], "access=read-write"));
        let why = is_blocked.then(unblock).or_else(|| served.refused.clone());
        let text = match why {
            Some(why) => {
                format!("{name}: NVMe hosts find the paths to this server {word} when they are served again: {why}")
            }
            None => format!("{name}: NVMe hosts are told that the paths to this server are {word}"),
        };
        self.done(text + &notes, name)
    }
}
