//! One file per command.

pub(crate) mod add;
pub(crate) mod completions;
pub(crate) mod get;
pub(crate) mod keys;
pub(crate) mod lock;
pub(crate) mod man;
pub(crate) mod ping;
pub(crate) mod remove;
pub(crate) mod serve;
pub(crate) mod set;
pub(crate) mod ttl;
mod value;
