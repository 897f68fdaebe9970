//! Takes over the address of a server that was just killed. The kernel accepts connections there until it has closed
//! the sockets of the old server, and a new server waits for this instead of failing.

use crate::clock;
use crate::net::{Holder, Listener, NetError};
use openraid_units::Nanos;
use std::thread;
use std::time::Duration;

/// Maximum time to wait for a server that is ending. The kernel releases its memory before its sockets, about 0.1 s for
/// each GiB.
pub const LEAVING_TIME_MAX: Nanos = Nanos::from_secs(10);
/// Maximum time to wait if the kernel does not say which process has the address, as with TCP: that server may continue
/// to run.
pub const TAKEN_TIME_MAX: Nanos = Nanos::from_secs(2);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Calls `listen` repeatedly while a server that is ending has the address.
///
/// # Errors
/// As `listen`: after the time is over, or at once if a running server has the address.
pub fn listen_patiently(listen: impl Fn() -> Result<Listener, NetError>) -> Result<Listener, NetError> {
    let begun = clock::now();
    loop {
        let refused = match listen() {
            Err(error @ NetError::InUse { .. }) => error,
            result => return result,
        };
        let patience = match refused {
            NetError::InUse { holder: Holder::Leaving(_), .. } => LEAVING_TIME_MAX,
            NetError::InUse { holder: Holder::Unknown, .. } => TAKEN_TIME_MAX,
            _ => Nanos::ZERO,
        };
        if clock::now() >= begun + patience {
            return Err(refused);
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::net::{Ipv4Addr, SocketAddr};

    #[test]
    fn a_server_that_is_ending_is_waited_for_and_one_that_runs_is_not() {
        let tries = Cell::new(0);
        let listen = |holder, times| {
            tries.set(0);
            listen_patiently(|| {
                tries.set(tries.get() + 1);
                if tries.get() <= times {
                    return Err(NetError::InUse { address: "there".into(), holder });
                }
                Listener::tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            })
        };
        listen(Holder::Leaving(7), 9).expect("it is gone after nine tries");
        listen(Holder::Unknown, 9).expect("it is gone after nine tries");
        listen(Holder::Running(7), 1).expect_err("it stays");
        assert_eq!(tries.get(), 1);
    }
}
