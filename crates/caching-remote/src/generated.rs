//! What `cargo xtask codegen` makes of `proto/`.
#![allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    reason = "generated; the contract itself is commented"
)]

#[path = "generated/xihan.caching.v1.rs"]
pub mod v1;
