//! The state of a server while it runs: a block of lines that is redrawn on a terminal, plain lines elsewhere.

use std::io::{self, Write};

use super::array::{health_line, task_line};
use crate::model::{ArrayModel, StateWord, TaskModel};
use crate::quantity::{counted, human_rate, human_seconds};

/// Width of a bar in characters.
const BAR_CELLS: u64 = 24;
/// Without a terminal a task gets a new line after this progress, in per cent.
const PLAIN_STEP: u64 = 10;

/// The display.
#[derive(Debug)]
pub struct Live {
    terminal: bool,
    /// Number of drawn lines at the end of the terminal.
    drawn: usize,
    last_plain: Vec<String>,
}

impl Live {
    /// A display; on a terminal it redraws, elsewhere it prints a line for each change.
    pub fn new() -> Self {
        Self { terminal: super::is_terminal(), drawn: 0, last_plain: Vec::new() }
    }

    /// Print a text that stays on the screen, above the state.
    pub fn say(&mut self, text: &str) {
        self.clear();
        super::print(text);
    }

    /// Draw the present state. `extra` follows the arrays and is for terminals only.
    pub fn update(&mut self, arrays: &[ArrayModel], extra: &[String]) {
        if !self.terminal {
            return self.plain(arrays);
        }
        let mut lines: Vec<String> = arrays.iter().flat_map(array_lines).collect();
        lines.extend(extra.iter().cloned());
        self.clear();
        let mut out = io::stdout().lock();
        // A line that is too long is cut, not wrapped, because the lines are counted.
        let _ = write!(out, "\x1b[?7l");
        for line in &lines {
            let _ = writeln!(out, "{line}");
        }
        let _ = write!(out, "\x1b[?7h");
        let _ = out.flush();
        self.drawn = lines.len();
    }

    fn clear(&mut self) {
        if self.drawn > 0 {
            // Up this many lines, then erase to the end of the screen.
            let _ = write!(io::stdout().lock(), "\x1b[{}A\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }

    fn plain(&mut self, arrays: &[ArrayModel]) {
        let line = |array: &ArrayModel| {
            let tasks = array.tasks().map(|(_, task)| {
                let rounded = task.percent() / PLAIN_STEP * PLAIN_STEP;
                format!(", {} {rounded} %", task.kind.text())
            });
            format!("{}: {} [{}]{}", array.name, health_line(array), up_map(array), tasks.collect::<String>())
        };
        let lines: Vec<String> = arrays.iter().map(line).collect();
        for line in lines.iter().filter(|line| !self.last_plain.contains(line)) {
            super::print(line);
        }
        self.last_plain = lines;
    }
}

/// A letter for each slot: U in sync, R being filled, '_' without a member.
pub fn up_map(array: &ArrayModel) -> String {
    let sets = array.sets();
    let maps: Vec<String> = sets
        .iter()
        .map(|set| {
            let letter = |slot: u32| {
                let of_slot = set.members.iter().find(|m| m.slot.map(u32::from) == Some(slot) && !m.replacement);
                match of_slot.map(|member| member.state) {
                    Some(StateWord::InSync) => 'U',
                    Some(StateWord::Rebuilding) => 'R',
                    _ => '_',
                }
            };
            (0..set.slots).map(letter).collect()
        })
        .collect();
    maps.join("|")
}

fn array_lines(array: &ArrayModel) -> Vec<String> {
    let clean = if array.active { "active" } else { "clean" };
    let mut lines = vec![format!(
        "{}: {} [{}] {clean}, {}",
        array.name,
        health_line(array),
        up_map(array),
        counted(array.events, "event", "events")
    )];
    for (set, task) in array.tasks() {
        let span = if array.spans.is_empty() { String::new() } else { format!("{}: ", set.name) };
        lines.push(format!("  {span}{}", bar(task)));
    }
    lines
}

fn bar(task: &TaskModel) -> String {
    let filled = BAR_CELLS * task.percent().min(100) / 100;
    let cells: String = (0..BAR_CELLS).map(|cell| if cell < filled { '=' } else { '.' }).collect();
    if task.paused {
        return format!("[{cells}] {}", task_line(task));
    }
    let rate = if task.rate > 0 { format!(", {}", human_rate(task.rate)) } else { String::new() };
    let eta = task.eta_seconds.map_or_else(String::new, |seconds| format!(", {} left", human_seconds(seconds)));
    format!("[{cells}] {} {} %{rate}{eta}", task.kind.text(), task.percent())
}
