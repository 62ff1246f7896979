//! Transports: each a thin feature on the transport-free core.

#[cfg(feature = "http")]
pub mod http;
