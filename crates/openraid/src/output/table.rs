//! Text tables: columns as wide as their content.

#[derive(Debug, Default)]
pub struct TextTable {
    rows: Vec<Vec<String>>,
    indent: usize,
}

impl TextTable {
    /// A table with these heads.
    pub fn new(heads: &[&str]) -> Self {
        Self { rows: vec![heads.iter().map(ToString::to_string).collect()], indent: 0 }
    }

    /// A table without heads.
    pub fn plain() -> Self {
        Self::default()
    }

    /// The same, set in by this many blanks.
    pub fn indented(mut self, indent: usize) -> Self {
        self.indent = indent;
        self
    }

    /// One more line.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table as text.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(width - cell.chars().count() + 2));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = TextTable::new(&["slot", "state"]).indented(1);
        table.row(["0", "in sync"]);
        table.row(["10", ""]);
        assert_eq!(table.text(), " slot  state\n 0     in sync\n 10\n");
    }
}
