use std::borrow::Cow;
use std::net::SocketAddr;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// It would be open to everybody on the network.
    #[error(
        "{address} can be reached from other machines, and the server has no {missing}: \
         give it both a token and TLS, listen on 127.0.0.1, or allow it explicitly with `insecure`"
    )]
    Exposed {
        /// Where it was to listen.
        address: SocketAddr,
        /// What it lacks, as the sentence goes on.
        missing: &'static str,
    },

    /// A token or a file of tokens cannot be used.
    #[error("the access tokens cannot be used: {reason}")]
    Token {
        /// What is wrong; never the token itself.
        reason: Cow<'static, str>,
    },

    /// A certificate or key cannot be used.
    #[error("TLS cannot be set up: {reason}")]
    Tls {
        /// Which file, and what is wrong with it.
        reason: Cow<'static, str>,
    },

    /// A limit has a value that would refuse everything.
    #[error("the limit `{name}` is zero; give it a positive value")]
    Limit {
        /// The limit, as the builder calls it.
        name: &'static str,
    },

    /// The description of the services, for reflection, is broken.
    #[error("the description of the services cannot be read: {source}")]
    Descriptor {
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// What the operating system says.
        source: std::io::Error,
    },
}

impl ServerError {
    pub(super) fn token(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Token {
            reason: reason.into(),
        }
    }

    pub(super) fn tls(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Tls {
            reason: reason.into(),
        }
    }
}
