//! Operations over HTTP, as routes of an axum router (H1, X1).

mod answer;
mod call;
mod render;
mod router;

pub use crate::operation::PathParameters;
pub use router::{OperationRouter, Problems};
