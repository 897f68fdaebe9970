//! Processes that are ending.
//!
//! The kernel takes a killed process apart in steps: its memory goes first, then its sockets, and files that an
//! io_uring has registered last of all (measured under load: sockets answer for 3 to 5 ms after the signal, locks of
//! files are held for 25 to 30 ms, and each grows with the memory and the writes that are under way).

use std::fs;

/// From linux/sched.h: the process is exiting.
const PF_EXITING: u64 = 4;
/// SIGKILL in a set of signals.
const KILL: u64 = 1 << (libc::SIGKILL - 1);

/// Gives way to all other threads. The calling thread, and every process that it starts later, runs mostly when no
/// other thread needs the processor (a weight of 15 against 1024). This cannot be undone.
pub fn give_way() {
    // SAFETY: plain numbers; 0 is the calling thread. Lower priority is never refused, and no data depends on it.
    let _ = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
}

/// Tells the kernel that writing back needs this process: its own memory is then never waited for with a write that waits for it.
/// Only root may. A refusal changes nothing.
pub fn help_writing_back() {
    /// From linux/prctl.h.
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: plain numbers.
    let _ = unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
}

/// Has this process ended, or is it ending? `false` for 0, which means a process of another namespace, and if the
/// kernel does not say.
pub(crate) fn is_ending(process: u32) -> bool {
    if process == 0 {
        return false;
    }
    let read = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}"));
    match (read("stat"), read("status")) {
        (Ok(stat), Ok(status)) => stat_says_ending(&stat) || has_kill_pending(&status),
        (Err(error), _) | (_, Err(error)) => {
            matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
        }
    }
}

/// Is the process a zombie, or exiting? Its name is in parentheses and may contain any characters.
fn stat_says_ending(stat: &str) -> bool {
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut fields = rest.split_ascii_whitespace();
    let is_dead = matches!(fields.next(), Some("Z" | "X"));
    let flags = fields.nth(5).and_then(|flags| flags.parse::<u64>().ok());
    is_dead || flags.is_some_and(|flags| flags & PF_EXITING != 0)
}

fn has_kill_pending(status: &str) -> bool {
    let sets = status.lines().filter_map(|line| line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:")));
    sets.filter_map(|set| u64::from_str_radix(set.trim(), 16).ok()).any(|set| set & KILL != 0)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_that_was_killed_is_ending_and_one_that_runs_is_not() {
        assert!(!is_ending(std::process::id()));
        assert!(!is_ending(0));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat");
        let number = child.id();
        assert!(!is_ending(number));
        child.kill().expect("own child");
        // The process is ending from the signal on, as a zombie, and after the kernel has removed it.
        assert!(is_ending(number));
        child.wait().expect("own child");
        assert!(is_ending(number));
    }

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        assert!(stat_says_ending("7 (a) Z (b)) Z 1 7 7 0 -1 4194308 0"));
        assert!(stat_says_ending("7 (x) R 1 7 7 0 -1 4194308 0"));
        assert!(!stat_says_ending("7 (x) Z) S 1 7 7 0 -1 4194304 0"));
        assert!(has_kill_pending("SigPnd:\t0000000000000100\n"));
        assert!(!has_kill_pending("SigPnd:\t0000000000000000\nShdPnd:\t0000000000000200\n"));
    }
}
