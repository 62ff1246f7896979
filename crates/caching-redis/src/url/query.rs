//! The parameters of a URL.

use caching_abstractions::Secret;

use super::{Address, Kind, Login, UrlProblem, address, decode, problem};

/// The parameters after the `?`.
#[derive(Default)]
pub(super) struct Query {
    pub(super) nodes: Vec<Address>,
    pub(super) service: Option<String>,
    pub(super) login: Login,
}

impl Query {
    pub(super) fn read(
        text: &str,
        kind: Kind,
        default_port: u16,
        note: &mut dyn FnMut(UrlProblem),
    ) -> Self {
        let mut query = Self::default();
        for parameter in text.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if let Err(found) = query.parameter(name, value, kind, default_port) {
                note(found);
            }
        }
        if query.login.user.is_some() && query.login.password.is_none() {
            note(problem(
                "its parameter `sentinelUsername` would be ignored without a password",
                "add sentinelPassword, or take it out",
            ));
        }
        query
    }

    fn parameter(
        &mut self,
        name: &str,
        value: &str,
        kind: Kind,
        default_port: u16,
    ) -> Result<(), UrlProblem> {
        let is_sentinel = kind == Kind::Sentinel;
        let value = || match decode(value) {
            Ok(value) if value.is_empty() => Err(problem(
                format!("its parameter `{name}` is empty"),
                "give it a value, or take it out",
            )),
            other => other,
        };
        let taken = match name {
            "node" if kind != Kind::Single => {
                self.nodes.push(address(&value()?, default_port)?);
                None
            }
            "sentinelServiceName" if is_sentinel => self.service.replace(value()?),
            "sentinelUsername" if is_sentinel => self.login.user.replace(value()?),
            "sentinelPassword" if is_sentinel => {
                let before = self.login.password.replace(Secret::new(value()?));
                before.map(|_| String::new())
            }
            _ => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
                let shown = if name.chars().all(is_plain) {
                    name
                } else {
                    "***"
                };
                return Err(problem(
                    format!("its parameter `{shown}` would be ignored"),
                    match kind {
                        Kind::Single => "take it out",
                        Kind::Cluster => "take it out; node=HOST:PORT names another node",
                        Kind::Sentinel => {
                            "take it out; node, sentinelServiceName, sentinelUsername and \
                             sentinelPassword are known"
                        }
                    },
                ));
            }
        };
        match taken {
            None => Ok(()),
            Some(_) => Err(problem(
                format!("its parameter `{name}` comes twice"),
                "write it once",
            )),
        }
    }
}
