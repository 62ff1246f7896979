//! Capabilities, the providers that supply them and the features that need them (spec part 4).

mod problem;
mod provider;
mod registry;
mod services;

pub use problem::{AssemblyError, AssemblyProblem};
pub use provider::{CachingCapabilities, CachingProvider, ProviderManifest};
pub use registry::CapabilityRegistry;
pub use services::CachingServices;
