//! A thread that closes what virtual machines have passed, and the budgets of descriptors for it.
//!
//! The close of a file may wait for its file system, its peer, or for much memory that becomes free, and a machine chooses what it
//! passes. What the thread has not closed yet counts in the budgets, so a close that never ends costs a limited number of descriptors.
//! A file system of user space that never answers a close (FUSE) still keeps the process from ending.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use std::{io, thread};

use openraid_units::ArrayId;

use crate::limits::{
    CONNECTIONS_MAX, DESCRIPTORS_KEPT, MACHINE_FILES_MAX, MACHINE_FILES_MIN, MACHINE_FILES_PER_ARRAY_MAX,
};

/// The thread, and the number of open descriptors.
#[derive(Debug)]
pub struct Closer {
    leaving: mpsc::Sender<Box<dyn Send>>,
    of_server: Arc<AtomicUsize>,
    of_arrays: Vec<(ArrayId, Arc<AtomicUsize>)>,
    files_max: usize,
}

impl Closer {
    /// Start the thread. It ends when nothing is left that it could close.
    ///
    /// # Errors
    /// The system has no room for it.
    pub fn start() -> io::Result<Self> {
        let (leaving, values) = mpsc::channel::<Box<dyn Send>>();
        thread::Builder::new().name("vhost-close".into()).spawn(move || values.into_iter().for_each(drop))?;
        let others = CONNECTIONS_MAX + DESCRIPTORS_KEPT;
        let descriptors = openraid_sys::raise_descriptor_limit((others + MACHINE_FILES_MAX) as u64);
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX);
        let files_max = descriptors.saturating_sub(others).clamp(MACHINE_FILES_MIN, MACHINE_FILES_MAX);
        Ok(Self { leaving, of_server: Arc::default(), of_arrays: Vec::new(), files_max })
    }

    /// The budget of an array.
    pub fn budget(&mut self, array: ArrayId) -> FileBudget {
        self.of_arrays.retain(|(known, open)| *known == array || Arc::strong_count(open) > 1);
        let known = self.of_arrays.iter().find(|(known, _)| *known == array);
        let of_array = known.map_or_else(Arc::default, |(_, open)| Arc::clone(open));
        if known.is_none() {
            self.of_arrays.push((array, Arc::clone(&of_array)));
        }
        let (leaving, files_max) = (self.leaving.clone(), self.files_max);
        FileBudget { leaving, counts: OpenFiles { of_array, of_server: Arc::clone(&self.of_server) }, files_max }
    }

    /// Let the thread close what counts in no budget.
    pub fn close(&self, value: impl Send + 'static) {
        // Without the thread it is closed here.
        let _ = self.leaving.send(Box::new(value));
    }
}

/// Open descriptors, of an array and of the server.
#[derive(Clone, Debug)]
struct OpenFiles {
    of_array: Arc<AtomicUsize>,
    of_server: Arc<AtomicUsize>,
}

/// The descriptors of an array's machines.
#[derive(Clone, Debug)]
pub struct FileBudget {
    leaving: mpsc::Sender<Box<dyn Send>>,
    counts: OpenFiles,
    files_max: usize,
}

impl FileBudget {
    /// A value that came from a machine. It counts, within the limits or not.
    pub fn lend<T: Send + 'static>(&self, value: T) -> Lent<T> {
        let place = Some(OpenFile::new(&self.counts));
        Lent { value: Some(value), place, leaving: self.leaving.clone() }
    }

    /// Check the limits.
    ///
    /// # Errors
    /// Which is exceeded.
    pub fn check(&self) -> Result<(), String> {
        let OpenFiles { of_array, of_server } = &self.counts;
        for (count, limit, whose) in
            [(of_array, MACHINE_FILES_PER_ARRAY_MAX, "this array"), (of_server, self.files_max, "all arrays")]
        {
            if count.load(Ordering::Relaxed) > limit {
                return Err(format!(
                    "the virtual machines of {whose} have more than {limit} descriptors, which is the limit"
                ));
            }
        }
        Ok(())
    }
}

/// A descriptor that counts until it is dropped.
#[derive(Debug)]
struct OpenFile(OpenFiles);

impl OpenFile {
    fn new(counts: &OpenFiles) -> Self {
        counts.of_array.fetch_add(1, Ordering::Relaxed);
        counts.of_server.fetch_add(1, Ordering::Relaxed);
        Self(counts.clone())
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.0.of_array.fetch_sub(1, Ordering::Relaxed);
        self.0.of_server.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A value that came from a machine: the thread closes it.
#[derive(Debug)]
pub struct Lent<T: Send + 'static> {
    /// There until the end.
    value: Option<T>,
    place: Option<OpenFile>,
    leaving: mpsc::Sender<Box<dyn Send>>,
}

impl<T: Send + 'static> Deref for Lent<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is there until the end")
    }
}

impl<T: Send + 'static> Drop for Lent<T> {
    fn drop(&mut self) {
        // It counts until it is closed. Without the thread it is closed here.
        let _ = self.leaving.send(Box::new((self.value.take(), self.place.take())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file whose close waits until it is allowed to end, which then is told.
    struct Slow(mpsc::Receiver<()>, mpsc::Sender<()>);

    impl Drop for Slow {
        fn drop(&mut self) {
            let _ = self.0.recv();
            let _ = self.1.send(());
        }
    }

    #[test]
    fn a_close_that_hangs_counts_until_it_ends_and_holds_up_no_machine() {
        let mut closer = Closer::start().expect("a thread");
        let (one, other) = (closer.budget(ArrayId(1)), closer.budget(ArrayId(2)));
        let ((allow, allowed), (told, ended)) = (mpsc::channel(), mpsc::channel());
        drop(one.lend(Slow(allowed, told)));
        let files: Vec<_> = (1..MACHINE_FILES_PER_ARRAY_MAX).map(|_| one.lend(())).collect();
        assert_eq!((one.check(), other.check()), (Ok(()), Ok(())));
        drop(files);
        // Nothing is closed: the first close still hangs.
        let _last = closer.budget(ArrayId(1)).lend(());
        let refused = one.check().expect_err("too many");
        assert!(refused.contains("of this array have more than 1024 descriptors"), "{refused}");
        assert_eq!(other.check(), Ok(()));
        allow.send(()).expect("it waits");
        ended.recv().expect("it ends");
        while one.check().is_err() {
            thread::yield_now();
        }
    }
}
