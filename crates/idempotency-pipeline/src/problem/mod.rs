//! What a caller is told when a call does not succeed: RFC 9457 Problem Details in the caller's
//! language, free of any transport (X1, X2).

mod catalogues;
mod details;
mod failure;
mod http_code;
mod template;

pub use catalogues::{CatalogueError, Catalogues};
pub use details::Problem;
pub use failure::{Failure, Violation};
pub use http_code::HttpCode;
