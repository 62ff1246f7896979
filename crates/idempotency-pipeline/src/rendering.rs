//! An answer as a transport gives it, so that a repeat gets the very same one (P9).

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use crate::context::InvocationContext;
use crate::outcome::Outcome;

/// Turns an outcome into a transport's answer; a transport passes one with each call.
pub trait Renderer: Send + Sync + 'static {
    /// The name the transport's renderings are recorded under, such as `http`.
    fn transport(&self) -> &'static str;

    /// The answer to `outcome`, the same each time for the same input.
    fn render(&self, context: &InvocationContext, outcome: &Outcome) -> Rendering;
}

/// An answer ready to be sent, and to be sent again: status, describing headers and body.
#[derive(Clone, PartialEq, Eq)]
pub struct Rendering {
    /// The transport that made it.
    pub transport: Cow<'static, str>,
    /// The transport's status, on HTTP the status code.
    pub status: u16,
    /// The headers that describe the body; never framing, connection, cookie, date, trace or
    /// authentication headers.
    pub headers: Vec<(Cow<'static, str>, Bytes)>,
    /// The body.
    pub body: Bytes,
}

impl fmt::Debug for Rendering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rendering")
            .field("transport", &self.transport)
            .field("status", &self.status)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish_non_exhaustive()
    }
}
