//! Columns of text, aligned by what each character takes on a terminal. Knows nothing of what stands in them.

use super::shown::{cut, width};

/// Between two columns.
const GAP: &str = "  ";
/// Where nothing is cut, no column is set wider.
const WIDEST: usize = 60;
/// No column that gives way gets narrower.
const NARROWEST: usize = 8;

/// How a column is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// Words, as wide as the widest.
    Words,
    /// Words that are cut where the line is too short for all columns.
    GivesWay,
    /// Numbers and times: set to the right.
    Figures,
}

/// A head and rows under it. A row with fewer cells than the head has empty ones.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    columns: Vec<(&'static str, Column)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub(super) fn new(columns: &[(&'static str, Column)]) -> Table {
        Table {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Its cells are printable.
    pub(super) fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// The head and the rows as lines, in at most so many columns if that is possible. Without a bound nothing is cut, but
    /// for one long cell no other line is stretched.
    pub(super) fn lines(&self, most: Option<usize>) -> Vec<String> {
        let widths = self.widths(most);
        let head = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        std::iter::once(&head)
            .chain(&self.rows)
            .map(|row| self.line(row, &widths, most.is_some()))
            .collect()
    }

    fn line(&self, row: &[String], widths: &[usize], bounded: bool) -> String {
        let mut line = String::new();
        for (index, ((_, column), wide)) in self.columns.iter().zip(widths).enumerate() {
            let cell = row.get(index).map_or("", String::as_str);
            let cell = if bounded { cut(cell, *wide) } else { cell.to_owned() };
            let gap = " ".repeat(wide.saturating_sub(width(&cell)));
            if index > 0 {
                line.push_str(GAP);
            }
            match column {
                Column::Figures => line.extend([gap, cell]),
                Column::Words | Column::GivesWay => line.extend([cell, gap]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }

    fn widths(&self, most: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(name, _)| width(name)).collect();
        for row in &self.rows {
            for (wide, cell) in widths.iter_mut().zip(row) {
                *wide = (*wide).max(width(cell));
            }
        }
        let Some(most) = most else {
            return widths.into_iter().map(|wide| wide.min(WIDEST)).collect();
        };
        // The widest of those that give way gives first, so that two of one width stay alike.
        loop {
            let all: usize = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
            let widest = self
                .columns
                .iter()
                .zip(&mut widths)
                .filter(|((_, column), wide)| *column == Column::GivesWay && **wide > NARROWEST)
                .map(|(_, wide)| wide)
                .max();
            match widest {
                Some(wide) if all > most => *wide -= 1,
                _ => return widths,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 3]]) -> Table {
        let mut table = Table::new(&[
            ("KEY", Column::GivesWay),
            ("OWNER", Column::GivesWay),
            ("HELD", Column::Figures),
        ]);
        for row in rows {
            table.push(row.iter().map(|cell| (*cell).to_owned()).collect());
        }
        table
    }

    #[test]
    fn columns_stand_under_each_other_whatever_the_letters() {
        let lines = table(&[["lock:a", "any", "5s"], ["lock:錠", "address=10.0.0.7", "12m03s"]]).lines(None);
        assert_eq!(
            lines,
            [
                "KEY      OWNER               HELD",
                "lock:a   any                   5s",
                "lock:錠  address=10.0.0.7  12m03s",
            ]
        );
        assert!(lines.iter().all(|line| width(line) == 33), "{lines:?}");
    }

    #[test]
    fn the_widest_gives_way_and_figures_never() {
        let table = table(&[["lock:a-very-long-key-indeed", "address=10.0.0.7", "12m03s"]]);
        assert_eq!(
            table.lines(Some(40)),
            [
                "KEY              OWNER              HELD",
                "lock:a-very-lo…  address=10.0.0…  12m03s"
            ]
        );
        let narrow = table.lines(Some(5));
        assert_eq!(narrow[1], "lock:a-…  address…  12m03s");
        assert_eq!(Table::new(&[]).lines(Some(5)), [""]);
    }
}
