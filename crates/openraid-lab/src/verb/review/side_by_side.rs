//! Drives side by side (M20): the members of a review, each served as a raw drive, or several existing targets. Each
//! has a worker and a connection of its own.

use openraid_core::limits::Limits;
use openraid_methods::cell::{OpenDrive, RealDrives};
use openraid_methods::method::{Method, Suite};
use openraid_methods::review::{Ended, Performance, ReviewResults};
use openraid_methods::run::{program_digest, CellStore};
use openraid_methods::target::{
    BlockTarget, Choice, Destruction, NbdTarget, NullTarget, RealOptions, Target, TargetError, TargetFacts,
};
use openraid_runtime::member::MemberSpec;
use openraid_sys::Use;
use openraid_units::Bytes;

use super::real_target::{confirmed, versions, TargetStamp, SECONDS};
use super::served_target::ServedTarget;
use super::ReviewTask;
use crate::arguments::ReviewArguments;
use openraid::failure::Failure;
use openraid::in_process::InProcess;
use openraid::members::{open_every, options};
use openraid::output::progress::WorkProgress;
use openraid::verb::Context;

/// The system of cells whose drives are existing targets.
const SEVERAL: &str = "several targets";

/// The requested methods about arrays, or those about drives side by side.
pub(super) fn methods(wanted: &ReviewTask, of_drives: bool) -> Vec<&'static Method> {
    wanted.methods.iter().copied().filter(|method| method.is_of_drives() == of_drives).collect()
}

/// Does a review have results of a method about drives side by side?
pub(super) fn is_in(results: &ReviewResults) -> bool {
    let of_drives = |name: &str| openraid_methods::method::find(name).is_some_and(Method::is_of_drives);
    results.methods.iter().any(|method| of_drives(&method.name) && !method.cells.is_empty())
}

/// The measurement of drives side by side: its options, its store, its drives.
pub(super) struct Bank<'a> {
    pub arguments: &'a ReviewArguments,
    pub wanted: &'a ReviewTask,
    pub store: &'a CellStore,
    pub stamp: &'a str,
    pub system: &'a str,
    pub facts: TargetFacts,
    pub drives: u16,
}

impl Bank<'_> {
    fn performance<'a>(&'a self, open: &'a OpenDrive<'a>) -> Performance<'a> {
        let seconds = self.arguments.seconds.unwrap_or(SECONDS);
        let effort = Performance::real_effort(seconds);
        let suite = Suite {
            repeat: self.arguments.repeat,
            drives: self.drives,
            ..Suite::new(self.system, Vec::new(), effort, self.arguments.seed)
        };
        Performance {
            methods: methods(self.wanted, true),
            trace: None,
            beside: Some(RealDrives { drives: self.drives, open }),
            ..self.wanted.performance(suite, self.store, self.stamp)
        }
    }

    /// Are the results of all cells stored already?
    fn is_kept(&self) -> bool {
        let closed = |_, _, _| Err(self.gone("it is not opened"));
        let cells = self.performance(&closed).cells(&self.facts);
        cells.iter().all(|cell| self.store.get(cell).is_some())
    }

    fn gone(&self, reason: &str) -> TargetError {
        TargetError::Gone { name: self.facts.name.clone(), reason: reason.into() }
    }

    fn measure(
        &self,
        open: &OpenDrive<'_>,
        sound: impl Fn() -> Result<(), TargetError>,
    ) -> Result<ReviewResults, Failure> {
        let performance = self.performance(open);
        let progress =
            WorkProgress::counting("cells of drives side by side", performance.cells(&self.facts).len() as u64);
        let ended = |ended: Ended| progress.counted_of_which_idle(ended.cells as u64, ended.idle as u64);
        performance.real(&self.facts, |_, _, _| Err(self.gone("it is several")), sound, ended).map_err(|error| {
            Failure::failed(format!(
                "{error}. Measured cells are kept in {}: the same command line continues there",
                self.arguments.out.join("cells").display()
            ))
        })
    }

    /// Measures the members of a review, each as a raw drive.
    pub(super) fn of_members(&self, specs: &[MemberSpec]) -> Result<ReviewResults, Failure> {
        if self.is_kept() {
            return self.measure(&|_, _, _| Err(self.gone("it is not opened")), || Ok(()));
        }
        let host = InProcess::start("review", Limits::default())?;
        let mut choices = Vec::new();
        for (number, (opened, _)) in (1..).zip(open_every(specs, options(Use::Exclusive))?) {
            let name = format!("drive-{number}");
            host.server.take_raw(&name, opened, false)?;
            choices.push((Choice::parse(&host.uri(&name)).map_err(Failure::failed)?, name));
        }
        let seed = self.arguments.seed;
        let open = |number: usize, bytes_max, outstanding| -> Result<Box<dyn Target>, TargetError> {
            let (choice, name) = &choices[number];
            let destroy = Some(Destruction::confirmed(choice, name)?);
            open_one(choice, &RealOptions { outstanding, bytes_max, destroy, seed })
        };
        let results = self.measure(&open, || Ok(()));
        for (_, name) in &choices {
            host.server.stop(name)?;
        }
        host.stop();
        results
    }
}

/// Measures existing targets side by side. `None` if there are none, or if no method is about drives.
pub(super) fn of_targets(
    arguments: &ReviewArguments,
    wanted: &ReviewTask,
    named: &[(String, Choice)],
    context: &Context,
) -> Result<Option<ReviewResults>, Failure> {
    if named.is_empty() || methods(wanted, true).is_empty() {
        return Ok(None);
    }
    let mut destroy = Vec::new();
    for (_, choice) in named {
        destroy.push(match arguments.destroy_data && choice.holds_data() {
            true => Some(confirmed(choice, arguments, context)?),
            false => None,
        });
    }
    let open = |number: usize, bytes_max, outstanding| {
        open_one(
            &named[number].1,
            &RealOptions { outstanding, bytes_max, destroy: destroy[number].clone(), seed: arguments.seed },
        )
    };
    let mut all = Vec::new();
    for number in 0..named.len() {
        all.push(open(number, 4096, 1).map_err(Failure::cannot_tell)?.facts().clone());
    }
    let served: Vec<ServedTarget<'_>> =
        named.iter().map(|(name, choice)| ServedTarget::of(choice, name, &context.servers)).collect();
    let states = served.iter().map(ServedTarget::state).collect::<Result<Vec<_>, _>>().map_err(Failure::refused)?;
    let inputs = |((_, choice), facts): (&(_, Choice), &TargetFacts)| TargetStamp::of(choice, facts, false).to_string();
    let which: Vec<String> = named.iter().zip(&all).map(inputs).collect();
    let own_stamp = format!("{} {:016x} drives: {}", env!("CARGO_PKG_VERSION"), program_digest(), which.join("; "));
    let store = CellStore::open(&arguments.out.join("cells"), &own_stamp).map_err(Failure::failed)?;
    let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
    let side = format!("drives side by side: {}, in this order, a worker and a thread each", names.join(", "));
    let mut bed = vec![side.into()];
    bed.extend(all.iter().flat_map(|facts| facts.bed.clone()));
    bed.extend(
        named.iter().zip(&states).filter_map(|((name, _), state)| Some(format!("{name}: {}", state.as_ref()?).into())),
    );
    bed.extend(versions());
    let facts = TargetFacts {
        name: SEVERAL.into(),
        capacity: all.iter().map(|facts| facts.capacity).min().unwrap_or(Bytes::ZERO),
        block: all.iter().map(|facts| facts.block).max().unwrap_or(Bytes(512)),
        simulated: false,
        writable: all.iter().all(|facts| facts.writable),
        page_cache: all.iter().any(|facts| facts.page_cache),
        link_mbps: None,
        bed,
    };
    let drives = u16::try_from(named.len()).map_err(|_| Failure::usage("--target: too many targets"))?;
    let bank = Bank { arguments, wanted, store: &store, stamp: &own_stamp, system: SEVERAL, facts, drives };
    let sound = || served.iter().zip(&states).try_for_each(|(target, state)| target.is_still(state));
    bank.measure(&open, sound).map(Some)
}

/// Opens a real target.
pub(super) fn open_one(choice: &Choice, options: &RealOptions) -> Result<Box<dyn Target>, TargetError> {
    Ok(match choice {
        Choice::Path(path) => Box::new(BlockTarget::open(path, options)?),
        Choice::Nbd(uri) => Box::new(NbdTarget::open(uri, options)?),
        Choice::Null(size) => Box::new(NullTarget::new(*size)),
        Choice::Simulated(_) => unreachable!("a simulated target is not a real one"),
    })
}
