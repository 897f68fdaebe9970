//! The fields of a scenario with their keys: one list for the writer and the reader.

use openraid_core::admin::Policy;
use openraid_core::limits::Limits;
use openraid_format::MinorVersion;
use openraid_units::{BlockSize, Sectors};

use super::value::Value;
use crate::drive::{DriveSpec, Latency};
use crate::fault::scenario::{Extras, JournalSpec, Mode, Scenario, ScenarioLoad};
use crate::record::schema::policy_fields;
use crate::test_arrays::ArrayShape;

/// A writer or a reader.
pub(super) trait Fields {
    /// The next field.
    fn field<T: Value>(&mut self, key: &str, place: &mut T);
}

/// Writes lines.
#[derive(Default)]
pub(super) struct Writer(String);

impl Writer {
    /// The written lines.
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl Fields for Writer {
    fn field<T: Value>(&mut self, key: &str, place: &mut T) {
        self.0.push_str(&format!("{key} = {}\n", place.words()));
    }
}

/// Reads values from lines.
pub(super) struct FieldReader {
    lines: Vec<(String, String)>,
    wrong: Option<String>,
}

impl FieldReader {
    /// The lines `key = value` of a text.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let line = |line: &str| match line.split_once(" = ") {
            Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
            None => Err(format!("'{line}': not 'key = value'")),
        };
        Ok(Self { lines: text.lines().map(line).collect::<Result<_, _>>()?, wrong: None })
    }

    /// Take the first value of a key out of the lines.
    pub(super) fn take(&mut self, key: &str) -> Option<String> {
        let at = self.lines.iter().position(|(known, _)| known == key)?;
        Some(self.lines.remove(at).1)
    }

    /// Check that all lines were taken.
    pub(super) fn finish(self) -> Result<(), String> {
        match (self.wrong, self.lines.first()) {
            (Some(wrong), _) => Err(wrong),
            (None, Some((key, _))) => Err(format!("'{key}' is unknown")),
            (None, None) => Ok(()),
        }
    }
}

impl Fields for FieldReader {
    fn field<T: Value>(&mut self, key: &str, place: &mut T) {
        let Some(words) = self.take(key) else { return };
        match T::from_words(&words) {
            Some(value) => *place = value,
            None => self.wrong = Some(format!("{key} = {words}: not a value of this key")),
        }
    }
}

impl Scenario {
    /// A scenario without steps; a file changes its values.
    pub(super) fn plain() -> Self {
        Self {
            seed: 0,
            mode: Mode::Bounded,
            shape: ArrayShape::raid1(2),
            spans: 1,
            bitmap: false,
            ppl: false,
            bitmap_chunk: None,
            junk: false,
            spares: 0,
            metadata: MinorVersion::V1_2,
            drive: DriveSpec::new(Sectors::ZERO),
            limits: Limits::small(),
            policy: Policy::default(),
            journal: None,
            stable_reads: false,
            load: ScenarioLoad { depth: 1, len_max: 4096, align: 512, mix: [1; 5], span: u64::MAX },
            aimed: false,
            extras: Extras::default(),
            steps: Vec::new(),
        }
    }
}

/// All fields except the steps. The compiler rejects a new field of a scenario until it is in this list.
pub(super) fn all(scenario: &mut Scenario, fields: &mut impl Fields) {
    let Scenario {
        seed,
        mode,
        shape,
        spans,
        bitmap,
        ppl,
        bitmap_chunk,
        junk,
        spares,
        metadata,
        drive,
        limits,
        policy,
        journal,
        stable_reads,
        load,
        aimed,
        extras: Extras { mixed, far, beside },
        steps: _,
    } = scenario;
    fields.field("seed", seed);
    fields.field("mode", mode);
    fields.field("aimed", aimed);
    array(shape, fields);
    fields.field("spans", spans);
    fields.field("spares", spares);
    fields.field("metadata", metadata);
    fields.field("bitmap", bitmap);
    fields.field("bitmap_chunk", bitmap_chunk);
    fields.field("ppl", ppl);
    fields.field("used_drives", junk);
    fields.field("stable_reads", stable_reads);
    fields.field("mixed_drives", mixed);
    fields.field("far_data", far);
    fields.field("second_array", beside);
    drives(drive, fields);
    journal_devices(journal, fields);
    settings(policy, fields);
    hosts(load, fields);
    tables(limits, fields);
}

fn array(shape: &mut ArrayShape, fields: &mut impl Fields) {
    let ArrayShape { level, layout, members, chunk, blocks, unequal, data } = shape;
    fields.field("level", level);
    fields.field("layout", layout);
    fields.field("members", members);
    fields.field("chunk", chunk);
    fields.field("blocks", blocks);
    fields.field("unequal", unequal);
    fields.field("member_data", data);
}

/// The array determines capacity and block of a drive.
fn drives(drive: &mut DriveSpec, fields: &mut impl Fields) {
    let DriveSpec {
        capacity: _,
        block: _,
        latency: Latency { least, most, grain },
        flush_times,
        rotational,
        discard,
        discard_zeroes,
        write_zeroes,
        volatile_cache,
        fresh,
        room_wait,
        flush_waits,
    } = drive;
    fields.field("drive.latency_least", least);
    fields.field("drive.latency_most", most);
    fields.field("drive.latency_grain", grain);
    fields.field("drive.flush_times", flush_times);
    fields.field("drive.rotational", rotational);
    fields.field("drive.discard", discard);
    fields.field("drive.discard_zeroes", discard_zeroes);
    fields.field("drive.write_zeroes", write_zeroes);
    fields.field("drive.volatile_cache", volatile_cache);
    fields.field("drive.fresh", fresh);
    fields.field("drive.room_wait", room_wait);
    fields.field("drive.flush_waits", flush_waits);
}

fn journal_devices(journal: &mut Option<JournalSpec>, fields: &mut impl Fields) {
    let mut devices = journal.map_or(0, |journal| journal.mirrors);
    fields.field("journal.devices", &mut devices);
    if devices == 0 {
        *journal = None;
        return;
    }
    let block = BlockSize::B512;
    let plain = JournalSpec { mirrors: devices, ring: Sectors::mib(4), spins: false, block, volatile: true };
    let JournalSpec { mirrors: _, ring, spins, block, volatile } = journal.get_or_insert(plain);
    fields.field("journal.ring", ring);
    fields.field("journal.rotational", spins);
    fields.field("journal.block", block);
    fields.field("journal.volatile_cache", volatile);
}

fn settings(policy: &mut Policy, fields: &mut impl Fields) {
    macro_rules! each {
        ($($field:ident),*) => {
            let Policy { $($field),* } = policy;
            $(fields.field(concat!("policy.", stringify!($field)), $field);)*
        };
    }
    policy_fields!(each);
}

fn hosts(load: &mut ScenarioLoad, fields: &mut impl Fields) {
    let ScenarioLoad { depth, len_max, align, mix, span } = load;
    fields.field("load.depth", depth);
    fields.field("load.len_max", len_max);
    fields.field("load.align", align);
    fields.field("load.mix", mix);
    fields.field("load.span", span);
}

macro_rules! tables {
    ($($name:ident),*) => {
        fn tables(limits: &mut Limits, fields: &mut impl Fields) {
            let Limits { $($name),* } = limits;
            $(fields.field(concat!("limits.", stringify!($name)), $name);)*
        }
    };
}
tables!(
    pool,
    cache,
    journal,
    journal_entries_max,
    dirty_max_percent,
    dirty_high_percent,
    dirty_low_percent,
    destage_delay,
    destage_units_max,
    destage_units_calm,
    destage_zones,
    destage_beside_reads,
    work,
    requests_max,
    pieces_max,
    piece_bytes_max,
    ops_max,
    commands_max,
    drive_depth_max,
    queue_age_max,
    drives_max,
    rows_max,
    command_timeout,
    clean_delay,
    bitmap_clear_delay,
    checkpoint_interval,
    background_unit_max,
    background_window_max,
    background_skips_max,
    range_piece_bytes_max,
    position_interval,
    media_errors_max,
    trace_entries
);
