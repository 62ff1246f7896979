use super::{AssemblyError, AssemblyProblem, CachingCapabilities, ProviderManifest};
use crate::config::{CachingSettings, Configuration, nearest};

/// The providers of this workspace: what configuration calls them, and the crate that has them.
/// The Cargo feature of the facade has the provider's name.
const KNOWN_PROVIDERS: [(&str, &str); 3] = [
    ("inmemory", "caching-inmemory"),
    ("redis", "caching-redis"),
    ("remote", "caching-remote"),
];

/// Who supplies which capability and who needs it; decides which provider is used (R1, R2).
///
/// A plain value without I/O: whoever assembles an application fills one and asks it.
///
/// ```
/// use caching_abstractions::{
///     CachingCapabilities, CapabilityRegistry, Configuration, ProviderManifest,
/// };
///
/// let mut registry = CapabilityRegistry::new();
/// let redis = ProviderManifest::new("redis").supplies(CachingCapabilities::DISTRIBUTED);
/// registry.provider(redis);
/// registry.feature("daily-report", [CachingCapabilities::DISTRIBUTED]);
/// let selected = registry.select(&Configuration::empty())?;
/// assert_eq!(selected.map(|manifest| manifest.name()), Some("redis"));
/// # Ok::<(), caching_abstractions::AssemblyError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CapabilityRegistry {
    providers: Vec<ProviderManifest>,
    features: Vec<Feature>,
}

#[derive(Clone, Debug)]
struct Feature {
    name: String,
    needs: Vec<String>,
}

/// What the providers and the configured name come to.
enum Choice<'a> {
    Chosen(&'a ProviderManifest),
    /// Nobody supplies `caching.distributed`, and no name is configured.
    Nobody,
    Wrong(AssemblyProblem),
}

impl CapabilityRegistry {
    /// A registry that knows nobody yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a provider.
    pub fn provider(&mut self, manifest: ProviderManifest) -> &mut Self {
        self.providers.push(manifest);
        self
    }

    /// Registers a feature of the application with the capabilities it needs.
    pub fn feature<C: Into<String>>(
        &mut self,
        name: impl Into<String>,
        needs: impl IntoIterator<Item = C>,
    ) -> &mut Self {
        self.features.push(Feature {
            name: name.into(),
            needs: needs.into_iter().map(Into::into).collect(),
        });
        self
    }

    /// The provider of `caching.distributed` (R2); none if nobody supplies and nobody needs it.
    ///
    /// - The one named by `XiHan:Caching:Provider`, if that is set.
    /// - Else the only one that is no fallback.
    /// - Else the only fallback.
    ///
    /// A provider that does not supply `caching.distributed` is never selected and supplies what
    /// it supplies beside the selected one.
    ///
    /// # Errors
    /// All at once: two candidates and no name, a name that is not registered, a name registered
    /// twice, a capability that a feature or the selected provider needs and nobody supplies.
    pub fn select(
        &self,
        configuration: &Configuration,
    ) -> Result<Option<&ProviderManifest>, AssemblyError> {
        let (chosen, problems) = self.resolve(configuration);
        AssemblyError::check(problems)?;
        Ok(chosen)
    }

    /// As [`select`](Self::select), with the provider that is chosen whatever else is wrong.
    ///
    /// For an assembly that goes on to find the problems of other parts.
    pub fn resolve(
        &self,
        configuration: &Configuration,
    ) -> (Option<&ProviderManifest>, Vec<AssemblyProblem>) {
        let mut problems = self.doubles();
        // Where the choice is wrong, whatever is chosen in the end will supply it.
        let mut granted: &[&'static str] = &[];
        let chosen = match self.choose(configuration) {
            Choice::Chosen(manifest) => Some(manifest),
            Choice::Nobody => None,
            Choice::Wrong(problem) => {
                problems.push(problem);
                granted = &[CachingCapabilities::DISTRIBUTED];
                None
            }
        };
        problems.extend(self.missing(chosen, granted));
        (chosen, problems)
    }

    fn choose(&self, configuration: &Configuration) -> Choice<'_> {
        let section = configuration.section(CachingSettings::SECTION);
        match section.text("Provider") {
            Ok(Some(name)) => self.choose_named(&name, configuration),
            Ok(None) => self.choose_unnamed(),
            Err(problem) => Choice::Wrong(problem),
        }
    }

    fn choose_named(&self, name: &str, configuration: &Configuration) -> Choice<'_> {
        let mut registered = self.providers.iter();
        let subject = || configuration.subject("XiHan:Caching:Provider");
        match registered.find(|manifest| manifest.name().eq_ignore_ascii_case(name)) {
            Some(manifest) if is_candidate(manifest) => Choice::Chosen(manifest),
            Some(manifest) => Choice::Wrong(AssemblyProblem::new(
                subject(),
                format!(
                    "the provider `{}` does not supply {}",
                    manifest.name(),
                    CachingCapabilities::DISTRIBUTED
                ),
                format!("name one that does: {}", self.names(is_candidate)),
            )),
            None => Choice::Wrong(AssemblyProblem::new(
                subject(),
                format!(
                    "no provider `{}` is registered; registered: {}",
                    name.escape_debug(),
                    self.names(|_| true)
                ),
                self.remedy_for_unknown(name),
            )),
        }
    }

    fn choose_unnamed(&self) -> Choice<'_> {
        for is_fallback in [false, true] {
            let suits = |manifest: &ProviderManifest| {
                is_candidate(manifest) && manifest.is_fallback() == is_fallback
            };
            let mut candidates = self.providers.iter().filter(|manifest| suits(manifest));
            match (candidates.next(), candidates.next()) {
                (Some(only), None) => return Choice::Chosen(only),
                // The same name twice is reported as that, and naming it would not help.
                (Some(first), Some(second)) if first.name() == second.name() => {
                    return Choice::Chosen(first);
                }
                (Some(_), Some(_)) => {
                    return Choice::Wrong(AssemblyProblem::new(
                        CachingCapabilities::DISTRIBUTED,
                        format!("more than one provider supplies it: {}", self.names(suits)),
                        "set XiHan:Caching:Provider (or XIHAN__CACHING__PROVIDER) to one of them",
                    ));
                }
                (None, _) => {}
            }
        }
        Choice::Nobody
    }

    fn remedy_for_unknown(&self, name: &str) -> String {
        let registered = self.providers.iter().map(ProviderManifest::name);
        let known = KNOWN_PROVIDERS.map(|(name, _)| name);
        let is_known = known.into_iter().find(|k| k.eq_ignore_ascii_case(name));
        if let Some(known) = is_known {
            return format!(
                "enable the Cargo feature `{known}` of xihan-caching and register the provider, \
                 or name a registered one"
            );
        }
        match nearest(name, registered.chain(known)) {
            Some(meant) => format!("did you mean `{meant}`"),
            None => "name a registered one, or register the provider".to_owned(),
        }
    }

    /// One problem for each name that is registered more than once.
    fn doubles(&self) -> Vec<AssemblyProblem> {
        let names: Vec<&str> = self.providers.iter().map(ProviderManifest::name).collect();
        let is_second = |position: usize| {
            let earlier = names[..position].iter().filter(|n| **n == names[position]);
            earlier.count() == 1
        };
        (0..names.len())
            .filter(|position| is_second(*position))
            .map(|position| {
                AssemblyProblem::new(
                    format!("provider `{}`", names[position]),
                    "is registered more than once",
                    "register it once",
                )
            })
            .collect()
    }

    /// The needs that neither `chosen` nor a provider beside it supplies, nor `granted` has.
    fn missing(
        &self,
        chosen: Option<&ProviderManifest>,
        granted: &[&'static str],
    ) -> Vec<AssemblyProblem> {
        let beside = self.providers.iter().filter(|other| !is_candidate(other));
        let supplied: Vec<&str> = beside
            .chain(chosen)
            .flat_map(ProviderManifest::supplied)
            .chain(granted)
            .copied()
            .collect();
        let of_features = self.features.iter().flat_map(|feature| {
            let needs = feature.needs.iter().map(String::as_str);
            needs.map(|need| (format!("feature `{}`", feature.name), need))
        });
        let of_chosen = chosen.into_iter().flat_map(|manifest| {
            let needs = manifest.needed().iter().copied();
            needs.map(|need| (format!("provider `{}`", manifest.name()), need))
        });
        of_features
            .chain(of_chosen)
            .filter(|(_, need)| !supplied.contains(need))
            .map(|(who, need)| self.unsupplied(who, need))
            .collect()
    }

    fn unsupplied(&self, who: String, need: &str) -> AssemblyProblem {
        let crates = KNOWN_PROVIDERS.map(|(_, name)| name).join(", ");
        let all = self.providers.iter().flat_map(ProviderManifest::supplied);
        let known = all.copied().chain([CachingCapabilities::DISTRIBUTED]);
        let remedy = match nearest(need, known) {
            Some(CachingCapabilities::DISTRIBUTED) if need == CachingCapabilities::DISTRIBUTED => {
                format!("register the provider of one of the crates {crates}")
            }
            Some(meant) if meant != need => format!("did you mean {meant}"),
            Some(_) => "name the provider that supplies it in XiHan:Caching:Provider".to_owned(),
            None => "register a provider that supplies it".to_owned(),
        };
        AssemblyProblem::new(who, format!("needs {need}, and nobody supplies it"), remedy)
    }

    fn names(&self, suits: impl Fn(&ProviderManifest) -> bool) -> String {
        let names: Vec<&str> = self
            .providers
            .iter()
            .filter(|manifest| suits(manifest))
            .map(ProviderManifest::name)
            .collect();
        match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        }
    }
}

fn is_candidate(manifest: &ProviderManifest) -> bool {
    manifest
        .supplied()
        .contains(&CachingCapabilities::DISTRIBUTED)
}

#[cfg(test)]
mod tests;
