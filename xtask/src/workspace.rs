//! Where the workspace is and which files belong to it.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, process, tools};

/// The root folder of the workspace.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// A text file of the workspace: its path from the root, with `/`, and its text.
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Every tracked text file, and every new one that git does not ignore.
///
/// Files that are no UTF-8 are no text.
pub(crate) fn text_files() -> Result<Vec<TextFile>> {
    tools::need("git", "git")?;
    let listed = process::output(Command::new("git").current_dir(root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let paths: BTreeSet<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
    Ok(paths.into_iter().filter_map(read).collect())
}

/// The file at `path`, unless it is no text or was deleted but is still in the index.
fn read(path: &str) -> Option<TextFile> {
    let file: PathBuf = root().join(path);
    Some(TextFile {
        path: path.to_owned(),
        text: fs::read_to_string(file).ok()?,
    })
}
