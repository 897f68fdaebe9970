//! `openraid config`: checks a configuration file, and shows the desired state.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use openraid_config::{ArrayId, ConfigProblem, DesiredState, FileValue, SinkKind, SpareFor};
use openraid_management::{flaws, TlsFile};
use openraid_sys::Use;
use serde::Serialize;

use super::Context;
use crate::arguments::{ConfigArguments, ConfigVerb};
use crate::control::{Command, ServerAnswer};
use crate::desired::{self, model};
use crate::failure::{Exit, Failure, Outcome};
use crate::members::{open_some, options, spec};
use crate::quantity::counted;

/// A problem in the configuration.
#[derive(Serialize, utoipa::ToSchema)]
struct ProblemModel {
    /// Line of the configuration file, from 1.
    line: u32,
    /// Column of that line, from 1.
    column: u32,
    /// The key with the problem, with its tables, such as `arrays.data.access`.
    key: String,
    /// The problem in a sentence.
    what: String,
    /// What to write instead, in a sentence.
    remedy: String,
}

/// A configuration, and its problems.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ConfigReport {
    /// The problems, in the order of their lines. Empty if the file is valid.
    problems: Vec<ProblemModel>,
    /// The configuration, as far as it was read.
    #[serde(flatten)]
    config: model::ConfigModel,
}

/// Runs the verb.
///
/// # Errors
/// There is no file, or the file has problems.
pub fn run(arguments: &ConfigArguments, context: &Context) -> Outcome {
    match &arguments.verb {
        ConfigVerb::Check { file } => check(&named(file.as_deref())?, context),
        ConfigVerb::Member { device } => member(device, context),
        ConfigVerb::Udev => super::udev_rules::run(context),
        ConfigVerb::Show { file } => show(file.as_deref(), context),
    }
}

fn named(file: Option<&Path>) -> Result<PathBuf, Failure> {
    file.map(Path::to_path_buf).or_else(desired::default_path).ok_or_else(|| {
        Failure::usage(
            "there is no configuration file where one is looked for; name it: openraid config check FILE (see docs/config.md)",
        )
    })
}

fn check(path: &Path, context: &Context) -> Outcome {
    let shown = path.display().to_string();
    let text = desired::text_of(path)?;
    match desired::parse(&text) {
        Ok(desired) => {
            let flaws = flaws_of(&desired, context);
            if !flaws.is_empty() {
                return Ok(context.output.fail_with(&flawed(path, &flaws), &checked(&shown, &flaws)));
            }
            let mut config = model::config(Some(shown.clone()), model::server_values(&desired), &desired, &[]);
            // A file is also checked on another machine, or before the registry can be read.
            model::know(&mut config, &context.registry.entries().unwrap_or_default());
            let text = format!("{shown}: no problems\n{}", config.text());
            Ok(context.output.answer(Exit::Fine, &ConfigReport { problems: Vec::new(), config }, &text))
        }
        Err(problems) => {
            let body = checked(&shown, &problems.0);
            Ok(context.output.fail_with(&desired::failure(path, &problems), &body))
        }
    }
}

/// The problems of a configuration, of which nothing is shown.
fn checked(shown: &str, problems: &[ConfigProblem]) -> ConfigReport {
    let all = problems.iter().map(|problem| ProblemModel {
        line: problem.line,
        column: problem.column,
        key: problem.key.clone(),
        what: problem.what.clone(),
        remedy: problem.remedy.clone(),
    });
    let config = model::ConfigModel { path: Some(shown.to_owned()), ..model::ConfigModel::default() };
    ConfigReport { problems: all.collect(), config }
}

/// Problems of everything outside the file that a configuration names: certificates and keys, programs, arrays.
fn flaws_of(desired: &DesiredState, context: &Context) -> Vec<ConfigProblem> {
    let (web, nbd) = (&desired.management, &desired.server);
    let web = [("management.", &web.certificate), ("management.", &web.key), ("management.", &web.client_ca)];
    let nbd =
        [&nbd.nbd_tls_certificate, &nbd.nbd_tls_key, &nbd.nbd_tls_client_ca].map(|file| ("server.nbd-tls-", file));
    let mut flaws: Vec<ConfigProblem> = flaws_of_files(web).into_iter().chain(flaws_of_files(nbd)).collect();
    flaws.extend(missing_files(desired));
    flaws.extend(unknown_arrays(desired, context));
    flaws.sort();
    flaws
}

/// Programs and password files that are not there, or that cannot be used.
fn missing_files(desired: &DesiredState) -> Vec<ConfigProblem> {
    let care = &desired.care;
    let named = |key: &str, place: &Option<FileValue<PathBuf>>| {
        place.as_ref().map(|place| (format!("care.{key}"), place.line, place.value.clone(), true))
    };
    let sinks = desired.sinks.iter().filter_map(|sink| {
        let (key, path, is_program) = match &sink.kind {
            SinkKind::Exec { program } => ("program", program, true),
            SinkKind::Mail { password_file: Some(file), .. } => ("password-file", file, false),
            _ => return None,
        };
        Some((format!("sinks.{}.{key}", sink.name), sink.line, path.clone(), is_program))
    });
    let all = [named("smartctl", &care.smartctl), named("led", &care.led)].into_iter().flatten().chain(sinks);
    all.filter_map(|(key, line, path, is_program)| {
        let what = match std::fs::metadata(&path) {
            Err(error) => format!("{}: {error}", path.display()),
            Ok(found) if is_program && (!found.is_file() || found.permissions().mode() & 0o111 == 0) => {
                format!("{} is no program", path.display())
            }
            Ok(_) => return None,
        };
        let remedy = if is_program { "name a program that can be executed" } else { "name the file with the password" };
        Some(ConfigProblem { line, column: 1, key, what, remedy: remedy.into() })
    })
    .collect()
}

/// Spares and schedules for arrays that are neither in the file nor in the registry. Without a registry nothing is known.
fn unknown_arrays(desired: &DesiredState, context: &Context) -> Vec<ConfigProblem> {
    let Ok(entries) = context.registry.entries() else { return Vec::new() };
    let is_known = |name: &str| {
        entries.iter().any(|entry| entry.name == name)
            || desired.arrays.iter().any(|array| matches!(&array.id, ArrayId::Name(known) if known == name))
    };
    let spares = desired.spares.iter().filter_map(|spare| match &spare.whom {
        SpareFor::Array { name, .. } => Some(("spares.for".to_owned(), spare.line, name)),
        SpareFor::All => None,
    });
    let schedules = desired.schedules.iter().flat_map(|schedule| {
        let key = format!("schedules.{}.arrays", schedule.name);
        schedule.arrays.iter().map(move |name| (key.clone(), schedule.line, name))
    });
    let unknown = spares.chain(schedules).filter(|(.., name)| !is_known(name));
    unknown
        .map(|(key, line, name)| ConfigProblem {
            line,
            column: 1,
            key,
            what: format!("there is no array named {name}"),
            remedy: "name an array of `openraid list`, or create the array first".into(),
        })
        .collect()
}

/// A file that a configuration names: the beginning of its key, and its place.
type FileKey<'a> = (&'static str, &'a Option<FileValue<PathBuf>>);

/// Problems of a certificate, its key, and the authorities of clients.
fn flaws_of_files([chain, key, authorities]: [FileKey<'_>; 3]) -> Vec<ConfigProblem> {
    let path = |(_, place): FileKey<'_>| place.as_ref().map(|placed| placed.value.clone());
    let both = path(chain).zip(path(key));
    let ca = path(authorities);
    let found = flaws(both.as_ref().map(|(chain, key)| (chain.as_path(), key.as_path())), ca.as_deref());
    let problem = |(file, what): (TlsFile, String)| {
        let (name, (table, place), remedy) = match file {
            TlsFile::Certificate => ("certificate", chain, "name a certificate in PEM form that is valid now"),
            TlsFile::Key => ("key", key, "name the key of that certificate, in PEM form"),
            TlsFile::ClientAuthorities => {
                ("client-ca", authorities, "name certificates of authorities, in PEM form, that are valid now")
            }
        };
        let line = place.as_ref().map_or(0, |placed| placed.line);
        ConfigProblem { line, column: 1, key: format!("{table}{name}"), what, remedy: remedy.into() }
    };
    found.into_iter().map(problem).collect()
}

fn flawed(path: &Path, flaws: &[ConfigProblem]) -> Failure {
    let count = counted(flaws.len() as u64, "problem", "problems");
    let lines: String = flaws.iter().map(|flaw| format!("\n  {flaw}")).collect();
    Failure::refused(format!("{}: {count} with the files and arrays that it names{lines}", path.display()))
}

/// The array that a device belongs to.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct ConfigMember<'a> {
    /// Path of the device, as it was asked for.
    device: &'a str,
    /// Name of the array that the device belongs to.
    array: &'a str,
}

/// Does a device belong to an array of openraid on this machine? The identity in its superblock decides, or its path.
fn member(device: &Path, context: &Context) -> Outcome {
    let shown = device.display().to_string();
    // Even if the file has errors, its members must not be given to other software.
    let desired = desired::default_path().and_then(|path| desired::load(&path).ok()).unwrap_or_default();
    let config = model::config(None, Vec::new(), &desired, &context.registry.entries_or_traces());
    let resolved = |path: &Path| path.canonicalize().ok();
    let device_path = resolved(device);
    let by_path = |array: &&model::ArrayConfigModel| {
        device_path.is_some() && array.members.iter().any(|member| resolved(Path::new(member)) == device_path)
    };
    let (opened, _) = open_some(&[spec(&shown)?], options(Use::Examine));
    let uuid = opened
        .first()
        .and_then(|(_, probed)| probed.look.superblock.as_ref())
        .map(|superblock| superblock.set_uuid.to_string());
    let by_uuid = |array: &&model::ArrayConfigModel| uuid.is_some() && array.uuid == uuid;
    match config.arrays.iter().find(by_uuid).or_else(|| config.arrays.iter().find(by_path)) {
        Some(array) => {
            let body = ConfigMember { device: &shown, array: &array.name };
            Ok(context.output.answer(Exit::Fine, &body, &array.name))
        }
        None => Err(Failure::refused(format!(
            "{shown} does not belong to an array of the registry or the configuration file"
        ))),
    }
}

/// The state in force, from the running server. If no server runs, or if a file is given: the state that would be in
/// force.
fn show(file: Option<&Path>, context: &Context) -> Outcome {
    let mut servers = if file.is_some() { Vec::new() } else { context.servers.connect()? };
    let config = match servers.as_mut_slice() {
        [] => {
            let path = file.map(Path::to_path_buf).or_else(desired::default_path);
            let desired = path.as_deref().map_or_else(|| Ok(DesiredState::default()), desired::load)?;
            let path = path.map(|path| path.display().to_string());
            model::config(path, model::server_values(&desired), &desired, &context.registry.entries()?)
        }
        [server] => match server.ask(&Command::Config)? {
            ServerAnswer::Config(config) => *config,
            _ => return Err(Failure::cannot_tell("unexpected answer of the server: it may be of another version")),
        },
        _ => return Err(Failure::usage("several servers run: say with --control which one is meant")),
    };
    let of = config.path.as_deref().map_or_else(String::new, |path| format!("configuration file: {path}\n"));
    let text = format!("{of}{}", config.text());
    Ok(context.output.answer(Exit::Fine, &config, &text))
}
