//! The provider: a store that lives behind a server.
//!
//! - A connection is one HTTP/2 connection, and on it one session: a stream of messages that carry
//!   many operations each. Whatever waits when a message can be sent goes into it; answers come in
//!   any order. Where the server does not offer sessions, each operation is a unary call.
//! - A connection never reconnects and never sends anything twice. When it breaks, everything in
//!   it fails and nothing of it is sent later (S5); another one is opened, for ever, with at most a
//!   second between two attempts (S3).
//! - Only reads and `try_lease` are repeated after a lost answer (S4). What the server certainly
//!   did not begin with goes over the next connection.

mod answers;
mod batch;
mod calls;
mod connection;
mod driver;
mod endpoint;
mod error;
mod frames;
mod head;
mod link;
mod listing;
mod phase;
mod provider;
mod pulse;
mod queue;
mod reply;
mod request;
mod session;
mod status;
mod store;
mod stream;
mod tls;
mod wake;

pub use connection::Transport;
pub use provider::RemoteProvider;
pub use store::RemoteStore;
