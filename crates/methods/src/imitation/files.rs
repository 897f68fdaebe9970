//! The file-copy test: sets of files that are made, read, copied nearby and copied to the second partition.
//!
//! Numbers and sums of files: ISO 3 files of 1.6 GB and MP3 about 270 files of 0.99 GB are published; Install 414 files
//! of 575 MB, Programs 8504 of 1.4 GB, Windows 9006 of 1.06 GB are recollections. How the sizes are spread is not
//! published; it is modelled as even (ISO, MP3) or log-normal (the others), scaled to the sum.
//!
//! One thread does everything, in pieces of 64 KiB, as programs of that time did: a copy reads a piece, then writes it.
//! The host's own time, which is independent of the array, is in [`super::volume`]: a time for each file, and one for
//! the bytes that go through its file cache.

use super::volume::Partition;
use super::PIECE_BYTES;
use crate::cell::{FileSet, FileStep};
use crate::load::{LoadRequest, LoadStep};
use crate::target::IoKind;
use openraid_sim::Random;
use std::collections::VecDeque;

/// Minimum size of a file in bytes.
const FILE_BYTES_MIN: u64 = 512;
/// Minimum number of files in a scaled set.
const FILES_LEAST: usize = 3;

/// Number of files, sum of their sizes in bytes, and spread of the sizes. The spread is the standard deviation of the
/// logarithm; 0 means that sizes are evenly distributed around their mean.
const fn shape(set: FileSet) -> (u32, u64, f64) {
    match set {
        FileSet::Iso => (3, 1_600_000_000, 0.0),
        FileSet::Mp3 => (271, 990_000_000, 0.0),
        FileSet::Install => (414, 575_000_000, 2.2),
        FileSet::Programs => (8504, 1_400_000_000, 1.9),
        FileSet::Windows => (9006, 1_060_000_000, 1.7),
    }
}

/// Sizes of the files of a set, in the order of the work. They are always the same.
#[must_use]
pub fn file_sizes(set: FileSet) -> Vec<u64> {
    let (count, sum, spread) = shape(set);
    let mut random = Random::derived(0xf17e, set as u64);
    let mut draw = || {
        if spread == 0.0 {
            // Evenly from two thirds to four thirds of the mean.
            return 2.0 / 3.0 + uniform(&mut random) * 2.0 / 3.0;
        }
        (normal(&mut random) * spread).exp()
    };
    let weights: Vec<f64> = (0..count).map(|_| draw()).collect();
    let total: f64 = weights.iter().sum();
    let sizes = weights.iter().map(|weight| {
        // Below the sum, which is small.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let bytes = (weight / total * sum as f64) as u64;
        bytes.max(FILE_BYTES_MIN)
    });
    sizes.collect()
}

/// Number of bytes of a set.
#[must_use]
pub fn bytes_of(set: FileSet) -> u64 {
    file_sizes(set).iter().sum()
}

/// The sizes of a set that must fit into this number of bytes: all files, or the first files that fit, but at least
/// three. If three are too large, three smaller ones.
#[must_use]
pub fn sizes_within(set: FileSet, room: u64) -> Vec<u64> {
    let all = file_sizes(set);
    let mut sum = 0;
    let count = all.iter().take_while(|size| (sum + **size <= room).then(|| sum += **size).is_some()).count();
    if count >= FILES_LEAST {
        return all[..count].to_vec();
    }
    let (first, share) = (&all[..FILES_LEAST], all[..FILES_LEAST].iter().sum::<u64>().max(1));
    let smaller = |size: &u64| u128::from(*size) * u128::from(room) / u128::from(share);
    first.iter().map(|size| u64::try_from(smaller(size)).unwrap_or(u64::MAX).max(FILE_BYTES_MIN)).collect()
}

fn uniform(random: &mut Random) -> f64 {
    ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// The sum of twelve evenly distributed numbers minus six: mean 0, variance 1, never beyond 6.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}

/// The steps of one part of the test.
pub struct FileCopy {
    step: FileStep,
    sizes: std::vec::IntoIter<u64>,
    from: Partition,
    to: Partition,
    steps: VecDeque<LoadStep>,
}

impl FileCopy {
    /// Does `step` for files of these sizes. Files are read from `from` and created on `to`; both are on the target.
    #[must_use]
    pub fn new(step: FileStep, sizes: Vec<u64>, from: Partition, to: Partition) -> Self {
        Self { step, sizes: sizes.into_iter(), from, to, steps: VecDeque::new() }
    }

    fn push(&mut self, kind: IoKind, offset: u64, len: u64) {
        let len = u32::try_from(len).expect("a piece");
        self.steps.push_back(LoadStep::Ask(LoadRequest { kind, offset, len }));
    }

    /// All steps of one file.
    fn file(&mut self, bytes: u64) {
        let reads = self.step != FileStep::Create;
        let writes = self.step != FileStep::Read;
        let source = reads.then(|| self.from.place(bytes));
        let sink = writes.then(|| self.to.place(bytes));
        let time = self.from.own_time(reads, writes);
        self.steps.push_back(LoadStep::Think(time));
        if reads {
            for (offset, len) in self.from.look_up() {
                self.push(IoKind::Read, offset, len);
            }
        }
        let pieces = bytes.div_ceil(u64::from(PIECE_BYTES));
        for number in 0..pieces {
            let done = number * u64::from(PIECE_BYTES);
            // Whole pages of 4 KiB are transferred.
            let len = (bytes - done).min(u64::from(PIECE_BYTES)).next_multiple_of(4096);
            let copying = self.from.copy_time(len);
            if let Some(start) = source {
                self.push(IoKind::Read, start + done, len);
                self.steps.push_back(LoadStep::Think(copying));
            }
            if let Some(start) = sink {
                self.steps.push_back(LoadStep::Think(copying));
                self.push(IoKind::Write, start + done, len);
                for (offset, len) in self.to.grown(done + len) {
                    self.push(IoKind::Write, offset, len);
                }
            }
        }
        if writes {
            for (offset, len) in self.to.note_down(bytes) {
                self.push(IoKind::Write, offset, len);
            }
        }
    }
}

impl Iterator for FileCopy {
    type Item = LoadStep;

    fn next(&mut self) -> Option<LoadStep> {
        while self.steps.is_empty() {
            let bytes = self.sizes.next()?;
            self.file(bytes);
        }
        self.steps.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::super::volume::PARTITION_BYTES;
    use super::*;
    use crate::cell::FileSystem;

    fn copied(step: FileStep, set: FileSet, fs: FileSystem) -> (u64, u64, u64) {
        let from = Partition::new(fs, 0, PARTITION_BYTES);
        let start = if step == FileStep::CopyOther { PARTITION_BYTES } else { 0 };
        let mut to = Partition::new(fs, start, PARTITION_BYTES);
        if step == FileStep::CopySame {
            to.skip(bytes_of(set) + (64 << 20));
        }
        let (mut read, mut written, mut end) = (0, 0, 0);
        for step in FileCopy::new(step, file_sizes(set), from, to) {
            let LoadStep::Ask(request) = step else { continue };
            assert!(request.len.is_multiple_of(4096) && request.offset.is_multiple_of(512));
            *(if request.kind == IoKind::Read { &mut read } else { &mut written }) += u64::from(request.len);
            end = end.max(request.offset + u64::from(request.len));
        }
        (read, written, end)
    }

    #[test]
    fn sets_have_their_numbers_and_sums() {
        for (set, count, sum) in [
            (FileSet::Iso, 3, 1_600_000_000u64),
            (FileSet::Mp3, 271, 990_000_000),
            (FileSet::Install, 414, 575_000_000),
            (FileSet::Programs, 8504, 1_400_000_000),
            (FileSet::Windows, 9006, 1_060_000_000),
        ] {
            let sizes = file_sizes(set);
            assert_eq!(sizes.len(), count);
            let found: u64 = sizes.iter().sum();
            assert!(found.abs_diff(sum) < sum / 100, "{set}: {found}");
            assert_eq!(sizes, file_sizes(set));
        }
        assert!(file_sizes(FileSet::Install).iter().max() > Some(&20_000_000), "large files are among them");
    }

    #[test]
    fn every_step_moves_the_bytes_of_the_set_and_a_little_more() {
        for fs in [FileSystem::Ntfs, FileSystem::Fat32] {
            for set in [FileSet::Iso, FileSet::Programs] {
                let bytes = bytes_of(set);
                let slack = |moved: u64, whole: u64| moved >= whole && moved < whole + whole / 10 + 200_000_000;
                let (read, written, _) = copied(FileStep::Create, set, fs);
                assert!(read == 0 && slack(written, bytes));
                let (read, written, _) = copied(FileStep::Read, set, fs);
                assert!(slack(read, bytes) && written == 0);
                let (read, written, end) = copied(FileStep::CopySame, set, fs);
                assert!(slack(read, bytes) && slack(written, bytes) && end <= PARTITION_BYTES);
                let (_, _, end) = copied(FileStep::CopyOther, set, fs);
                assert!(end > PARTITION_BYTES && end <= 2 * PARTITION_BYTES);
            }
        }
    }

    #[test]
    fn a_scaled_set_fits_its_room_and_stays_inside_of_its_partition() {
        assert_eq!(sizes_within(FileSet::Install, u64::MAX), file_sizes(FileSet::Install));
        for set in FileSet::ALL {
            for mib in [4, 16, 64, 500] {
                let (room, partition) = (mib << 20, mib << 22);
                let sizes = sizes_within(*set, room);
                assert!(sizes.len() >= 3 && sizes.iter().sum::<u64>() <= room, "{set} {mib}");
                for fs in [FileSystem::Ntfs, FileSystem::Fat32] {
                    let (from, to) = (Partition::new(fs, 0, partition), Partition::new(fs, partition, partition));
                    let all = FileCopy::new(FileStep::CopyOther, sizes.clone(), from, to);
                    let ends = all.filter_map(|step| match step {
                        LoadStep::Ask(request) => Some(request.offset + u64::from(request.len)),
                        _ => None,
                    });
                    assert!(ends.max().is_some_and(|end| end <= 2 * partition), "{set} {mib}");
                }
            }
        }
    }
}
