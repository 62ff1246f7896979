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

    /// How many operations the Idempotency stage asked the store for; the service's own code uses
    /// others.
    pub(crate) fn stage_operations(&self) -> f64 {
        let operations = ["get_or_add", "try_replace", "try_remove", "try_extend"];
        let is_one = |series: &str| {
            series.starts_with("xihan_caching_store_operations_total")
                && operations
                    .iter()
                    .any(|operation| series.contains(&format!("operation=\"{operation}\"")))
        };
        self.0
            .iter()
            .filter(|(series, _)| is_one(series))
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
