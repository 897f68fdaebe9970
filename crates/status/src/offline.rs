//! An array that is wanted and not served. No superblock of it is in use, so its members and settings are not known.

use crate::level::LevelWord;
use crate::model::{ArrayModel, HealthWord, HostModel};
use crate::words::{AccessWord, PathWord};

impl ArrayModel {
    /// An array that could not be started, and why. `slots`: the number of its recorded members.
    #[must_use]
    pub fn offline(name: String, uuid: Option<String>, level: LevelWord, slots: u32, reason: String) -> Self {
        Self {
            name,
            uuid,
            level,
            layout: None,
            chunk_bytes: None,
            outer_chunk_bytes: None,
            size_bytes: 0,
            block_bytes: 0,
            superblock_block_bytes: None,
            metadata: None,
            slots,
            health: HealthWord::Offline,
            offline: Some(reason),
            sentence: String::new(),
            next_step: None,
            survives: 0,
            survives_later: 0,
            active: false,
            consistent_to_bytes: None,
            bitmap: None,
            consistency_policy: None,
            journal: None,
            events: 0,
            last_check_mismatches: None,
            last_check: None,
            last_complete_check: None,
            check_text: Vec::new(),
            task: None,
            shape: None,
            other_sizes: Vec::new(),
            stopping: false,
            forced: None,
            refused: None,
            admitted: None,
            alarms: Vec::new(),
            exports: Vec::new(),
            addresses: Vec::new(),
            access: AccessWord::Unknown,
            path: PathWord::Unknown,
            profile: None,
            members: Vec::new(),
            spans: Vec::new(),
            settings: serde_json::Map::new(),
            adaptive: None,
            host: HostModel::default(),
            cache: None,
            reasons: Vec::new(),
        }
    }

    /// Can its data be used? It has not failed, and it is served.
    pub const fn is_usable(&self) -> bool {
        matches!(self.health, HealthWord::Optimal | HealthWord::Degraded)
    }
}
