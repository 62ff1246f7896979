//! What is decided before anything is started.

use std::sync::Arc;

use caching_abstractions::{
    AssemblyError, AssemblyProblem, CachingCapabilities, CachingProvider, CachingSettings,
    CapabilityRegistry,
};

use crate::CachingBuilder;

/// The facade's own name as a feature: whoever builds one needs a store.
const FACADE: &str = "xihan-caching";

/// The provider to start, and the settings for it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) provider: Arc<dyn CachingProvider>,
    pub(crate) settings: CachingSettings,
}

/// Selects the provider and checks every setting, without I/O but for the files that settings
/// name.
pub(crate) fn plan(builder: &CachingBuilder) -> Result<Plan, AssemblyError> {
    let registry = registry(builder);
    let (selected, mut problems) = registry.resolve(&builder.configuration);
    let selected = selected.map(|manifest| manifest.name());
    let (settings, wrong) = CachingSettings::read(&builder.configuration, selected);
    for problem in wrong {
        // A provider's name that is no name is noticed by both.
        let is_same = |other: &AssemblyProblem| other.subject() == problem.subject();
        if !problems.iter().any(is_same) {
            problems.push(problem);
        }
    }
    let mut providers = builder.providers.iter();
    let provider = providers.find(|provider| Some(provider.manifest().name()) == selected);
    for problem in provider.map_or_else(Vec::new, |provider| provider.check(&settings)) {
        if !is_known(&problem, &problems) {
            problems.push(problem);
        }
    }
    problems.extend(builder.problems.iter().cloned());
    AssemblyError::check(problems)?;
    match provider {
        Some(provider) => Ok(Plan {
            provider: Arc::clone(provider),
            settings,
        }),
        None => Err(nobody().into()),
    }
}

fn registry(builder: &CachingBuilder) -> CapabilityRegistry {
    let mut registry = CapabilityRegistry::new();
    registry.feature(FACADE, [CachingCapabilities::DISTRIBUTED]);
    for (name, needs) in &builder.features {
        registry.feature(name.as_str(), needs.iter().map(String::as_str));
    }
    for provider in &builder.providers {
        registry.provider(provider.manifest());
    }
    registry
}

/// Whether something is wrong with that very setting already: a value that was refused, or whose
/// file cannot be read, is not missing as well.
fn is_known(new: &AssemblyProblem, problems: &[AssemblyProblem]) -> bool {
    problems.iter().any(|problem| {
        let (key, _) = problem
            .subject()
            .split_once(" (")
            .unwrap_or((problem.subject(), ""));
        key == new.subject() || key.strip_suffix("File") == Some(new.subject())
    })
}

/// The registry refuses this already, as a need of the facade that nobody supplies.
fn nobody() -> AssemblyProblem {
    AssemblyProblem::new(
        format!("feature `{FACADE}`"),
        "no provider is selected",
        "register a provider",
    )
}
