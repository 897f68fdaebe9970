//! The width of text, and the placement of labels so that they do not overlap.

/// Height of a line of text in a chart, pixels.
pub const LINE_HEIGHT: f64 = 15.0;
/// Size of the letters in a chart, pixels.
pub const LETTERS: f64 = 12.0;
/// Maximum number of letters in a label. A longer label is cut; the table has it in full.
pub const LABEL_LETTERS_MAX: usize = 26;

/// Width of text at a size, pixels: never less than the usual sans-serif fonts need (DejaVu Sans is the widest
/// of them; the figures are its advances in thousandths of the size, rounded up).
#[must_use]
pub fn width(text: &str, size: f64) -> f64 {
    let thousandths: u32 = text
        .chars()
        .map(|character| match character {
            'i' | 'j' | 'l' | '\'' | '|' | ' ' | '.' | ',' | ':' | ';' => 340,
            'f' | 'r' | 't' | '(' | ')' | '/' | '-' | 'I' | '!' => 420,
            'm' | 'M' | 'w' | 'W' | '%' | '@' | '+' | '=' | '<' | '>' | '~' => 990,
            'A'..='Z' => 790,
            ' '..='~' => 640,
            _ => 1000,
        })
        .sum();
    f64::from(thousandths) / 1000.0 * size
}

/// A label, cut to [`LABEL_LETTERS_MAX`] letters.
#[must_use]
pub fn cut(text: &str) -> String {
    cut_to(text, LABEL_LETTERS_MAX)
}

/// A label, cut to this number of letters.
#[must_use]
pub fn cut_to(text: &str, letters_max: usize) -> String {
    if text.chars().count() <= letters_max {
        return text.to_owned();
    }
    let head: String = text.chars().take(letters_max - 3).collect();
    format!("{}...", head.trim_end())
}

/// Places near the wanted ones, at least [`LINE_HEIGHT`] apart, all within `low..=high`, in the same order as
/// wanted; the sum of squared moves is the least possible. The room must be enough for all of them.
///
/// Blocks of touching labels are merged until no block pushes another: the usual way to a least-squares
/// monotone fit (pool adjacent violators).
#[must_use]
pub fn apart(wanted: &[f64], low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]).then(a.cmp(&b)));
    // With its rank times the distance taken off, a label only has to be not above the one before.
    let shift = |rank: usize| LINE_HEIGHT * f64::from(u32::try_from(rank).unwrap_or(u32::MAX));
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (rank, &label) in order.iter().enumerate() {
        let mut block = (wanted[label] - shift(rank), 1);
        while let Some(&(sum, count)) = blocks.last() {
            if mean((sum, count)) <= mean(block) {
                break;
            }
            block = (block.0 + sum, block.1 + count);
            blocks.pop();
        }
        blocks.push(block);
    }
    let room = (high - shift(wanted.len().saturating_sub(1))).max(low);
    let mut places = vec![0.0; wanted.len()];
    let mut rank = 0;
    for block in blocks {
        let base = mean(block).clamp(low, room);
        for _ in 0..block.1 {
            places[order[rank]] = base + shift(rank);
            rank += 1;
        }
    }
    places
}

fn mean((sum, count): (f64, usize)) -> f64 {
    sum / f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_do_not_touch_stay_where_they_are() {
        assert_eq!(apart(&[100.0, 20.0, 60.0], 0.0, 200.0), [100.0, 20.0, 60.0]);
        assert_eq!(apart(&[], 0.0, 200.0), Vec::<f64>::new());
    }

    #[test]
    fn labels_at_one_place_spread_evenly_around_it() {
        assert_eq!(apart(&[50.0, 50.0, 50.0], 0.0, 200.0), [35.0, 50.0, 65.0]);
        assert_eq!(apart(&[50.0, 56.0], 0.0, 200.0), [45.5, 60.5]);
    }

    #[test]
    fn labels_at_the_edges_stay_inside_and_apart() {
        let mut state = 7_u64;
        for _ in 0..2000 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                f64::from(u32::try_from(state >> 33).unwrap_or(0)) / f64::from(1_u32 << 31) * 200.0
            };
            let wanted: Vec<f64> = (0..8).map(|_| next()).collect();
            let mut places = apart(&wanted, 0.0, 200.0);
            for (a, b) in wanted
                .iter()
                .zip(&wanted[1..])
                .zip(places.iter().zip(&places[1..]))
                .map(|(w, p)| (w.0.total_cmp(w.1), p.0.total_cmp(p.1)))
            {
                assert_eq!(a, b, "the order changed");
            }
            places.sort_by(f64::total_cmp);
            assert!(places[0] >= 0.0 && places[7] <= 200.0, "{places:?}");
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LINE_HEIGHT - 1e-9), "{places:?}");
        }
    }

    #[test]
    fn long_labels_are_cut() {
        assert_eq!(cut("RAID 5 x4"), "RAID 5 x4");
        assert_eq!(cut(&"abcdefghij ".repeat(9)).chars().count(), LABEL_LETTERS_MAX);
    }
}
