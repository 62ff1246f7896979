//! The server over TCP, as a client of any language sees it.
#![cfg(all(feature = "client", feature = "server"))]

mod calls;
#[path = "../support/server.rs"]
mod support;
