//! What cargo says about the packages of the workspace.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Result;
use crate::process::{cargo, output};

/// The packages of the workspace.
pub(crate) fn packages() -> Result<Vec<Package>> {
    let arguments = ["metadata", "--format-version=1", "--no-deps"];
    let metadata: Metadata = serde_json::from_str(&output(&mut cargo(&arguments))?)?;
    Ok(metadata.packages)
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// One package.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
}

/// One line of a package's dependencies, with what it inherits from the workspace.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev`, `build`, or none for a normal one.
    pub(crate) kind: Option<String>,
    pub(crate) features: Vec<String>,
}

impl Dependency {
    pub(crate) fn is_dev(&self) -> bool {
        self.kind.as_deref() == Some("dev")
    }
}
