use std::collections::BTreeMap;

/// What `/metrics` says, by series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    pub(crate) fn parse(text: &str) -> Self {
        let samples = text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self(
            samples
                .map(|line| {
                    let (series, value) = line.rsplit_once(' ').unwrap();
                    (series.to_owned(), value.parse().unwrap())
                })
                .collect(),
        )
    }

    /// The value of one series, 0 if it is not there.
    pub(crate) fn value(&self, series: &str) -> f64 {
        self.0.get(series).copied().unwrap_or_default()
    }

    /// How many calls with a key ended like this.
    pub(crate) fn idempotency(&self, outcome: &str) -> f64 {
        self.value(&format!(
            r#"xihan_caching_idempotency_total{{outcome="{outcome}"}}"#
        ))
    }

    /// How many operations the store was asked for, all in all.
    pub(crate) fn store_operations(&self) -> f64 {
        self.sum("xihan_caching_store_operations_total")
    }

    /// The sum of all series with this name.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        let is_named = |series: &str| series.split('{').next() == Some(name);
        self.0
            .iter()
            .filter(|(series, _)| is_named(series))
            .map(|(_, value)| value)
            .sum()
    }

    /// The name of every series.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0
            .keys()
            .map(|series| series.split('{').next().unwrap_or_default())
    }
}
