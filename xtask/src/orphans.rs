//! Source files that no target builds: nobody compiles, lints or tests them.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Expr, ItemMod, Lit, Meta};

use crate::Result;
use crate::workspace::TextFile;

/// The problems: files under some `src` that no `mod` leads to.
///
/// # Errors
/// A file that is no Rust.
pub(crate) fn problems_of(files: &[TextFile]) -> Result<Vec<String>> {
    let sources: BTreeMap<&str, &str> = files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && file.path.contains("/src/"))
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let mut built = BTreeSet::new();
    let mut open: Vec<String> = sources
        .keys()
        .filter(|path| is_root(path))
        .map(ToString::to_string)
        .collect();
    while let Some(path) = open.pop() {
        let Some(text) = sources.get(path.as_str()) else {
            continue;
        };
        if built.insert(path.clone()) {
            open.extend(modules_of(&path, text)?);
        }
    }
    Ok(sources
        .keys()
        .filter(|path| !built.contains(**path))
        .map(|path| format!("{path}: no `mod` leads to it"))
        .collect())
}

/// Whether cargo takes the file for a target by itself.
fn is_root(path: &str) -> bool {
    path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs") || path.contains("/src/bin/")
}

/// Where the modules may be that the file at `path` declares.
fn modules_of(path: &str, text: &str) -> Result<Vec<String>> {
    let syntax = syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?;
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let own_folder = match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        name => format!("{folder}/{}", name.trim_end_matches(".rs")),
    };
    let mut modules = Modules {
        folder,
        own_folder,
        found: Vec::new(),
    };
    modules.visit_file(&syntax);
    Ok(modules.found)
}

struct Modules<'a> {
    /// The folder of the file, which a `#[path]` starts from.
    folder: &'a str,
    /// The folder of the file's modules.
    own_folder: String,
    found: Vec<String>,
}

impl<'a> Visit<'a> for Modules<'_> {
    fn visit_item_mod(&mut self, module: &'a ItemMod) {
        if module.content.is_some() {
            let inner = format!("{}/{}", self.own_folder, module.ident);
            let outer = std::mem::replace(&mut self.own_folder, inner);
            visit::visit_item_mod(self, module);
            self.own_folder = outer;
            return;
        }
        let (folder, name) = (&self.own_folder, &module.ident);
        let places = match path_of(module) {
            Some(path) => vec![join(self.folder, &path)],
            None => vec![
                format!("{folder}/{name}.rs"),
                format!("{folder}/{name}/mod.rs"),
            ],
        };
        self.found.extend(places);
    }
}

/// What `#[path = "…"]` says.
fn path_of(module: &ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        match &pair.value {
            Expr::Lit(value) if pair.path.is_ident("path") => match &value.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        }
    })
}

/// `path` seen from `folder`, without `..`.
fn join(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_orphans(files: &[(&str, &str)], orphans: &[&str]) {
        let files: Vec<TextFile> = files
            .iter()
            .map(|(path, text)| TextFile {
                path: path.to_string(),
                text: text.to_string(),
            })
            .collect();
        let expected: Vec<String> = orphans
            .iter()
            .map(|path| format!("{path}: no `mod` leads to it"))
            .collect();
        assert_eq!(problems_of(&files).unwrap(), expected);
    }

    #[test]
    fn a_file_that_nobody_declares_is_found() {
        assert_orphans(
            &[("crates/a/src/lib.rs", "mod b;"), ("crates/a/src/c.rs", "")],
            &["crates/a/src/c.rs"],
        );
        assert_orphans(
            &[
                ("crates/a/src/lib.rs", ""),
                ("crates/a/src/b/mod.rs", "mod c;"),
                ("crates/a/src/b/c.rs", ""),
            ],
            &["crates/a/src/b/c.rs", "crates/a/src/b/mod.rs"],
        );
    }

    #[test]
    fn declared_files_are_followed_wherever_they_are() {
        assert_orphans(
            &[
                ("crates/a/src/lib.rs", "pub mod b; #[cfg(test)] mod tests;"),
                ("crates/a/src/b/mod.rs", "mod c;"),
                ("crates/a/src/b/c.rs", "mod d;"),
                ("crates/a/src/b/c/d.rs", "mod inline { mod e; }"),
                ("crates/a/src/b/c/d/inline/e.rs", ""),
                ("crates/a/src/tests.rs", ""),
            ],
            &[],
        );
        assert_orphans(
            &[
                (
                    "tests/b/peers/src/main.rs",
                    "#[path = \"../../src/app.rs\"] mod app;",
                ),
                ("tests/b/src/app.rs", ""),
                ("x/src/bin/tool.rs", ""),
                ("crates/a/tests/c.rs", ""),
            ],
            &[],
        );
    }

    #[test]
    fn a_file_that_is_no_rust_is_named() {
        let file = TextFile {
            path: "crates/a/src/lib.rs".to_owned(),
            text: "mod".to_owned(),
        };
        let error = problems_of(&[file]).unwrap_err().to_string();
        assert!(error.starts_with("crates/a/src/lib.rs: "), "{error}");
    }
}
