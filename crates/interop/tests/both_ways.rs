//! Every level and layout, from the engine to md and from md to the engine, healthy and degraded.

use openraid_interop::{create_arguments, has_word, is_stamped, key, machine, made_by_engine, shapes, slice, Folder};
use openraid_oracle::{answer, Guest, SOAK};
use openraid_sim::{ArrayShape, RigOptions};
use std::path::PathBuf;
use std::time::Duration;

const BOOT_TIMEOUT: Duration = Duration::from_secs(240);
/// Arrays in one boot of md's kernel.
const ARRAYS_PER_BOOT: usize = 20;
/// Members that md lays out by its own rules.
const MEMBER_BYTES: u64 = 4 << 20;
const SEED: u64 = 7;

fn cases() -> Vec<(String, ArrayShape)> {
    let shapes = if std::env::var_os(SOAK).is_some() { shapes() } else { slice() };
    shapes.into_iter().enumerate().map(|(number, shape)| (key(&shape, number), shape)).collect()
}

/// The members that are left when as many as can always be lost are lost, the first ones.
fn survivors(shape: &ArrayShape, all: &[String]) -> Option<Vec<String>> {
    let lost = usize::from(shape.geometry().losses_survived());
    (lost > 0).then(|| all[lost..].to_vec())
}

#[test]
fn md_reads_what_the_engine_wrote_and_finds_its_redundancy_right() {
    let folder = Folder::new("engine-to-md");
    for batch in cases().chunks(ARRAYS_PER_BOOT) {
        let mut guest = Guest::new();
        for (key, shape) in batch {
            let options = RigOptions { bitmap: key.len().is_multiple_of(2), ..RigOptions::new(SEED) };
            let paths = made_by_engine(*shape, key, &folder, options);
            let devices: Vec<String> = paths.iter().map(|path| guest.image(path)).collect();
            let all = devices.join(" ");
            guest.script(&format!(
                "assemble {key} {all}\nif assembled {key}; then stamp {key} check {SEED}; check {key}; stop {key}; fi"
            ));
            if let Some(few) = survivors(shape, &devices) {
                let degraded = format!("{key}_degraded");
                guest.script(&format!(
                    "assemble {degraded} {}\nif assembled {degraded}; then stamp {degraded} check {SEED}; stop {degraded}; fi",
                    few.join(" ")
                ));
            }
        }
        let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
        println!("{} arrays in {:.1} s", batch.len(), output.took.as_secs_f64());
        let value = |what: String| output.text(&what);
        for (key, shape) in batch {
            assert_eq!(value(format!("{key}.assembled")), "yes", "{shape}: {}", value(format!("{key}.refusal")));
            assert!(["clean", "active"].contains(&value(format!("{key}.state"))), "{shape}");
            assert_eq!(value(format!("{key}.stamp")), "good", "{shape}");
            if shape.geometry().losses_survived() > 0 {
                assert_eq!(value(format!("{key}.mismatch_cnt")), "0", "{shape}");
                let state = value(format!("{key}_degraded.state"));
                assert_eq!(state, "clean, degraded", "{shape}: {}", value(format!("{key}_degraded.refusal")));
                assert_eq!(value(format!("{key}_degraded.stamp")), "good", "{shape}, degraded");
            }
        }
    }
}

#[test]
fn the_engine_reads_what_md_wrote_with_all_members_and_with_few() {
    let folder = Folder::new("md-to-engine");
    let cases: Vec<(String, ArrayShape)> = cases().into_iter().filter(|(_, shape)| has_word(shape)).collect();
    for batch in cases.chunks(ARRAYS_PER_BOOT) {
        let mut guest = Guest::new();
        for (key, shape) in batch {
            let devices: Vec<String> = (0..shape.members)
                .map(|member| {
                    let more = if shape.unequal { u64::from(member % 3) * (292 << 10) } else { 0 };
                    guest.image(folder.empty(key, usize::from(member), MEMBER_BYTES + more))
                })
                .collect();
            let arguments = create_arguments(shape);
            guest.script(&format!(
                "create {key} {arguments} {}\nstamp {key} write {SEED}\nstop {key}",
                devices.join(" ")
            ));
        }
        let Some(output) = answer(guest.run(BOOT_TIMEOUT)) else { return };
        println!("{} arrays in {:.1} s", batch.len(), output.took.as_secs_f64());
        for (key, shape) in batch {
            let paths: Vec<PathBuf> = (0..usize::from(shape.members)).map(|member| folder.image(key, member)).collect();
            let size: u64 = output.value(&format!("{key}.size")).expect("md said its size").parse().expect("a number");
            let mut world = machine(&paths, SEED);
            let array = world.assemble(false).unwrap_or_else(|error| panic!("{shape}: {error:?}"));
            assert_eq!(world.controller().capacity(array).expect("it runs").get(), size, "{shape}");
            assert!(is_stamped(&mut world, array, SEED), "{shape}");
            let lost = usize::from(shape.geometry().losses_survived());
            if lost > 0 {
                let mut world = machine(&paths[lost..], SEED);
                let array = world.assemble(false).unwrap_or_else(|error| panic!("{shape}: {error:?}"));
                assert!(is_stamped(&mut world, array, SEED), "{shape}, the first {lost} missing");
            }
        }
    }
}
