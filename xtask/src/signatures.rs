//! `cargo xtask signatures`: no public signature of a crate names a library that may be replaced.
//!
//! A library counts as named where a `pub` item spells it (`moka::sync::Cache`) or a name that the
//! same file imports from it (`use moka::sync::Cache as Store`). Looked at are signatures, public
//! fields, variants, constants, aliases, re-exports, trait items, and trait implementations for
//! types that some file of the crate declares `pub`. Bodies and private fields are free.
//! What a macro generates is not seen. `pub` means plain `pub`: rustc's lint `unreachable_pub`
//! sees to it that such an item can be reached.

mod names;

use std::collections::{BTreeMap, BTreeSet};

use syn::{File, ImplItem, Item, ItemImpl, Signature, TraitItem, Type, Visibility};

use crate::workspace::{TextFile, text_files};
use crate::{Result, report};
use names::Names;

/// Libraries that may be replaced one day.
const HIDDEN: &[&str] = &["fred", "moka"];

/// Checks the sources of every crate.
pub(crate) fn run() -> Result {
    let mut crates: BTreeMap<String, Vec<(String, File)>> = BTreeMap::new();
    for file in text_files()? {
        if let Some(name) = crate_of(&file) {
            let syntax =
                syn::parse_file(&file.text).map_err(|error| format!("{}: {error}", file.path))?;
            crates.entry(name).or_default().push((file.path, syntax));
        }
    }
    let problems: Vec<String> = crates
        .values()
        .flat_map(|files| problems_of(files))
        .collect();
    report("signatures", &problems)
}

fn crate_of(file: &TextFile) -> Option<String> {
    let (name, path) = file.path.strip_prefix("crates/")?.split_once('/')?;
    (path.starts_with("src/") && path.ends_with(".rs")).then(|| name.to_owned())
}

/// The problems of one crate's files.
fn problems_of(files: &[(String, File)]) -> Vec<String> {
    let mut public_types = BTreeSet::new();
    for (_, file) in files {
        collect_public_types(&file.items, &mut public_types);
    }
    let mut problems = Vec::new();
    for (path, file) in files {
        let names = Names::of(file, HIDDEN);
        problems.extend(names.globs().iter().map(|library| {
            format!("{path}: import from `{library}` by name: what `*` brings cannot be checked")
        }));
        let mut check = Check {
            path,
            names,
            public_types: &public_types,
            problems: &mut problems,
        };
        check.items(&file.items);
    }
    problems
}

fn collect_public_types(items: &[Item], types: &mut BTreeSet<String>) {
    for item in items {
        match item {
            Item::Struct(item) if is_public(&item.vis) => types.insert(item.ident.to_string()),
            Item::Enum(item) if is_public(&item.vis) => types.insert(item.ident.to_string()),
            Item::Mod(module) => {
                let content = module.content.as_ref();
                collect_public_types(content.map_or(&[], |(_, items)| items), types);
                false
            }
            _ => false,
        };
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

struct Check<'a> {
    path: &'a str,
    names: Names,
    public_types: &'a BTreeSet<String>,
    problems: &'a mut Vec<String>,
}

impl Check<'_> {
    fn items(&mut self, items: &[Item]) {
        for item in items {
            self.item(item);
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Mod(module) => {
                let content = module.content.as_ref();
                self.items(content.map_or(&[], |(_, items)| items));
            }
            Item::Impl(block) => self.implementation(block),
            Item::Use(item) if is_public(&item.vis) => {
                let found = self.names.in_import(item);
                self.found("a re-export", found);
            }
            Item::Fn(item) if is_public(&item.vis) => self.signature(&item.sig),
            Item::Struct(item) if is_public(&item.vis) => {
                let found = self.names.in_generics(&item.generics);
                self.found(&item.ident.to_string(), found);
                for field in item.fields.iter().filter(|field| is_public(&field.vis)) {
                    let found = self.names.in_type(&field.ty);
                    self.found(&item.ident.to_string(), found);
                }
            }
            Item::Enum(item) if is_public(&item.vis) => {
                let found = self.names.in_enum(item);
                self.found(&item.ident.to_string(), found);
            }
            Item::Trait(item) if is_public(&item.vis) => {
                let found = self.names.in_trait_head(item);
                self.found(&item.ident.to_string(), found);
                for member in &item.items {
                    self.trait_item(member);
                }
            }
            Item::Const(item) if is_public(&item.vis) => {
                let found = self.names.in_type(&item.ty);
                self.found(&item.ident.to_string(), found);
            }
            Item::Static(item) if is_public(&item.vis) => {
                let found = self.names.in_type(&item.ty);
                self.found(&item.ident.to_string(), found);
            }
            Item::Type(item) if is_public(&item.vis) => {
                let found = self.names.in_type(&item.ty);
                self.found(&item.ident.to_string(), found);
            }
            _ => {}
        }
    }

    /// Public methods of any type; every item where a public type implements a trait.
    fn implementation(&mut self, block: &ItemImpl) {
        let of_trait = block.trait_.is_some();
        let type_name = last_name(&block.self_ty);
        let is_public_type = type_name
            .as_ref()
            .is_some_and(|name| self.public_types.contains(name));
        if of_trait && !is_public_type {
            return;
        }
        if of_trait {
            let found = self.names.in_implementation_head(block);
            self.found(
                &format!("an `impl` for {}", type_name.unwrap_or_default()),
                found,
            );
        }
        for item in &block.items {
            match item {
                ImplItem::Fn(item) if of_trait || is_public(&item.vis) => {
                    self.signature(&item.sig);
                }
                ImplItem::Const(item) if of_trait || is_public(&item.vis) => {
                    let found = self.names.in_type(&item.ty);
                    self.found(&item.ident.to_string(), found);
                }
                ImplItem::Type(item) => {
                    let found = self.names.in_type(&item.ty);
                    self.found(&item.ident.to_string(), found);
                }
                _ => {}
            }
        }
    }

    fn trait_item(&mut self, item: &TraitItem) {
        match item {
            TraitItem::Fn(item) => self.signature(&item.sig),
            TraitItem::Const(item) => {
                let found = self.names.in_type(&item.ty);
                self.found(&item.ident.to_string(), found);
            }
            TraitItem::Type(item) => {
                let found = self.names.in_associated_type(item);
                self.found(&item.ident.to_string(), found);
            }
            _ => {}
        }
    }

    fn signature(&mut self, signature: &Signature) {
        let found = self.names.in_signature(signature);
        self.found(&signature.ident.to_string(), found);
    }

    fn found(&mut self, item: &str, library: Option<String>) {
        if let Some(library) = library {
            let path = self.path;
            self.problems
                .push(format!("{path}: `{item}` shows `{library}` in public"));
        }
    }
}

/// The last word of a type's path.
fn last_name(of: &Type) -> Option<String> {
    match of {
        Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        Type::Reference(reference) => last_name(&reference.elem),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
