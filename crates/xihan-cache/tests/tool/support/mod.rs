//! Calls of the tool, and what the tests ask of processes.

mod call;
mod process;
mod served;

pub(crate) use call::{Call, Done, Running};
pub(crate) use process::{find, group_of, is_alive, signal};
pub(crate) use served::{Served, http};

use std::path::{Path, PathBuf};

use redis_support::Server;
use tempfile::TempDir;

/// A Redis and a folder for what commands write.
pub(crate) struct Scene {
    pub(crate) server: Server,
    pub(crate) directory: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self {
            server: Server::start(),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    /// A call on the server.
    pub(crate) fn call(&self, arguments: &[&str]) -> Call {
        Call::new(arguments)
            .env("XIHAN_CACHE_STORE", &self.server.url())
            .in_directory(self.directory.path())
    }

    /// A call of `lock` that runs `script`, in the scene's folder.
    pub(crate) fn lock(&self, options: &[&str], script: &str) -> Call {
        let command = ["--", "sh", "-c", script];
        self.call(&[&["lock", "r"], options, &command].concat())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What commands wrote into this file; empty if they wrote nothing.
    pub(crate) fn read(&self, name: &str) -> String {
        read(&self.path(name))
    }

    pub(crate) fn until_written(&self, name: &str, text: &str) {
        redis_support::wait_until(&format!("`{text}` in {name}"), || {
            self.read(name).contains(text)
        });
    }

    /// A number that a command wrote as a line of this file.
    pub(crate) fn until_number(&self, name: &str) -> u32 {
        self.until_written(name, "\n");
        self.read(name).trim().parse().unwrap()
    }

    /// The token that stands under the lock `r`.
    pub(crate) fn token(&self) -> String {
        self.server.raw().command(&["GET", "lock:r"]).text()
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
