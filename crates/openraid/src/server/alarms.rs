//! What is wrong when a server starts: states, not changes, so that no notice of the engine tells of them.

use super::news::{plain, News};
use super::start::Taken;
use super::Server;
use crate::model::HealthWord;
use crate::output::array::state_line;
use crate::quantity::counted;

impl Server {
    /// Events of the start.
    pub fn alarms_at_start(&self, taken: &Taken) -> Vec<News> {
        let arrays = self.arrays().unwrap_or_default();
        let count = counted(arrays.len() as u64, "array", "arrays");
        let mut news = vec![plain("ServerStarted", format!("the server has started with {count}"))];
        for array in &arrays {
            let of = |event, text: String| {
                let text = format!("{}: {text}", array.name);
                News { array: Some(array.name.clone()), ..plain(event, text) }
            };
            if let Some(forced) = &array.forced {
                news.push(of("ForcedStart", format!("started by force: {}", forced.trim_end_matches([';', ' ']))));
            }
            match array.health {
                HealthWord::Optimal => {}
                HealthWord::Degraded => news.push(of("DegradedArray", format!("at the start {}", state_line(array)))),
                HealthWord::Failed => news.push(of("FailedArray", format!("at the start {}", state_line(array)))),
            }
        }
        news.extend(taken.recovered.iter().map(|line| plain("Recovered", line.clone())));
        news.extend(taken.left_out.iter().map(|member| plain("LeftOut", member.to_string())));
        news.extend(taken.failed.iter().map(|failure| plain("StartProblem", failure.text.clone())));
        news
    }
}
