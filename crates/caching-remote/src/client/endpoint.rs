//! The address of the server: what is in it counts, and what would not count is refused.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Where the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// A name or an address; an IPv6 address stands without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
}

/// What is wrong with an endpoint, and what to do about it. Neither shows any secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndpointProblem {
    pub(crate) rule: String,
    pub(crate) remedy: &'static str,
}

fn problem(rule: impl Into<String>, remedy: &'static str) -> EndpointProblem {
    EndpointProblem {
        rule: rule.into(),
        remedy,
    }
}

const FORM: &str = "write SCHEME://HOST:PORT, such as grpcs://cache.internal:50051";

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Endpoint {
    /// Reads `grpc://`, `grpcs://`, `http://` or `https://`, a host, and a port.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, EndpointProblem> {
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(problem(
                "it has white space or a control character",
                "take it out",
            ));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(problem("it has no scheme", FORM));
        };
        let (is_tls, default_port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => (false, Some(80)),
            "https" => (true, Some(443)),
            "grpc" => (false, None),
            "grpcs" => (true, None),
            _ => {
                return Err(problem(
                    "its scheme is none of http, https, grpc and grpcs",
                    "begin with grpc://, or with grpcs:// for TLS",
                ));
            }
        };
        let authority = authority(rest)?;
        let (host, port) = split_port(authority)?;
        let port = match (port, default_port) {
            (Some(port), _) => number(port)?,
            (None, Some(port)) => port,
            (None, None) => return Err(problem("it names no port", FORM)),
        };
        Ok(Self {
            host: host.to_owned(),
            port,
            is_tls,
        })
    }

    /// Whether what is sent there stays on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let is_loopback = |address: IpAddr| address.is_loopback();
        self.host.eq_ignore_ascii_case("localhost") || self.host.parse().is_ok_and(is_loopback)
    }
}

/// Everything but host and port would be ignored.
fn authority(rest: &str) -> Result<&str, EndpointProblem> {
    // A secret with a raw character of these ends up behind it: nothing of it is shown.
    if rest.contains('@') {
        return Err(problem(
            "it has a user or a password, which would be ignored",
            "set Remote:Token or Remote:TokenFile instead",
        ));
    }
    if rest.contains('#') {
        return Err(problem(
            "it has a fragment, which would be ignored",
            "end it after the port",
        ));
    }
    if rest.contains('?') {
        return Err(problem(
            "it has a query, which would be ignored",
            "end it after the port; settings have keys of their own below Remote",
        ));
    }
    match rest.split_once('/') {
        None => Ok(rest),
        Some((authority, "")) => Ok(authority),
        Some(_) => Err(problem(
            "it has a path, which would be ignored",
            "end it after the port; use KeyPrefix to keep applications apart",
        )),
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), EndpointProblem> {
    const IPV6: &str = "write an IPv6 address as [ADDRESS]:PORT, without a zone";
    let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
        let Some((host, port)) = rest.split_once(']') else {
            return Err(problem("it has a [ without a ]", IPV6));
        };
        if host.parse::<Ipv6Addr>().is_err() {
            return Err(problem(
                "what stands between its [ and ] is no IPv6 address",
                IPV6,
            ));
        }
        match port.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if port.is_empty() => (host, None),
            None => return Err(problem("it has text after a ]", IPV6)),
        }
    } else {
        match authority.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(problem("its host has more than one :", IPV6));
            }
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    if host.contains(',') {
        return Err(problem(
            "it names several hosts, of which all but one would be ignored",
            "name one, such as a name that resolves to all of them",
        ));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(is_plain) {
        return Err(problem(
            "it has no host, or one with characters that no host has",
            FORM,
        ));
    }
    Ok((host, port))
}

/// A port as everybody writes it: digits, and no zero in front.
fn number(text: &str) -> Result<u16, EndpointProblem> {
    let is_canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    let port = is_canonical.then(|| text.parse().ok()).flatten();
    port.ok_or_else(|| problem("its port is no number from 1 to 65535", FORM))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(host: &str, port: u16, is_tls: bool) -> Endpoint {
        Endpoint {
            host: host.to_owned(),
            port,
            is_tls,
        }
    }

    #[test]
    fn every_form_is_read() {
        for (text, expected) in [
            ("grpc://cache:50051", endpoint("cache", 50051, false)),
            ("GRPCS://cache:50051/", endpoint("cache", 50051, true)),
            ("http://10.0.0.1", endpoint("10.0.0.1", 80, false)),
            ("https://a-b.example", endpoint("a-b.example", 443, true)),
            ("grpc://[::1]:9", endpoint("::1", 9, false)),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap(), expected, "{text}");
        }
        assert_eq!(endpoint("::1", 9, true).to_string(), "[::1]:9");
    }

    #[test]
    fn c1_what_would_be_ignored_is_refused_by_name_and_secrets_are_not_shown() {
        for (text, named) in [
            ("grpc://user:s3cret@host:1", "user or a password"),
            ("grpc://host:1/s3cret", "path"),
            ("grpc://host:1//", "path"),
            ("grpc://host:1?token=s3cret", "query"),
            ("grpc://host:1#s3cret", "fragment"),
            ("grpc://a:1,b:2", "more than one :"),
            ("grpc://a,b:2", "several hosts"),
            ("grpc://host", "port"),
            ("grpc://host:0", "port"),
            ("grpc://host:65536", "port"),
            ("grpc://host:+1", "port"),
            ("grpc://host:", "port"),
            ("grpc://:1", "host"),
            ("grpc://h%6Fst:1", "host"),
            ("grpc://::1:9", "more than one :"),
            ("grpc://[fe80::1%eth0]:9", "IPv6"),
            ("grpc://[::1:9", "["),
            ("redis://host:1", "scheme"),
            ("host:1", "scheme"),
            ("grpc://host :1", "white space"),
        ] {
            let found = Endpoint::parse(text).unwrap_err();
            assert!(found.rule.contains(named), "{text}: {}", found.rule);
            assert!(!format!("{found:?}").contains("s3cret"), "{text}");
        }
    }

    #[test]
    fn what_stays_on_this_machine_is_told_apart() {
        for (host, expected) in [
            ("localhost", true),
            ("LOCALHOST", true),
            ("127.0.0.9", true),
            ("::1", true),
            ("10.0.0.1", false),
            ("localhost.example", false),
        ] {
            assert_eq!(endpoint(host, 1, false).is_loopback(), expected, "{host}");
        }
    }
}
