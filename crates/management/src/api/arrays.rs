//! Reading arrays, drives and the journal.

use std::sync::Arc;

use openraid_status::{ArrayModel, MemberModel};
use serde::Serialize;
use utoipa::ToSchema;

use super::state_version;
use crate::block_devices::{self, BlockDeviceModel};
use crate::http::reply::{HttpReply, Problem};
use crate::http::request::HttpRequest;
use crate::redfish::drives::{self as redfish_drives, Drive};

/// All arrays.
#[derive(Serialize, ToSchema)]
pub struct ArraysModel {
    /// The arrays that the server serves.
    pub arrays: Vec<ArrayModel>,
}

/// A drive, and where it belongs.
#[derive(Serialize, ToSchema)]
pub struct DriveModel {
    /// Name of the array that the drive belongs to.
    pub array: String,
    /// Number of the span of a nested array, from 0.
    pub span: Option<usize>,
    /// The drive as a member of that array.
    #[serde(flatten)]
    pub member: MemberModel,
}

/// All drives.
#[derive(Serialize, ToSchema)]
pub struct DrivesModel {
    /// The drives of all arrays, array by array.
    pub drives: Vec<DriveModel>,
    /// Paths and addresses of drives that `management.drives` names and that belong to no array.
    pub free: Vec<String>,
    /// Block devices of the machine that nothing uses.
    pub unused: Vec<BlockDeviceModel>,
}

/// The array that a path names.
///
/// # Errors
/// There is none of that name.
pub fn named(request: &HttpRequest) -> Result<ArrayModel, Problem> {
    let name = request.parts.first().map(String::as_str).unwrap_or_default();
    let arrays = request.state.arrays()?;
    let found = arrays.iter().find(|array| array.name == name || array.uuid.as_deref() == Some(name));
    found.cloned().ok_or_else(|| Problem::missing(format!("this server serves no array named {name:?}")))
}

/// All arrays.
pub fn all(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let arrays = Arc::unwrap_or_clone(request.state.arrays()?);
    Ok(HttpReply::json(200, &ArraysModel { arrays }))
}

/// One array.
pub fn one(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = named(request)?;
    let version = state_version::of(&array);
    Ok(HttpReply::json(200, &array).with("etag", version))
}

/// The limit of an array.
pub fn limit(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = named(request)?;
    Ok(HttpReply::json(200, &request.state.controller.limit(&array.name)?))
}

/// The members that hold a byte.
pub fn place(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let array = named(request)?;
    let offset = request.number("offset")?.ok_or_else(|| Problem::bad("offset is missing: a byte of the array"))?;
    if offset >= array.size_bytes {
        let text = format!("offset={offset}: {} has {} bytes", array.name, array.size_bytes);
        return Err(Problem::bad(text));
    }
    Ok(HttpReply::json(200, &request.state.controller.place(&array.name, offset)?))
}

pub fn drives(request: &HttpRequest) -> Result<HttpReply, Problem> {
    let arrays = request.state.arrays()?;
    let mut drives = Vec::new();
    for array in arrays.iter() {
        for (nth, set) in array.sets().into_iter().enumerate() {
            let span = (!array.spans.is_empty()).then_some(nth);
            let drive = |member: &MemberModel| DriveModel { array: array.name.clone(), span, member: member.clone() };
            drives.extend(set.members.iter().map(drive));
        }
    }
    let known = redfish_drives::drives(&request.state)?;
    let mut used = request.state.controller.recorded_members();
    used.extend(known.iter().filter(|drive| drive.owner.is_some()).map(|drive| drive.spec.clone()));
    let unused = block_devices::unused(&used);
    let is_free = |drive: &Drive| drive.owner.is_none() && !used.contains(&drive.spec);
    let free = known.into_iter().filter(is_free).map(|drive| drive.spec).collect();
    Ok(HttpReply::json(200, &DrivesModel { drives, free, unused }))
}

pub fn journal(request: &HttpRequest) -> Result<HttpReply, Problem> {
    Ok(HttpReply::json(200, &request.state.controller.journal()?))
}
