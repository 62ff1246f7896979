//! `cargo xtask floors`: each crate knows only the floors below its own.

use crate::metadata::{Dependency, Package, packages};
use crate::{Result, report};

/// The floor of each crate. Packages beside the floors are in [`BESIDE`].
const FLOORS: &[(&str, u8)] = &[
    ("caching-abstractions", 1),
    ("caching-inmemory", 2),
    ("caching-redis", 2),
    ("caching-remote", 2),
    ("distcache-adapter", 2),
    ("local-coordination", 2),
    ("idempotency-pipeline", 3),
    ("xihan-caching", 4),
    ("xihan-cache", 5),
    ("orders-sample", 5),
];

/// Packages that test or build the others: they may depend on every floor, and no crate on them.
const BESIDE: &[&str] = &["bench", "conformance", "e2e", "redis-support", "xtask"];

/// Those among them that a crate may use in its tests, and the only crates they know: were they
/// to know more, a test would depend on floors above its own.
const FOR_TESTS: &[(&str, &[&str])] = &[
    ("conformance", &["caching-abstractions"]),
    ("redis-support", &[]),
];

/// What the lowest floor may use of tokio outside its tests.
const TOKIO_FEATURES: &[&str] = &["rt", "sync", "time"];

/// Transports, which floors 1 and 2 do not know …
const TRANSPORTS: &[&str] = &["axum", "http", "hyper", "hyper-util", "tonic", "tower"];

/// … except these crates, whose very subject is one.
const TRANSPORT_CRATES: &[(&str, &[&str])] = &[
    (
        "caching-remote",
        &["http", "hyper", "hyper-util", "tonic", "tower"],
    ),
    ("local-coordination", &["http", "tower"]),
];

/// Checks every package of the workspace.
pub(crate) fn run() -> Result {
    let problems: Vec<String> = packages()?.iter().flat_map(problems_of).collect();
    report("floors", &problems)
}

fn problems_of(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    if floor_of(name).is_none() && !BESIDE.contains(&name) {
        return vec![format!(
            "`{name}` has no floor; add it to FLOORS or BESIDE in xtask/src/floors.rs"
        )];
    }
    package
        .dependencies
        .iter()
        .flat_map(|dependency| {
            [
                own_crate(name, dependency),
                tokio_feature(name, dependency),
                transport(name, dependency),
            ]
        })
        .flatten()
        .collect()
}

/// The rule for dependencies inside the workspace.
fn own_crate(name: &str, dependency: &Dependency) -> Option<String> {
    let on = dependency.name.as_str();
    let allowed = match (known_to(name), floor_of(name), floor_of(on)) {
        (Some(known), ..) => known.contains(&on) || !is_own(on),
        (None, Some(own), Some(other)) => other < own,
        (None, Some(_), None) if BESIDE.contains(&on) => {
            known_to(on).is_some() && dependency.is_dev()
        }
        _ => true,
    };
    (!allowed).then(|| {
        let kind = dependency.kind.as_deref().unwrap_or("normal");
        format!("`{name}` depends on `{on}` ({kind}), which is no floor below its own")
    })
}

/// The crates that a package for tests may know; none for other packages.
fn known_to(name: &str) -> Option<&'static [&'static str]> {
    FOR_TESTS
        .iter()
        .find(|(package, _)| *package == name)
        .map(|(_, known)| *known)
}

/// The rule for tokio on the lowest floor.
fn tokio_feature(name: &str, dependency: &Dependency) -> Option<String> {
    if floor_of(name) != Some(1) || dependency.name != "tokio" || dependency.is_dev() {
        return None;
    }
    let excess: Vec<&str> = dependency
        .features
        .iter()
        .map(String::as_str)
        .filter(|feature| !TOKIO_FEATURES.contains(feature))
        .collect();
    (!excess.is_empty()).then(|| {
        let allowed = TOKIO_FEATURES.join(", ");
        let excess = excess.join(", ");
        format!("`{name}` uses {excess} of tokio; floor 1 may use {allowed}")
    })
}

/// The rule for transports on the two lowest floors.
fn transport(name: &str, dependency: &Dependency) -> Option<String> {
    let on = dependency.name.as_str();
    let low = floor_of(name).is_some_and(|floor| floor <= 2);
    if !low || dependency.is_dev() || !TRANSPORTS.contains(&on) {
        return None;
    }
    let excepted = TRANSPORT_CRATES
        .iter()
        .any(|(crate_name, may_use)| *crate_name == name && may_use.contains(&on));
    (!excepted).then(|| format!("`{name}` depends on the transport `{on}`"))
}

/// Whether `name` is part of the product.
pub(crate) fn is_on_a_floor(name: &str) -> bool {
    floor_of(name).is_some()
}

fn floor_of(name: &str) -> Option<u8> {
    FLOORS
        .iter()
        .find(|(crate_name, _)| *crate_name == name)
        .map(|(_, floor)| *floor)
}

fn is_own(name: &str) -> bool {
    floor_of(name).is_some() || BESIDE.contains(&name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn package(name: &str, dependencies: &[(&str, &str, &[&str])]) -> Package {
        let dependency = |&(name, kind, features): &(&str, &str, &[&str])| Dependency {
            name: name.to_owned(),
            kind: (kind != "normal").then(|| kind.to_owned()),
            features: features.iter().map(ToString::to_string).collect(),
        };
        Package {
            name: name.to_owned(),
            dependencies: dependencies.iter().map(dependency).collect(),
            features: BTreeMap::new(),
        }
    }

    #[track_caller]
    fn assert_clean(name: &str, dependencies: &[(&str, &str, &[&str])]) {
        assert_eq!(
            problems_of(&package(name, dependencies)),
            Vec::<String>::new()
        );
    }

    #[track_caller]
    fn assert_problem(name: &str, dependencies: &[(&str, &str, &[&str])], says: &str) {
        let problems = problems_of(&package(name, dependencies));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(says), "{problems:?}");
    }

    #[test]
    fn a_lower_floor_is_allowed() {
        assert_clean("xihan-caching", &[("caching-inmemory", "normal", &[])]);
        assert_clean("orders-sample", &[("idempotency-pipeline", "dev", &[])]);
        assert_clean("caching-inmemory", &[("moka", "normal", &["sync"])]);
    }

    #[test]
    fn the_same_or_a_higher_floor_is_refused_whatever_the_kind() {
        let says = "no floor below";
        assert_problem(
            "distcache-adapter",
            &[("caching-inmemory", "normal", &[])],
            says,
        );
        assert_problem("caching-inmemory", &[("xihan-caching", "dev", &[])], says);
        assert_problem(
            "idempotency-pipeline",
            &[("orders-sample", "build", &[])],
            says,
        );
    }

    #[test]
    fn packages_for_tests_are_used_by_tests_only_and_know_little() {
        assert_clean("caching-inmemory", &[("conformance", "dev", &[])]);
        assert_clean("conformance", &[("caching-abstractions", "normal", &[])]);
        assert_clean("conformance", &[("tokio", "normal", &["full"])]);
        assert_clean("caching-redis", &[("redis-support", "dev", &[])]);
        let says = "no floor below";
        assert_problem("caching-inmemory", &[("conformance", "normal", &[])], says);
        assert_problem("conformance", &[("caching-inmemory", "dev", &[])], says);
        assert_problem("conformance", &[("bench", "normal", &[])], says);
        assert_problem("caching-inmemory", &[("bench", "dev", &[])], says);
        assert_problem("redis-support", &[("caching-redis", "dev", &[])], says);
    }

    #[test]
    fn packages_beside_the_floors_see_every_floor() {
        assert_clean("bench", &[("orders-sample", "normal", &[])]);
        assert_clean("xtask", &[("syn", "normal", &[])]);
    }

    #[test]
    fn an_unknown_package_has_to_be_given_a_floor() {
        assert_problem("new-crate", &[], "has no floor");
    }

    #[test]
    fn floor_one_uses_little_of_tokio_outside_its_tests() {
        let name = "caching-abstractions";
        assert_clean(name, &[("tokio", "normal", &["rt", "sync", "time"])]);
        assert_clean(name, &[("tokio", "dev", &["macros", "test-util"])]);
        assert_clean("caching-inmemory", &[("tokio", "normal", &["net"])]);
        assert_problem(
            name,
            &[("tokio", "normal", &["rt", "net"])],
            "uses net of tokio",
        );
        assert_problem(name, &[("tokio", "build", &["full"])], "uses full of tokio");
    }

    #[test]
    fn floors_one_and_two_know_no_transport() {
        let says = "the transport `http`";
        assert_problem("caching-abstractions", &[("http", "normal", &[])], says);
        assert_problem("caching-inmemory", &[("http", "build", &[])], says);
        assert_problem("distcache-adapter", &[("http", "normal", &[])], says);
        assert_clean("caching-inmemory", &[("http", "dev", &[])]);
        assert_clean("idempotency-pipeline", &[("http", "normal", &[])]);
        assert_clean("local-coordination", &[("tower", "normal", &[])]);
        assert_problem("local-coordination", &[("tonic", "normal", &[])], "`tonic`");
    }
}
