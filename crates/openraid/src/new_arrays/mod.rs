//! New arrays: from the user's request to the engine's command, checked before anything is written.

pub mod wiping;

use openraid_core::array::assemble::Assembly;
use openraid_core::array::new_array::{self, CreateSpec, NewDrive};
use openraid_format::{
    MdLevel, MemberPlacement, MinorVersion, PlacementRequest, Raid10Layout, SetName, Timestamp, Uuid,
    SUPERBLOCK_BYTES_MAX,
};
use openraid_runtime::member::OpenedMember;
use openraid_runtime::service::{CreateRequest, NestedRequest, StartedArray};
use openraid_runtime::ServiceHandle;
use openraid_sys::clock;
use openraid_units::{ArrayLevel, Bytes, DriveId, Sectors};

use crate::failure::Failure;
use crate::members::MISSING;
use crate::on_disk::sets;
use crate::service_exit::Cause;
use crate::words;

/// mdadm's own default.
const CHUNK_DEFAULT: Sectors = Sectors::kib(512);
/// The rounding of members of a linear array, as in mdadm.
const ROUNDING_DEFAULT: Sectors = Sectors::kib(64);
/// Minimum size of each member at which a new array gets a bitmap, as in mdadm.
const BITMAP_FROM: Sectors = Bytes::gib(100).sectors_floor();
/// Number of spans of 50 and 60 without an option.
const SPANS_DEFAULT: u16 = 2;

/// The request.
#[derive(Clone, Debug)]
pub struct CreateOptions<'a> {
    /// Name of the array.
    pub name: &'a str,
    pub level: ArrayLevel,
    /// Layout in words.
    pub layout: Option<&'a str>,
    pub chunk: Option<Sectors>,
    pub spans: Option<u16>,
    /// Members by slot, or the word for none.
    pub members: &'a [String],
    pub spares: &'a [String],
    /// Maximum size to use of each member.
    pub size: Option<Sectors>,
    /// No first sync.
    pub assume_clean: bool,
    /// Bitmap; `None`: large arrays get one.
    pub bitmap: Option<bool>,
    /// Partial parity log, in place of a bitmap.
    pub ppl: bool,
    /// Metadata version.
    pub minor: MinorVersion,
}

/// One set: indices in the list of present members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpanShape {
    /// Slots; `None` for a missing member.
    pub slots: Vec<Option<usize>>,
    pub spares: Vec<usize>,
}

/// The plan.
#[derive(Clone, Debug)]
pub struct NewShape {
    /// Name of the array.
    pub name: String,
    /// The user's name for its level.
    pub level: ArrayLevel,
    /// Level of each set.
    pub md: MdLevel,
    /// md's layout number.
    pub layout: u32,
    /// Chunk; zero if the level has none.
    pub chunk: Sectors,
    /// Metadata version.
    pub minor: MinorVersion,
    /// The sets: one, or the spans of a nested array.
    pub spans: Vec<SpanShape>,
    /// Maximum size to use of each member.
    pub size: Option<Sectors>,
    /// No first sync.
    pub assume_clean: bool,
    /// Bitmap; `None`: large arrays get one.
    pub bitmap: Option<bool>,
    /// Partial parity log, in place of a bitmap.
    pub ppl: bool,
}

impl NewShape {
    /// Check a request. Present members are counted in order, spares after them.
    ///
    /// # Errors
    /// Options that do not fit together, as wrong usage.
    pub fn of(options: &CreateOptions<'_>) -> Result<Self, Failure> {
        let md = words::md_level(options.level)
            .ok_or_else(|| Failure::usage("a raw drive is not created, only remembered"))?;
        let spans = spans(options)?;
        let shape = Self {
            name: options.name.into(),
            level: options.level,
            md,
            layout: words::layout(options.level, options.layout).map_err(Failure::usage)?,
            chunk: chunk(options.level, md, options.chunk)?,
            minor: options.minor,
            spans,
            size: options.size,
            assume_clean: options.assume_clean,
            bitmap: options.bitmap,
            ppl: options.ppl,
        };
        shape.check_counts()?;
        Ok(shape)
    }

    fn check_counts(&self) -> Result<(), Failure> {
        let slots = self.spans[0].slots.len();
        let least = usize::try_from(self.md.members_min()).expect("a small number");
        let each = if self.spans.len() > 1 { " in each span" } else { "" };
        if slots < least {
            return Err(Failure::usage(format!(
                "{} needs at least {least} members{each}; {slots} are named (the word `missing` counts)",
                self.md
            )));
        }
        if self.level == ArrayLevel::Single && slots != 1 {
            return Err(Failure::usage("single is one drive; use linear, 0 or 1 for several"));
        }
        if self.md == MdLevel::Raid10 {
            let copies = Raid10Layout::from_number(self.layout).map_or(2, Raid10Layout::copies);
            if usize::try_from(copies).is_ok_and(|copies| copies > slots) {
                return Err(Failure::usage(format!(
                    "{copies} copies need at least {copies} members; {slots} are named"
                )));
            }
        }
        let missing = self.spans.iter().any(|span| span.slots.iter().any(Option::is_none));
        if missing && (!self.md.is_redundant() || self.level == ArrayLevel::Single) {
            return Err(Failure::usage(format!("{} has no redundancy, so no member may be missing", self.md)));
        }
        if self.ppl && self.md != MdLevel::Raid5 {
            return Err(Failure::usage(
                "--consistency-policy ppl: partial parity is logged on RAID 5 and 50 only; controller-journal closes the \
                 write hole on every level",
            ));
        }
        if let (Some(true), false) = (self.bitmap, self.level.redundant()) {
            return Err(Failure::usage(
                "this level has no redundancy, so a bitmap would never help; leave --bitmap, or --consistency-policy bitmap, out",
            ));
        }
        Ok(())
    }

    /// Plan every set. `sizes` and `names` are those of the present members.
    ///
    /// # Errors
    /// Why it cannot be made, with the names of the members.
    pub fn plan(&self, sizes: &[Sectors], names: &[String]) -> Result<Vec<Assembly>, Failure> {
        let name = |drive: DriveId| names[drive.index()].clone();
        let mut plans = Vec::new();
        for number in 0..self.spans.len() {
            let mut spec = self.spec(number, sizes)?;
            let plan = new_array::plan(&spec)
                .map_err(|error| Failure::new(error.exit(), sets::create_error(&error, &name)))?;
            spec.bitmap = self.bitmap.unwrap_or(self.md.is_redundant() && plan.common.size >= BITMAP_FROM);
            let plan = new_array::plan(&spec)
                .map_err(|error| Failure::new(error.exit(), sets::create_error(&error, &name)))?;
            plans.push(plan);
        }
        Ok(plans)
    }

    fn spec(&self, number: usize, sizes: &[Sectors]) -> Result<CreateSpec, Failure> {
        let span = &self.spans[number];
        let drive =
            |place: usize| NewDrive { drive: sets::number(place), capacity: sizes[place], uuid: Uuid::default() };
        Ok(CreateSpec {
            uuid: Uuid::default(),
            name: self.set_name(number)?,
            created: Timestamp::new(clock::wall_seconds(), 0),
            level: self.md,
            layout: self.layout,
            chunk: self.chunk,
            minor: self.minor,
            slots: span.slots.iter().map(|slot| slot.map(drive)).collect(),
            spares: span.spares.iter().map(|place| drive(*place)).collect(),
            size: self.size,
            assume_clean: self.assume_clean,
            bitmap: false,
            ppl: self.ppl,
        })
    }

    fn set_name(&self, span: usize) -> Result<SetName, Failure> {
        let name = if self.is_nested() { format!("{}.{span}", self.name) } else { self.name.clone() };
        SetName::new(None, &name).map_err(Failure::usage)
    }

    /// Is it a stripe over several sets?
    pub fn is_nested(&self) -> bool {
        self.level.has_spans()
    }

    /// The chunk of the stripe over the spans: a whole stripe of a span, so that its full stripes stay in one piece.
    pub fn outer_chunk(&self, plans: &[Assembly]) -> Sectors {
        plans[0].geometry.full_stripe()
    }

    /// The size of the array.
    pub fn size(&self, plans: &[Assembly]) -> Sectors {
        if !self.is_nested() {
            return plans[0].geometry.capacity();
        }
        let chunk = self.outer_chunk(plans);
        let of_span = |plan: &Assembly| {
            let drive_size = plan.geometry.capacity();
            let request = PlacementRequest { minor: MinorVersion::V1_2, level: MdLevel::Raid0, chunk, drive_size };
            MemberPlacement::new(request).map_or(Sectors::ZERO, |placement| placement.data_size.round_down(chunk))
        };
        plans.iter().map(of_span).sum()
    }

    /// Make the array from the present members, by the plan.
    ///
    /// # Errors
    /// The engine's refusal.
    pub fn make(
        &self,
        service: &ServiceHandle,
        plans: &[Assembly],
        members: Vec<OpenedMember>,
    ) -> Result<StartedArray, Failure> {
        let mut members: Vec<Option<OpenedMember>> = members.into_iter().map(Some).collect();
        let mut take = |place: usize| members[place].take().expect("each member has one place");
        let mut requests = Vec::new();
        for (number, (span, plan)) in self.spans.iter().zip(plans).enumerate() {
            requests.push(CreateRequest {
                name: self.set_name(number)?,
                level: self.md,
                layout: self.layout,
                chunk: self.chunk,
                minor: self.minor,
                slots: span.slots.iter().map(|slot| slot.map(&mut take)).collect(),
                spares: span.spares.iter().map(|place| take(*place)).collect(),
                size: self.size,
                assume_clean: self.assume_clean,
                bitmap: plan.bitmap.is_some(),
                ppl: plan.ppl.is_some(),
            });
        }
        let made = if self.is_nested() {
            let name = SetName::new(None, &self.name).map_err(Failure::usage)?;
            service.create_nested(NestedRequest { name, chunk: self.outer_chunk(plans), spans: requests })
        } else {
            service.create(requests.remove(0))
        };
        made.map_err(Failure::from)
    }
}

fn spans(options: &CreateOptions<'_>) -> Result<Vec<SpanShape>, Failure> {
    let nested = options.level.has_spans();
    if let (false, Some(_)) = (nested, options.spans) {
        return Err(Failure::usage("--spans is for levels 50 and 60"));
    }
    if let Some(text) = options.spares.iter().find(|text| *text == MISSING) {
        return Err(Failure::usage(format!("a spare cannot be {text}; leave it out")));
    }
    let wanted = if nested { usize::from(options.spans.unwrap_or(SPANS_DEFAULT)) } else { 1 };
    let count = options.members.len();
    if !count.is_multiple_of(wanted) {
        return Err(Failure::usage(format!(
            "{count} members cannot be shared out to {wanted} spans; name a multiple of {wanted}, or another --spans"
        )));
    }
    let mut places = 0..;
    let mut place = || places.next().expect("numbers do not run out");
    let mut slots: Vec<Option<usize>> = options.members.iter().map(|text| (text != MISSING).then(&mut place)).collect();
    let mut spans: Vec<SpanShape> =
        (0..wanted).map(|_| SpanShape { slots: slots.drain(..count / wanted).collect(), spares: Vec::new() }).collect();
    for number in 0..options.spares.len() {
        spans[number % wanted].spares.push(place());
    }
    Ok(spans)
}

fn chunk(level: ArrayLevel, md: MdLevel, asked: Option<Sectors>) -> Result<Sectors, Failure> {
    match (md, asked) {
        (MdLevel::Raid1, Some(_)) => {
            let word = if level == ArrayLevel::Single { "single" } else { "raid1" };
            Err(Failure::usage(format!("{word} has no chunk; leave --chunk out")))
        }
        (MdLevel::Raid1, None) => Ok(Sectors::ZERO),
        (_, Some(chunk)) => Ok(chunk),
        (MdLevel::Linear, None) => Ok(ROUNDING_DEFAULT),
        (_, None) => Ok(CHUNK_DEFAULT),
    }
}

/// Clears the superblock of an earlier array at the start of the new array's data. If that superblock belongs to a
/// stripe, the new array would look like a span of that stripe. With `keep` the user says that the content is correct,
/// so the superblock stays.
///
/// # Errors
/// The superblock cannot be read or written.
pub fn forget_what_was_inside(
    handle: &ServiceHandle,
    started: &StartedArray,
    size_bytes: u64,
    keep: bool,
) -> Result<(), Failure> {
    let capacity = Bytes(size_bytes).sectors_floor();
    for _ in MinorVersion::ALL {
        let inside = handle.superblock_inside(started.array, capacity).map_err(Failure::failed)?;
        let Some(inside) = inside.filter(|_| !keep) else { return Ok(()) };
        let offset = inside.super_offset.offset().bytes().get();
        handle.write(started.array, offset, &[0; SUPERBLOCK_BYTES_MAX], true)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    fn options<'a>(level: &str, members: &'a [String], spares: &'a [String]) -> CreateOptions<'a> {
        CreateOptions {
            name: "data",
            level: words::level(level).expect("a level"),
            layout: None,
            chunk: None,
            spans: None,
            members,
            spares,
            size: None,
            assume_clean: false,
            bitmap: None,
            ppl: false,
            minor: MinorVersion::V1_2,
        }
    }

    #[test]
    fn members_go_to_slots_in_order_and_spares_round_the_spans() {
        let members = strings(&["a", "missing", "b", "c", "d", "e"]);
        let spares = strings(&["x", "y", "z"]);
        let shape = NewShape::of(&options("50", &members, &spares)).expect("a shape");
        let spans = [
            SpanShape { slots: vec![Some(0), None, Some(1)], spares: vec![5, 7] },
            SpanShape { slots: vec![Some(2), Some(3), Some(4)], spares: vec![6] },
        ];
        assert_eq!(shape.spans, spans);
    }

    #[test]
    fn contradictory_options_are_wrong_usage() {
        let (two, five, none) = (strings(&["a", "b"]), strings(&["a", "b", "c", "d", "e"]), Vec::new());
        let refused = |options: CreateOptions<'_>| NewShape::of(&options).expect_err("refused").text();
        assert!(refused(options("6", &two, &none)).contains("at least 4 members"));
        assert!(refused(options("50", &five, &none)).contains("shared out"));
        assert!(refused(options("single", &two, &none)).contains("one drive"));
        assert!(refused(CreateOptions { chunk: Some(Sectors(8)), ..options("1", &two, &none) }).contains("no chunk"));
        assert!(refused(CreateOptions { spans: Some(2), ..options("5", &five, &none) }).contains("--spans"));
        assert!(refused(CreateOptions { layout: Some("n3"), ..options("10", &two, &none) }).contains("3 copies"));
        assert!(refused(CreateOptions { bitmap: Some(true), ..options("0", &two, &none) }).contains("bitmap"));
        let missing = strings(&["missing"]);
        assert!(refused(options("5", &five, &missing)).contains("spare"));
    }

    #[test]
    fn large_members_or_an_option_give_an_array_a_bitmap() {
        let members = strings(&["a", "b", "c"]);
        let plan = |options: CreateOptions<'_>, size| {
            let shape = NewShape::of(&options).expect("a shape");
            shape.plan(&[size; 3], &members).expect("a plan")[0].bitmap.is_some()
        };
        let large = Bytes::gib(101).sectors_floor();
        let five = || options("5", &members, &[]);
        assert!(!plan(five(), Sectors::mib(64)));
        assert!(plan(five(), large));
        assert!(plan(CreateOptions { bitmap: Some(true), ..five() }, Sectors::mib(64)));
        assert!(!plan(CreateOptions { bitmap: Some(false), ..five() }, large));
        assert!(!plan(options("0", &members, &[]), large));
    }

    #[test]
    fn reasons_name_the_member_that_is_too_small() {
        let members = strings(&["/a", "/b", "/c"]);
        let shape = NewShape::of(&options("5", &members, &[])).expect("a shape");
        let sizes = [Sectors::mib(64), Sectors::kib(64), Sectors::mib(64)];
        let text = shape.plan(&sizes, &members).expect_err("too small").text();
        assert!(text.starts_with("/b: the member is too small"), "{text}");
    }
}
