//! The language of an answer, negotiated from `Accept-Language` (X2).

mod negotiation;
mod tag;

pub use negotiation::negotiate;
pub use tag::Language;
