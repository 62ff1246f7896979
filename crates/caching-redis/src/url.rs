//! The URL that names a Redis: what is in it counts, and what would not count is refused.

mod query;

use std::fmt;
use std::net::Ipv6Addr;

use caching_abstractions::Secret;

use self::query::Query;

/// Where the store is and how to log in to it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) topology: Topology,
    pub(crate) is_tls: bool,
    pub(crate) login: Login,
    pub(crate) database: u8,
}

/// What stands behind the addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One server.
    Single(Address),
    /// A Cluster; the addresses are nodes to begin with.
    Cluster(Vec<Address>),
    /// A primary that sentinels know.
    Sentinel {
        sentinels: Vec<Address>,
        service: String,
        login: Login,
    },
}

/// A user and a password; none where the server asks for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
}

/// A host and its port. An IPv6 address stands without brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The user is no secret; what it belongs to is of no interest in a log.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("topology", &self.topology)
            .field("is_tls", &self.is_tls)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// What is wrong with a URL, and what to do about it. Neither shows any of its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlProblem {
    pub(crate) rule: String,
    pub(crate) remedy: String,
}

fn problem(rule: impl Into<String>, remedy: impl Into<String>) -> UrlProblem {
    UrlProblem {
        rule: rule.into(),
        remedy: remedy.into(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Single,
    Cluster,
    Sentinel,
}

const SCHEMES: &str = "redis://, rediss://, redis-cluster://, rediss-cluster://, \
                       redis-sentinel:// or rediss-sentinel://";
const ENCODE: &str =
    "write each of / ? # @ : % in the user and the password as %2F %3F %23 %40 %3A %25";

impl Target {
    /// Reads a URL.
    ///
    /// # Errors
    /// Everything that is wrong with it; never empty.
    pub(crate) fn parse(url: &str) -> Result<Self, Vec<UrlProblem>> {
        let (kind, is_tls, rest) = scheme(url).map_err(|problem| vec![problem])?;
        let parts = Parts::split(rest).map_err(|problem| vec![problem])?;
        let mut problems = Vec::new();
        let mut note = |found: UrlProblem| problems.push(found);

        let login = parts.login.map_or_else(
            || Some(Login::default()),
            |text| login(text).map_err(&mut note).ok(),
        );
        let default_port = if kind == Kind::Sentinel { 26379 } else { 6379 };
        let mut addresses = Vec::new();
        for text in parts.hosts.split(',') {
            match address(text, default_port) {
                Ok(address) => addresses.push(address),
                Err(found) => note(found),
            }
        }
        if kind == Kind::Single && addresses.len() > 1 {
            note(problem(
                "it names several hosts, of which all but the first would be ignored",
                "name one host, or use redis-cluster:// or redis-sentinel://",
            ));
        }
        let database = database(parts.path, kind).map_err(&mut note);
        let query = Query::read(parts.query, kind, default_port, &mut note);
        if kind == Kind::Sentinel && query.service.is_none() {
            note(problem(
                "it does not name the service that the sentinels watch",
                "add ?sentinelServiceName=NAME",
            ));
        }
        let (Some(login), Ok(database), true) = (login, database, problems.is_empty()) else {
            return Err(problems);
        };
        addresses.extend(query.nodes);
        let topology = match kind {
            Kind::Single => Topology::Single(addresses.swap_remove(0)),
            Kind::Cluster => Topology::Cluster(addresses),
            Kind::Sentinel => Topology::Sentinel {
                sentinels: addresses,
                service: query.service.unwrap_or_default(),
                login: query.login,
            },
        };
        Ok(Self {
            topology,
            is_tls,
            login,
            database,
        })
    }
}

fn scheme(url: &str) -> Result<(Kind, bool, &str), UrlProblem> {
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(problem(
            "it has white space or a control character",
            "take it out, or percent-encode it",
        ));
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(problem("it has no scheme", format!("begin with {SCHEMES}")));
    };
    let name = scheme.replace("valkey", "redis");
    let (kind, is_tls) = match name.as_str() {
        "redis" => (Kind::Single, false),
        "rediss" => (Kind::Single, true),
        "redis-cluster" => (Kind::Cluster, false),
        "rediss-cluster" => (Kind::Cluster, true),
        "redis-sentinel" => (Kind::Sentinel, false),
        "rediss-sentinel" => (Kind::Sentinel, true),
        _ => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
            let shown = if scheme.len() <= 30 && scheme.chars().all(is_plain) {
                scheme
            } else {
                "***"
            };
            return Err(problem(
                format!("`{shown}://` is no scheme of Redis"),
                format!("begin with {SCHEMES}"),
            ));
        }
    };
    Ok((kind, is_tls, rest))
}

/// The parts of a URL after its scheme.
struct Parts<'a> {
    login: Option<&'a str>,
    hosts: &'a str,
    path: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn split(rest: &'a str) -> Result<Self, UrlProblem> {
        if rest.contains('#') {
            return Err(problem("it has a raw #, which would end it", ENCODE));
        }
        let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = before.split_once('/').unwrap_or((before, ""));
        // A secret with a raw / or ? ends up here: do not show it.
        if path.contains('@') || query.contains('@') {
            return Err(problem("it has an @ after the host", ENCODE));
        }
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        Ok(Self {
            login,
            hosts,
            path,
            query,
        })
    }
}

fn login(text: &str) -> Result<Login, UrlProblem> {
    let Some((user, password)) = text.split_once(':') else {
        return Err(problem(
            "it has a user without a password",
            "write USER:PASSWORD@ or, for the default user, :PASSWORD@",
        ));
    };
    if password.is_empty() {
        return Err(problem(
            "its password is empty",
            "write USER:PASSWORD@, or leave both out",
        ));
    }
    if text.contains('@') || password.contains(':') {
        return Err(problem("its user or password has a raw @ or :", ENCODE));
    }
    let user = decode(user)?;
    Ok(Login {
        user: (!user.is_empty()).then_some(user),
        password: Some(Secret::new(decode(password)?)),
    })
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, UrlProblem> {
    let wrong = || problem("it has a % that no two hexadecimal digits follow", ENCODE);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(wrong());
        };
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| wrong())?);
    }
    String::from_utf8(bytes).map_err(|_| {
        problem(
            "a percent-encoded part of it is no UTF-8",
            "encode it as UTF-8",
        )
    })
}

fn address(text: &str, default_port: u16) -> Result<Address, UrlProblem> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let Some((host, port)) = rest.split_once(']') else {
            return Err(problem("it has a [ without a ]", "write [ADDRESS]:PORT"));
        };
        if host.parse::<Ipv6Addr>().is_err() {
            return Err(problem(
                "what stands between its [ and ] is no IPv6 address",
                "write [ADDRESS]:PORT, without a zone",
            ));
        }
        match port.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if port.is_empty() => (host, None),
            None => return Err(problem("it has text after a ]", "write [ADDRESS]:PORT")),
        }
    } else {
        match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(problem(
                    "its host has more than one :",
                    "write an IPv6 address as [ADDRESS]:PORT",
                ));
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(is_plain) {
        return Err(problem(
            "it has an empty host or one with characters that no host has",
            "write HOST:PORT",
        ));
    }
    let port = match port {
        None => default_port,
        Some(port) => number(port)
            .filter(|&port| port > 0)
            .ok_or_else(|| problem("its port is no number from 1 to 65535", "write HOST:PORT"))?,
    };
    Ok(Address {
        host: host.to_owned(),
        port,
    })
}

/// A number as everybody writes it: digits, and no zero in front.
fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    let is_canonical = text.bytes().all(|byte| byte.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'));
    is_canonical.then(|| text.parse().ok()).flatten()
}

fn database(path: &str, kind: Kind) -> Result<u8, UrlProblem> {
    if path.is_empty() {
        return Ok(0);
    }
    let Some(database) = number::<u8>(path) else {
        return Err(problem(
            "what stands after its / is no database",
            "write /0 to /255, or nothing",
        ));
    };
    if kind == Kind::Cluster && database != 0 {
        return Err(problem(
            format!("its database {database} would be ignored: a Cluster has database 0 only"),
            "take it out, and use KeyPrefix to keep applications apart",
        ));
    }
    Ok(database)
}

#[cfg(test)]
mod tests;
