use super::*;

const DISTRIBUTED: &str = CachingCapabilities::DISTRIBUTED;

fn in_memory() -> ProviderManifest {
    ProviderManifest::new("inmemory")
        .supplies(DISTRIBUTED)
        .fallback()
}

fn provider(name: &'static str) -> ProviderManifest {
    ProviderManifest::new(name).supplies(DISTRIBUTED)
}

fn registry(providers: impl IntoIterator<Item = ProviderManifest>) -> CapabilityRegistry {
    let mut registry = CapabilityRegistry::new();
    registry.feature("daily-report", [DISTRIBUTED]);
    for manifest in providers {
        registry.provider(manifest);
    }
    registry
}

fn named(name: &str) -> Configuration {
    Configuration::empty().with("XiHan:Caching:Provider", name)
}

fn selected(registry: &CapabilityRegistry, configuration: &Configuration) -> &'static str {
    let selected = registry.select(configuration).unwrap();
    selected.unwrap().name()
}

fn problems(registry: &CapabilityRegistry, configuration: &Configuration) -> Vec<String> {
    let error = registry.select(configuration).unwrap_err();
    error.problems().iter().map(ToString::to_string).collect()
}

#[track_caller]
fn only(problems: &[String], parts: &[&str]) {
    assert_eq!(problems.len(), 1, "{problems:?}");
    for part in parts {
        assert!(problems[0].contains(part), "no `{part}` in {}", problems[0]);
    }
}

#[test]
fn r2_the_configured_name_decides_in_any_case() {
    let registry = registry([in_memory(), provider("redis"), provider("remote")]);
    for name in ["inmemory", "redis", "remote"] {
        assert_eq!(selected(&registry, &named(name)), name);
    }
    assert_eq!(selected(&registry, &named("Redis")), "redis");
}

#[test]
fn r2_without_a_name_the_only_provider_that_is_no_fallback_is_used() {
    let registry = registry([in_memory(), provider("redis")]);
    assert_eq!(selected(&registry, &Configuration::empty()), "redis");
}

#[test]
fn r2_else_the_fallback_is_used() {
    let registry = registry([in_memory()]);
    assert_eq!(selected(&registry, &Configuration::empty()), "inmemory");
}

#[test]
fn r2_two_candidates_are_listed_with_the_key_to_set() {
    let registry = registry([in_memory(), provider("redis"), provider("remote")]);
    only(
        &problems(&registry, &Configuration::empty()),
        &["redis, remote", "XiHan:Caching:Provider", DISTRIBUTED],
    );
}

#[test]
fn r2_two_fallbacks_are_two_candidates() {
    let registry = registry([in_memory(), provider("disk").fallback()]);
    only(
        &problems(&registry, &Configuration::empty()),
        &["inmemory, disk", "XiHan:Caching:Provider"],
    );
}

#[test]
fn r2_a_known_name_that_is_not_registered_brings_its_cargo_feature() {
    let registry = registry([in_memory()]);
    for name in ["redis", "remote"] {
        let feature = format!("Cargo feature `{name}`");
        only(
            &problems(&registry, &named(name)),
            &[
                "XiHan:Caching:Provider",
                name,
                "registered: inmemory",
                &feature,
            ],
        );
    }
    let nobody = CapabilityRegistry::new();
    only(
        &problems(&nobody, &named("inmemory")),
        &["registered: none", "Cargo feature `inmemory`"],
    );
}

#[test]
fn r2_an_unknown_name_lists_what_is_registered_and_what_is_meant() {
    let registry = registry([in_memory(), provider("shelf")]);
    only(
        &problems(&registry, &named("shlef")),
        &[
            "`shlef`",
            "registered: inmemory, shelf",
            "did you mean `shelf`",
        ],
    );
    only(
        &problems(&registry, &named("reddis")),
        &["did you mean `redis`"],
    );
    let problems = problems(&registry, &named("memcached"));
    only(&problems, &["inmemory, shelf", "name a registered one"]);
}

#[test]
fn c1_the_problem_names_the_place_of_the_name() {
    let environment = [("XIHAN__CACHING__PROVIDER", "redis")];
    let configuration = Configuration::empty().environment(environment);
    only(
        &problems(&registry([in_memory()]), &configuration),
        &["XiHan:Caching:Provider (environment variable XIHAN__CACHING__PROVIDER)"],
    );
}

#[test]
fn r2_a_need_that_nobody_supplies_names_the_feature_and_the_crates() {
    let problems = problems(&registry([]), &Configuration::empty());
    only(
        &problems,
        &[
            "feature `daily-report`",
            DISTRIBUTED,
            "caching-inmemory",
            "caching-redis",
            "caching-remote",
        ],
    );
}

#[test]
fn r2_a_misspelt_need_is_not_supplied() {
    let mut registry = registry([in_memory()]);
    registry.feature("search", ["caching.distribted", "search.index"]);
    let problems = problems(&registry, &Configuration::empty());
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].contains("did you mean caching.distributed"));
    assert!(problems[1].contains("feature `search`: needs search.index"));
}

#[test]
fn r2_a_name_registered_twice_is_one_problem() {
    let twice = || provider("redis");
    let registry = registry([twice(), in_memory(), twice(), twice()]);
    only(
        &problems(&registry, &Configuration::empty()),
        &["provider `redis`", "more than once"],
    );
}

#[test]
fn r1_the_selected_provider_needs_what_it_needs() {
    let needy = || provider("needy").needs("clock.synchronised");
    only(
        &problems(&registry([needy()]), &Configuration::empty()),
        &["provider `needy`", "clock.synchronised"],
    );
    // One that is not selected needs nothing.
    let unused = registry([needy(), in_memory()]);
    assert_eq!(selected(&unused, &named("inmemory")), "inmemory");
    let clock = ProviderManifest::new("clock").supplies("clock.synchronised");
    let supplied = registry([needy(), clock]);
    assert_eq!(selected(&supplied, &Configuration::empty()), "needy");
}

#[test]
fn r2_what_only_an_unselected_provider_supplies_is_not_supplied() {
    let mut registry = registry([in_memory(), provider("redis").supplies("pubsub")]);
    registry.feature("chat", ["pubsub"]);
    assert_eq!(selected(&registry, &Configuration::empty()), "redis");
    only(
        &problems(&registry, &named("inmemory")),
        &["feature `chat`", "pubsub", "XiHan:Caching:Provider"],
    );
}

#[test]
fn r2_a_named_provider_must_supply_the_capability() {
    let registry = registry([
        in_memory(),
        ProviderManifest::new("clock").supplies("clock"),
    ]);
    only(
        &problems(&registry, &named("clock")),
        &["`clock` does not supply caching.distributed", "inmemory"],
    );
}

#[test]
fn r2_nobody_and_no_need_is_no_problem() {
    let nobody = CapabilityRegistry::new();
    assert_eq!(nobody.select(&Configuration::empty()).unwrap(), None);
}

#[test]
fn r2_all_problems_come_at_once() {
    let mut registry = registry([in_memory(), in_memory(), provider("a"), provider("b")]);
    registry.feature("search", ["search.index"]);
    let problems = problems(&registry, &Configuration::empty());
    assert_eq!(problems.len(), 3, "{problems:?}");
}
