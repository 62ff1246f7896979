//! `cargo xtask features`: each crate builds without its default features and with each one alone.
//!
//! The other steps build the whole workspace at once, where one crate's features hide what
//! another one forgot to ask for.

use crate::Result;
use crate::floors::is_on_a_floor;
use crate::metadata::{Package, packages};
use crate::process::{cargo, run as run_command};

/// Lints every combination.
pub(crate) fn run() -> Result {
    for package in packages()?
        .iter()
        .filter(|package| is_on_a_floor(&package.name))
    {
        for features in combinations(package) {
            let mut clippy = cargo(&["clippy", "--package", &package.name]);
            clippy.args(["--no-default-features", "--features", &features]);
            run_command(clippy.args(["--", "--deny", "warnings"]))?;
        }
    }
    Ok(())
}

/// No feature, then each one alone; nothing for a package without features.
fn combinations(package: &Package) -> Vec<String> {
    let features = package.features.keys().filter(|name| *name != "default");
    let mut combinations: Vec<String> = features.cloned().collect();
    if !combinations.is_empty() {
        combinations.insert(0, String::new());
    }
    combinations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(features: &[&str]) -> Package {
        Package {
            name: "a".to_owned(),
            dependencies: Vec::new(),
            features: features
                .iter()
                .map(|name| (name.to_string(), Vec::new()))
                .collect(),
        }
    }

    #[test]
    fn nothing_and_each_feature_alone_are_tried() {
        assert_eq!(
            combinations(&package(&["default", "grpc", "http"])),
            ["", "grpc", "http"]
        );
        assert!(combinations(&package(&[])).is_empty());
    }
}
