//! What a server says about itself when a connection to it opens, and what must be true of it.

use crate::script::Dialect;

/// What `INFO` says that matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    version: Option<(u32, u32)>,
    version_text: String,
    max_memory: u64,
    eviction: String,
    is_cluster: bool,
    is_replica: bool,
    pub(crate) run_id: String,
}

/// What has to be true of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expectations {
    pub(crate) cluster: bool,
    pub(crate) primary: bool,
    pub(crate) no_eviction: bool,
}

/// What is not true of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// Waiting does not help; somebody has to change the server or the configuration.
    Lasting(String),
    /// It may be another one's turn soon.
    Passing(String),
}

/// The oldest version that works.
const OLDEST: (u32, u32) = (6, 2);

impl ServerInfo {
    pub(crate) fn read(info: &str) -> Self {
        let field = |name: &str| {
            let mut lines = info.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        let version_text = field("redis_version").unwrap_or_default().trim();
        let mut numbers = version_text.split('.').map(|part| part.parse().ok());
        let version = match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(major), Some(minor)) => Some((major, minor)),
            _ => None,
        };
        let text = |name| field(name).unwrap_or_default().trim().to_owned();
        Self {
            version,
            version_text: version_text.to_owned(),
            max_memory: text("maxmemory").parse().unwrap_or(0),
            eviction: text("maxmemory_policy"),
            is_cluster: text("cluster_enabled") == "1",
            is_replica: text("role") == "slave",
            run_id: text("run_id"),
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self.version {
            Some(version) if version < (7, 0) => Dialect::Six,
            _ => Dialect::Seven,
        }
    }

    /// The eviction policy, where the server would evict by it.
    pub(crate) fn evicts_by(&self) -> Option<&str> {
        let evicts = self.max_memory > 0 && !matches!(&*self.eviction, "" | "noeviction");
        evicts.then_some(&self.eviction)
    }

    /// What of `expected` is not so.
    pub(crate) fn check(&self, expected: Expectations) -> Result<(), Mismatch> {
        if let Some(version) = self.version
            && version < OLDEST
        {
            return Err(Mismatch::Lasting(format!(
                "it is version {}; use 6.2 or above",
                self.version_text
            )));
        }
        if self.is_cluster && !expected.cluster {
            return Err(Mismatch::Lasting(
                "it is a node of a Cluster; use a redis-cluster:// URL".to_owned(),
            ));
        }
        if !self.is_cluster && expected.cluster {
            return Err(Mismatch::Lasting(
                "it is no node of a Cluster; use a redis:// URL".to_owned(),
            ));
        }
        if let (true, Some(policy)) = (expected.no_eviction, self.evicts_by()) {
            return Err(Mismatch::Lasting(format!(
                "it evicts by {policy} and RequireNoEviction is set; set its maxmemory-policy to \
                 noeviction"
            )));
        }
        if self.is_replica && expected.primary {
            return Err(Mismatch::Passing("it is a replica".to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Expectations = Expectations {
        cluster: false,
        primary: true,
        no_eviction: false,
    };

    fn info(fields: &[&str]) -> ServerInfo {
        ServerInfo::read(&format!("# Server\r\n{}\r\n", fields.join("\r\n")))
    }

    #[test]
    fn an_old_server_is_refused_and_told_what_helps() {
        for (version, works) in [
            ("5.0.14", false),
            ("6.0.16", false),
            ("6.2.0", true),
            ("7.0.15", true),
            ("8.1.2", true),
            ("10.0.0", true),
        ] {
            let found = info(&[&format!("redis_version:{version}")]).check(PLAIN);
            assert_eq!(found.is_ok(), works, "{version}: {found:?}");
        }
        let found = info(&["redis_version:6.0.16"]).check(PLAIN).unwrap_err();
        assert_eq!(
            found,
            Mismatch::Lasting("it is version 6.0.16; use 6.2 or above".to_owned())
        );
    }

    #[test]
    fn below_7_the_other_script_is_used() {
        assert_eq!(info(&["redis_version:6.2.14"]).dialect(), Dialect::Six);
        assert_eq!(info(&["redis_version:7.0.0"]).dialect(), Dialect::Seven);
        assert_eq!(info(&[]).dialect(), Dialect::Seven);
    }

    #[test]
    fn s2_a_server_that_evicts_is_seen() {
        let limited = "maxmemory:1000";
        let evicting = info(&[limited, "maxmemory_policy:volatile-lru"]);
        assert_eq!(evicting.evicts_by(), Some("volatile-lru"));
        assert!(evicting.check(PLAIN).is_ok());
        let strict = Expectations {
            no_eviction: true,
            ..PLAIN
        };
        assert!(matches!(evicting.check(strict), Err(Mismatch::Lasting(_))));
        for harmless in [
            info(&["maxmemory:0", "maxmemory_policy:allkeys-lru"]),
            info(&[limited, "maxmemory_policy:noeviction"]),
        ] {
            assert_eq!(harmless.evicts_by(), None);
            assert!(harmless.check(strict).is_ok());
        }
    }

    #[test]
    fn topology_and_role_are_checked() {
        let node = info(&["cluster_enabled:1"]);
        assert!(matches!(node.check(PLAIN), Err(Mismatch::Lasting(_))));
        let cluster = Expectations {
            cluster: true,
            primary: false,
            ..PLAIN
        };
        assert!(node.check(cluster).is_ok());
        assert!(matches!(
            info(&[]).check(cluster),
            Err(Mismatch::Lasting(_))
        ));
        let replica = info(&["role:slave"]);
        assert!(matches!(replica.check(PLAIN), Err(Mismatch::Passing(_))));
    }
}
