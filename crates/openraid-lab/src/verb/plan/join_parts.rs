//! Parts of a plan with many machines, and the whole plan that is joined from them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use openraid_methods::reader::RequestTrace;
use openraid_methods::run::{complete, fingerprint, RunShard};
use openraid_models::Library;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::several_machines;
use crate::arguments::PlanArguments;
use openraid::failure::{Exit, Failure, Outcome};
use openraid::verb::Context;

/// Schema name of a plan.
const SCHEMA: &str = "openraid/plan/1";

/// The part of a plan that an answer has.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub(super) struct PlanPart {
    /// Which part of how many.
    #[serde(flatten)]
    pub shard: RunShard,
    /// Number of machines of the whole plan.
    machines: usize,
    /// Version of the program and digest of its profiles: all parts must have the same.
    stamp: String,
    /// A number computed from all options: other questions have another number.
    question: String,
}

impl PlanPart {
    /// The requested part, if any.
    ///
    /// # Errors
    /// There are fewer machines than parts.
    pub fn of(
        arguments: &PlanArguments,
        library: &Library,
        machines: usize,
        trace: Option<&RequestTrace>,
    ) -> Result<Option<Self>, Failure> {
        let Some(shard) = arguments.shard else { return Ok(None) };
        if (shard.of as usize) > machines {
            return Err(Failure::usage(format!(
                "--shard {shard}: parts of a plan are whole machines, and there are {machines}; give more --drives, --drive or \
                 --bus, or fewer parts"
            )));
        }
        let mut hash = DefaultHasher::new();
        let load = &arguments.load;
        format!("{:?}", (&arguments.drives, &arguments.levels, &arguments.system, arguments.range, load))
            .hash(&mut hash);
        let machine = (&arguments.caches, &arguments.chunks, &arguments.spares, arguments.replace_after);
        format!("{machine:?} {:?}", arguments.rate).hash(&mut hash);
        let prices = arguments.price.iter().chain(&arguments.kwh_price).map(|price| price.to_bits());
        (trace.map(RequestTrace::digest), arguments.price.len(), prices.collect::<Vec<_>>()).hash(&mut hash);
        let question = format!("{:016x}", hash.finish());
        Ok(Some(Self { shard, machines, stamp: fingerprint(library), question }))
    }
}

/// Joins the answers of all parts.
///
/// # Errors
/// A file is not a part of a plan, the parts do not belong together, or a part is missing.
pub fn join(files: &[PathBuf], context: &Context) -> Outcome {
    let parts = files.iter().map(|file| read(file)).collect::<Result<Vec<_>, Failure>>()?;
    let shards: Vec<RunShard> = parts.iter().map(|(part, _)| part.shard).collect();
    complete(&shards).map_err(Failure::usage)?;
    let Some((first, _)) = parts.first() else { return Err(Failure::usage("name the parts")) };
    for (file, (part, _)) in files.iter().zip(&parts) {
        if part.stamp != first.stamp {
            return Err(Failure::usage(format!(
                "{} and {} were made by different programs or with different profiles; run one of them again",
                files[0].display(),
                file.display()
            )));
        }
        if (&part.question, part.machines) != (&first.question, first.machines) {
            let names = (files[0].display(), file.display());
            return Err(Failure::usage(format!("{} and {} are parts of different plans", names.0, names.1)));
        }
    }
    let mut bodies: Vec<Value> = parts.into_iter().flat_map(|(_, bodies)| bodies).collect();
    bodies.sort_by_key(|body| body["number"].as_u64());
    let machines = bodies.iter().map(|body| serde_json::from_value(body.clone())).collect::<Result<Vec<_>, _>>();
    let machines: Vec<several_machines::PlannedMachine> =
        machines.map_err(|error| Failure::usage(format!("a part is damaged: {error}")))?;
    let across = several_machines::across(&machines);
    let text = several_machines::text(&machines, &across).join("\n");
    let mut answer = match bodies.first() {
        Some(Value::Object(first)) => first.clone(),
        _ => return Err(Failure::usage("the parts have no machine")),
    };
    answer.insert("more".into(), Value::Array(bodies.split_off(1)));
    answer.insert("across".into(), across.into());
    Ok(context.output.answer(Exit::Fine, &Value::Object(answer), &text))
}

/// The machines of a part.
fn read(file: &Path) -> Result<(PlanPart, Vec<Value>), Failure> {
    let wrong = |why: &str| Failure::usage(format!("{}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| wrong(&format!("it cannot be read: {error}")))?;
    let form = "no part of a plan; write one with `openraid-lab plan --shard I/N --json > FILE`";
    let mut document: Map<String, Value> = serde_json::from_str(&text).map_err(|_| wrong(form))?;
    if document.get("schema").and_then(Value::as_str) != Some(SCHEMA) {
        return Err(wrong(form));
    }
    let part = document.remove("part").ok_or_else(|| wrong(form))?;
    let part = serde_json::from_value(part).map_err(|_| wrong(form))?;
    let more = match document.remove("more") {
        Some(Value::Array(more)) => more,
        _ => return Err(wrong(form)),
    };
    for other in ["across", "schema", "exit"] {
        document.remove(other);
    }
    Ok((part, std::iter::once(Value::Object(document)).chain(more).collect()))
}
