//! Names of the language, and the check that each name of an expression is known.
//!
//! This module must never contain a figure of a review: it has block sizes, depths and arrays.

use super::functions;
use super::syntax::{Argument, Clause, Expr, ExprNode};
use super::value::CheckValue;
use super::{wrong, CheckError};
use crate::axis_arguments::{axis_named, Axis, CLAIM_AXES};
use crate::metric::Metric;
use crate::subject::{clip, subject, Subject, JBOD, LEVELS};

/// Depths of loads with large depths.
const QDL: [u16; 5] = [1, 4, 16, 64, 256];
/// Depths of the Workstation load.
const QDW: [u16; 6] = [1, 2, 4, 8, 16, 32];
/// Outstanding requests of all workers.
pub const OIO: [u64; 7] = [2, 4, 8, 16, 32, 64, 128];
/// Block sizes of sequential methods: 512 B to 1 MiB.
pub const SEQ: [u64; 12] = doubling();
/// Block sizes of random methods: 512 B to 2 MiB.
pub const RND: [u64; 13] = doubling();
/// Steps of FC-Test.
const OPS: [&str; 4] = ["create", "read", "copy_same", "copy_other"];
/// File-sets.
const SETS: [&str; 5] = ["install", "iso", "mp3", "programs", "windows"];
/// Application traces.
const APPS: [&str; 4] = ["winmark99", "photoshop40", "soundforge40", "visualcpp50"];
/// Arrays of up to four drives.
const S4: [&str; 8] = ["single", "raid0x2", "raid0x3", "raid0x4", "raid1x2", "raid10x4", "raid5x3", "raid5x4"];
/// Arrays of eight drives.
const S8: [&str; 6] = ["single", "raid0x8", "raid5x8", "raid6x8", "raid10x8", "raid50x8"];
/// Stripes of two to six drives.
const R0: [&str; 5] = ["raid0x2", "raid0x3", "raid0x4", "raid0x5", "raid0x6"];

/// 512 and its successive doublings.
const fn doubling<const N: usize>() -> [u64; N] {
    let mut sizes = [512; N];
    let mut index = 1;
    while index < N {
        sizes[index] = sizes[index - 1] * 2;
        index += 1;
    }
    sizes
}

/// Names of constants; `T` is the tolerance of the claim.
const CONSTANTS: &[&str] = &[
    "K", "M", "T", "RD", "QDL", "QDW", "OIO", "SEQ", "RND", "OPS", "SETS", "APPS", "S4", "S8", "R0", "True", "False",
    "None",
];

/// The value of a name that is not a variable.
pub fn value(name: &str, tolerance: f64) -> Option<CheckValue<'static>> {
    let sizes = |sizes: &[u64]| {
        let size = |size: &u64| CheckValue::Int(i64::try_from(*size).unwrap_or(i64::MAX));
        CheckValue::List(sizes.iter().map(size).collect())
    };
    let depths =
        |depths: &[u16]| CheckValue::List(depths.iter().map(|depth| CheckValue::Int((*depth).into())).collect());
    let words = |words: &[&str]| CheckValue::List(words.iter().map(|word| CheckValue::text(word)).collect());
    Some(match name {
        "K" => CheckValue::Int(1024),
        "M" => CheckValue::Int(1024 * 1024),
        "T" => CheckValue::Float(tolerance),
        // Percentages of reads.
        "RD" => CheckValue::List((0..=10).map(|tenth| CheckValue::Int(10 * tenth)).collect()),
        "QDL" => depths(&QDL),
        "QDW" => depths(&QDW),
        "OIO" => sizes(&OIO),
        "SEQ" => sizes(&SEQ),
        "RND" => sizes(&RND),
        "OPS" => words(&OPS),
        "SETS" => words(&SETS),
        "APPS" => words(&APPS),
        "S4" => words(&S4),
        "S8" => words(&S8),
        "R0" => words(&R0),
        _ => {
            let metric = Metric::ALL.into_iter().find(|metric| metric.name() == name).map(CheckValue::Metric);
            let function =
                || functions::ALL.into_iter().find(|function| function.name == name).map(CheckValue::Builtin);
            let of_arrays = || is_of_arrays(name).then(|| CheckValue::text(name));
            return metric.or_else(function).or_else(of_arrays);
        }
    })
}

/// Whether the name is one of an array, a drive, or a level without a width.
fn is_of_arrays(name: &str) -> bool {
    let is_level = || name == JBOD || LEVELS.into_iter().any(|level| level.word() == name);
    is_level() || subject(name).is_ok()
}

/// Check that all names of an expression are known, and that metrics have the named axes.
///
/// # Errors
/// The first name that is not known.
pub fn resolve(node: &ExprNode) -> Result<(), CheckError> {
    names(node, &mut Vec::new())
}

type Variables<'e> = Vec<&'e str>;

fn names<'e>(node: &'e ExprNode, variables: &mut Variables<'e>) -> Result<(), CheckError> {
    match &node.expr {
        Expr::Literal(_) => Ok(()),
        Expr::Name(name) if variables.contains(&name.as_str()) || value(name, 0.0).is_some() => Ok(()),
        Expr::Name(name) => Err(unknown(name).or_at(node.at)),
        Expr::List(parts) | Expr::Tuple(parts) | Expr::And(parts) | Expr::Or(parts) => all(parts, variables),
        Expr::Dict(pairs) => pairs.iter().try_for_each(|(key, item)| {
            names(key, variables)?;
            names(item, variables)
        }),
        Expr::Comprehension { key, item, clauses } => {
            let outside = variables.len();
            for clause in clauses {
                match clause {
                    Clause::If(condition) => names(condition, variables)?,
                    Clause::For(introduced, of) => {
                        names(of, variables)?;
                        variables.extend(introduced.iter().map(String::as_str));
                    }
                }
            }
            key.as_ref().map_or(Ok(()), |key| names(key, variables))?;
            names(item, variables)?;
            variables.truncate(outside);
            Ok(())
        }
        Expr::Not(_, of) | Expr::Negative(of) => names(of, variables),
        Expr::Chain(first, others) => {
            names(first, variables)?;
            others.iter().try_for_each(|(_, _, other)| names(other, variables))
        }
        Expr::Compare(one, _, other) | Expr::Index(one, other) => {
            names(one, variables)?;
            names(other, variables)
        }
        Expr::Choice(parts) => all(&parts[..], variables),
        Expr::Lambda(parameters, body) => {
            let outside = variables.len();
            variables.extend(parameters.iter().map(String::as_str));
            names(body, variables)?;
            variables.truncate(outside);
            Ok(())
        }
        Expr::Call(function, arguments) => {
            names(function, variables)?;
            if let Expr::Name(name) = &function.expr {
                if !variables.contains(&name.as_str()) {
                    axes(name, arguments)?;
                }
            }
            arguments.iter().try_for_each(|argument| names(&argument.value, variables))
        }
        Expr::Method(of, _, arguments) => {
            names(of, variables)?;
            arguments.iter().try_for_each(|argument| names(&argument.value, variables))
        }
        Expr::Slice(of, parts) => {
            names(of, variables)?;
            parts.iter().flatten().try_for_each(|part| names(part, variables))
        }
    }
}

fn all<'e>(parts: &'e [ExprNode], variables: &mut Variables<'e>) -> Result<(), CheckError> {
    parts.iter().try_for_each(|part| names(part, variables))
}

/// Check that the named arguments are axes, if the function is a metric.
fn axes(function: &str, arguments: &[Argument]) -> Result<(), CheckError> {
    let Some(metric) = Metric::ALL.into_iter().find(|metric| metric.name() == function) else { return Ok(()) };
    for argument in arguments {
        let Some(name) = &argument.name else { continue };
        if *name != metric.first() && !axis_named(name).is_some_and(|axis| metric.takes(axis)) {
            let taken = CLAIM_AXES.into_iter().filter(|axis| metric.takes(*axis));
            let known = taken.map(Axis::word).collect::<Vec<_>>().join(", ");
            let text = format!("{function} has no axis '{}'; known are {known}", clip(name));
            return Err(wrong(text).or_at(argument.value.at));
        }
    }
    Ok(())
}

/// Changes of letters that a proposed name may have.
const CHANGES_MAX: usize = 2;
/// Bytes of a name for which another one is proposed.
const NAME_MAX: usize = 40;

fn unknown(name: &str) -> CheckError {
    let metrics = Metric::ALL.into_iter().map(Metric::name);
    let functions = functions::ALL.into_iter().map(|function| function.name);
    let drives = Subject::DRIVES.into_iter().map(|(name, _)| name);
    let all = CONSTANTS.iter().copied().chain(metrics).chain(functions).chain(drives);
    let is_near = |(distance, _): &(usize, &str)| *distance <= CHANGES_MAX && *distance < name.len();
    let all = all.filter(|_| name.len() <= NAME_MAX);
    let near = all.map(|known| (strsim::levenshtein(name, known), known)).min().filter(is_near);
    let name = clip(name);
    match near {
        Some((_, near)) => wrong(format!("nothing is called '{name}'; is '{near}' meant?")),
        None => wrong(format!("nothing is called '{name}'; the names of the check language are in docs/lab/claims.md")),
    }
}
