//! New arrays by HTTP: planned, checked and made like `openraid create`, and served at once.

use openraid_core::array::assemble::Assembly;
use openraid_core::slot_set::SlotSet;
use openraid_format::MinorVersion;
use openraid_management::{CommandResult, Creation, OfferModel, PlanModel};
use openraid_runtime::member::{OpenedMember, ProbedMember};
use openraid_status::shell_quoting::{self, word};
use openraid_sys::Use;
use openraid_units::Sectors;

use super::super::array_model::{class_word, survives_losses};
use super::super::joining_members::check_free;
use super::super::{Server, ServerAccess};
use crate::failure::Failure;
use crate::members::contents::contents;
use crate::members::{lasting_spec, open_every, options};
use crate::new_arrays::forget_what_was_inside;
use crate::new_arrays::wiping;
use crate::new_arrays::{CreateOptions, NewShape};
use crate::program_settings;
use crate::quantity;
use crate::words::{self, layout_text};

/// The plan for a creation.
struct CreationPlan {
    shape: NewShape,
    plans: Vec<Assembly>,
    members: Vec<(OpenedMember, ProbedMember)>,
    holds: Vec<String>,
}

fn planned(creation: &Creation, usage: Use) -> Result<CreationPlan, Failure> {
    let level = words::level(&creation.level).map_err(Failure::usage)?;
    let name = words::array_name(&creation.name).map_err(Failure::usage)?;
    let chunk = creation.chunk.as_deref().map(quantity::sectors).transpose().map_err(Failure::usage)?;
    let shape = NewShape::of(&CreateOptions {
        name: &name,
        level,
        layout: None,
        chunk,
        spans: creation.spans,
        members: &creation.members,
        spares: &creation.spares,
        size: None,
        assume_clean: false,
        bitmap: None,
        ppl: false,
        minor: MinorVersion::V1_2,
    })?;
    let names: Vec<String> = creation.members.iter().chain(&creation.spares).cloned().collect();
    let specs = names.iter().map(|text| lasting_spec(text)).collect::<Result<Vec<_>, _>>()?;
    let members = open_every(&specs, options(usage))?;
    let holds = members.iter().filter(|(_, probed)| !probed.look.is_blank());
    let holds = holds.map(|(_, probed)| format!("{}: {}", probed.spec, contents(probed))).collect();
    let sizes: Vec<Sectors> = members.iter().map(|(opened, _)| opened.info.capacity).collect();
    let plans = shape.plan(&sizes, &names)?;
    Ok(CreationPlan { shape, plans, members, holds })
}

impl Server {
    /// Plan an array without making it.
    pub(super) fn plan_new(&self, creation: &Creation) -> Result<PlanModel, Failure> {
        // Two that look at the same drives would each find them in use.
        let _one_at_a_time = self.changing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let CreationPlan { shape, plans, holds, members } = planned(creation, Use::ReadExclusive)?;
        let mut classes = members.iter().map(|(opened, _)| class_word(&opened.medium.names()));
        let class = classes.next().flatten().filter(|first| classes.all(|other| other == Some(*first)));
        let is_for = |offer: &OfferModel| offer.levels.is_empty() || offer.levels.contains(&shape.md.to_string());
        let survives = |plan: &Assembly| survives_losses(&plan.geometry, SlotSet::first_n(plan.geometry.members()));
        let layout = layout_text(shape.md, shape.layout).map_or_else(String::new, |layout| format!(", {layout}"));
        Ok(PlanModel {
            size_bytes: shape.size(&plans).bytes().get(),
            survives: plans.iter().map(survives).min().unwrap_or(0),
            level: format!("{}{layout}", creation.level),
            chunk_bytes: (!shape.chunk.is_zero()).then(|| shape.chunk.bytes().get()),
            command: command(creation),
            holds,
            offers: program_settings::offers()
                .into_iter()
                .filter(|offer| class == Some(offer.class) && is_for(offer))
                .collect(),
            class,
        })
    }

    /// Make an array and serve it.
    pub(super) fn make_new(&self, creation: &Creation) -> Result<CommandResult, Failure> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.access == ServerAccess::Untouched {
            return Err(Failure::refused("the server was started with --read-only and makes no arrays"));
        }
        if self.registry.find(&creation.name)?.is_some() {
            return Err(Failure::refused(format!(
                "an array named {} is remembered already; choose another name, or forget that one with `{}`",
                creation.name,
                shell_quoting::command("forget", [&creation.name])
            )));
        }
        let CreationPlan { shape, plans, mut members, holds } = planned(creation, Use::Exclusive)?;
        for (_, probed) in &members {
            check_free(probed, creation.overwrite)?;
        }
        let places: Vec<String> = members.iter().map(|(_, probed)| probed.spec.text.clone()).collect();
        if !holds.is_empty() {
            let mut specs = Vec::new();
            for (opened, probed) in members {
                wiping::wipe(&self.handle, opened, &wiping::all_areas(&probed))?;
                specs.push(probed.spec);
            }
            members = open_every(&specs, options(Use::Exclusive))?;
        }
        let opened = members.into_iter().map(|(opened, _)| opened).collect();
        let started = shape.make(&self.handle, &plans, opened)?;
        let size = self.size_of(started.array)?;
        forget_what_was_inside(&self.handle, &started, size, false)?;
        let name = self.serve_started(started)?;
        self.registry.forget_members(&places)?;
        self.remember(&name)?;
        let array = self.array(&name)?;
        Ok(CommandResult { text: format!("array {name} created, and served"), array: Some(Box::new(array)) })
    }

    fn size_of(&self, array: openraid_units::ArrayId) -> Result<u64, Failure> {
        let status = self.status()?;
        let view = status.arrays.iter().find(|view| view.status.array == array);
        view.map(|view| view.status.capacity.bytes().get()).ok_or_else(|| Failure::failed("the new array does not run"))
    }
}

/// The command line that does the same.
fn command(creation: &Creation) -> String {
    let mut options = vec![format!("create --level {}", word(&creation.level))];
    options.extend(creation.chunk.iter().map(|chunk| format!("--chunk {}", word(chunk))));
    options.extend(creation.spans.iter().map(|spans| format!("--spans {spans}")));
    options.extend(creation.spares.iter().map(|spare| format!("--spare {}", word(spare))));
    options.extend(creation.overwrite.then(|| "--yes --overwrite".to_owned()));
    shell_quoting::command(&options.join(" "), std::iter::once(&creation.name).chain(&creation.members))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use openraid_runtime::member::paced::{set_models, DriveTiming, TimingProfile};
    use openraid_status::DriveClass;
    use openraid_units::{DriveId, Sectors};

    use crate::in_process::InProcess;

    /// A kind of drive, of which none is served.
    struct Kind {
        rotational: bool,
    }

    impl TimingProfile for Kind {
        fn title(&self) -> &str {
            "drive"
        }

        fn rotational(&self) -> bool {
            self.rotational
        }

        fn sectors(&self) -> Sectors {
            Sectors::mib(1 << 20)
        }

        fn build(&self, _: Option<bool>, _: DriveId) -> Box<dyn DriveTiming> {
            panic!("only planned arrays have this member")
        }
    }

    /// The class of modelled drives is known, the class of files is not.
    #[test]
    fn drives_of_one_class_are_offered_the_values_for_it() {
        set_models(|name| Ok(Arc::new(Kind { rotational: name == "disk" })));
        let host = InProcess::start("classes", openraid_core::limits::Limits::default()).expect("a server");
        let folder = std::env::temp_dir().join(format!("openraid-classes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("room");
        let plan = |level: &str, drives: [&str; 2]| {
            let member = |nth: usize| {
                let path = folder.join(format!("d{nth}"));
                std::fs::File::create(&path).and_then(|file| file.set_len(8 << 20)).expect("room");
                match drives[nth] {
                    "" => path.display().to_string(),
                    profile => format!("model:{profile},file={}", path.display()),
                }
            };
            let creation = serde_json::json!({"name": "pair", "level": level, "members": [member(0), member(1)]});
            let creation = serde_json::from_value(creation).expect("a creation");
            let plan = host.server.plan_new(&creation).unwrap_or_else(|failure| panic!("{}", failure.text()));
            let offers: Vec<String> =
                plan.offers.iter().map(|offer| format!("{}={}", offer.setting, offer.value)).collect();
            (plan.class, offers.join(" "))
        };
        let (disk, flash) = ("disk", "flash");
        assert_eq!(plan("1", [disk, disk]), (Some(DriveClass::Rotating), "adaptive=on".into()));
        assert_eq!(plan("0", [disk, disk]), (Some(DriveClass::Rotating), String::new()));
        assert_eq!(plan("1", [flash, flash]), (Some(DriveClass::Ssd), "rebuild.rate=500M scrub.rate=250M".into()));
        assert_eq!(plan("1", [disk, flash]), (None, String::new()));
        assert_eq!(plan("1", ["", flash]), (None, String::new()));
        assert_eq!(plan("1", ["", ""]), (None, String::new()));
        std::fs::remove_dir_all(&folder).expect("it is ours");
        host.stop();
    }
}
