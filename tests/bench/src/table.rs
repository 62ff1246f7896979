//! The one table that a run prints.

use std::fmt;

/// One figure: what was measured, the raw baseline of the same run, and how they compare.
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) ours: String,
    pub(crate) baseline: String,
    /// The ratio in each round.
    pub(crate) ratios: Vec<f64>,
    /// The same by the processor time of the server, which a busy machine distorts less; empty
    /// where it was not measured.
    pub(crate) cpu_ratios: Vec<f64>,
    pub(crate) bar: Option<Bar>,
}

/// What the median ratio has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

impl Bar {
    fn is_met(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => ratio >= least,
            Self::AtMost(most) => ratio <= most,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least:.2}"),
            Self::AtMost(most) => write!(f, "≤ {most:.2}"),
        }
    }
}

/// The rows as a Markdown table, and how many bars were missed.
pub(crate) fn render(rows: &[Row]) -> (String, usize) {
    let mut text = String::from(
        "| measured | value | raw baseline | ratio | rounds | by CPU | bar | |\n\
         | --- | ---: | ---: | ---: | --- | ---: | --- | --- |\n",
    );
    let mut missed = 0;
    for row in rows {
        let ratio = median(&row.ratios);
        let verdict = match row.bar {
            Some(bar) if bar.is_met(ratio) => "met",
            Some(_) => {
                missed += 1;
                "**missed**"
            }
            None => "",
        };
        let bar = row.bar.map(|bar| bar.to_string()).unwrap_or_default();
        let least = row.ratios.iter().copied().fold(f64::NAN, f64::min);
        let most = row.ratios.iter().copied().fold(f64::NAN, f64::max);
        let by_cpu = match row.cpu_ratios.is_empty() {
            true => String::new(),
            false => format!("{:.2}", median(&row.cpu_ratios)),
        };
        text += &format!(
            "| {} | {} | {} | {ratio:.2} | {least:.2}–{most:.2} | {by_cpu} | {bar} | {verdict} |\n",
            row.what, row.ours, row.baseline
        );
    }
    (text, missed)
}

/// The middle value; of an even number of values the mean of the two in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The ratio of two series, round by round.
pub(crate) fn ratios(ours: &[f64], baseline: &[f64]) -> Vec<f64> {
    ours.iter().zip(baseline).map(|(a, b)| a / b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ratios: &[f64], bar: Option<Bar>) -> Row {
        Row {
            what: "get".to_owned(),
            ours: "1 ns".to_owned(),
            baseline: "2 ns".to_owned(),
            ratios: ratios.to_vec(),
            cpu_ratios: Vec::new(),
            bar,
        }
    }

    #[test]
    fn the_median_is_not_moved_by_an_outlier() {
        assert_eq!(median(&[1.0, 900.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_bar_is_held_against_the_median() {
        let rows = [
            row(&[1.0, 1.4, 9.0], Some(Bar::AtMost(1.5))),
            row(&[1.0, 1.6, 1.7], Some(Bar::AtMost(1.5))),
            row(&[0.6, 0.7, 0.8], Some(Bar::AtLeast(0.7))),
            row(&[0.1], None),
        ];
        let (text, missed) = render(&rows);
        assert_eq!(missed, 1);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[2],
            "| get | 1 ns | 2 ns | 1.40 | 1.00–9.00 |  | ≤ 1.50 | met |"
        );
        assert!(lines[3].ends_with("| ≤ 1.50 | **missed** |"));
        assert!(lines[4].ends_with("| ≥ 0.70 | met |"));
        assert!(lines[5].ends_with("|  |  |"));
    }
}
