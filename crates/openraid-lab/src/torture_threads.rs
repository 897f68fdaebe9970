//! Runs of the fault simulation on several threads.
//!
//! A panic ends one run, not the process. If the program is built with `panic = "abort"`, no unwinding reaches the code
//! that waits for the run. So the panic hook reports the run and its thread sleeps for good; another thread takes its
//! place. What a sleeping thread holds is lost until the process ends: a few megabytes for each run that panicked.

use std::cell::RefCell;
use std::panic::PanicHookInfo;
use std::rc::Rc;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Once;
use std::time::Duration;

use openraid_sim::fault::report::{closed, panicked, report_into, text_of};
use openraid_sim::fault::{Account, Bug, Report, Scenario};

/// Enough for the deepest run.
const STACK_BYTES: usize = 4 << 20;

/// A run that continues in this thread.
struct Running {
    scenario: Scenario,
    account: Rc<RefCell<Account>>,
    reports: Sender<(Scenario, Report)>,
}

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// Carries out runs, this many at once.
pub struct Swarm {
    bug: Option<Bug>,
    sender: Sender<(Scenario, Report)>,
    reports: Receiver<(Scenario, Report)>,
    running: usize,
}

impl Swarm {
    /// With this bug in the driver, if one is named.
    pub fn new(bug: Option<Bug>) -> Self {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                if !report_panic(info) {
                    usual(info);
                }
            }));
        });
        let (sender, reports) = channel();
        Self { bug, sender, reports, running: 0 }
    }

    /// Runs that continue.
    pub fn running(&self) -> usize {
        self.running
    }

    /// Begin a run. Threads by hand, because a run needs a large stack, may never end, and must not hold up the others.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn begin(&mut self, scenario: Scenario) -> std::io::Result<()> {
        let (bug, reports) = (self.bug, self.sender.clone());
        std::thread::Builder::new().name("torture".into()).stack_size(STACK_BYTES).spawn(move || {
            let account = Rc::new(RefCell::new(Account::default()));
            let running = Running { scenario: scenario.clone(), account: account.clone(), reports: reports.clone() };
            RUNNING.set(Some(running));
            let report = report_into(&scenario, bug, &account);
            RUNNING.set(None);
            // The receiver may have gone.
            let _ = reports.send((scenario, report));
        })?;
        self.running += 1;
        Ok(())
    }

    /// Wait for the end of any run.
    ///
    /// # Panics
    /// None continues.
    pub fn ended(&mut self) -> (Scenario, Report) {
        assert!(self.running > 0, "bug: no run goes on");
        self.running -= 1;
        self.reports.recv().unwrap_or_else(|_| unreachable!("the swarm has a sender itself"))
    }

    /// As [`Swarm::ended`], but `None` if no run ends in this time.
    ///
    /// # Panics
    /// None continues.
    pub fn ended_within(&mut self, time: Duration) -> Option<(Scenario, Report)> {
        assert!(self.running > 0, "bug: no run goes on");
        match self.reports.recv_timeout(time) {
            Ok(ended) => {
                self.running -= 1;
                Some(ended)
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("the swarm has a sender itself"),
        }
    }

    /// One run from its beginning to its end.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn one(&mut self, scenario: Scenario) -> std::io::Result<Report> {
        self.begin(scenario)?;
        Ok(self.ended().1)
    }
}

/// Report the run and sleep, if the thread is in a run; false if it is not.
fn report_panic(info: &PanicHookInfo<'_>) -> bool {
    let Ok(Some(Running { scenario, account, reports })) = RUNNING.try_with(RefCell::take) else { return false };
    let place = info.location().map_or_else(String::new, |place| format!(" (at {}:{})", place.file(), place.line()));
    let words = text_of(info.payload());
    let (first, rest) = words.split_once('\n').unwrap_or((words, ""));
    // A thread that panics in the middle of a line keeps the account.
    let account = if account.try_borrow_mut().is_ok() { account } else { Rc::default() };
    let verdict = panicked(&format!("{first}{place}\n{rest}"), &account);
    let report = closed(scenario.seed, verdict, &account);
    let _ = reports.send((scenario, report));
    loop {
        std::thread::park();
    }
}
