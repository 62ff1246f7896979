//! Which names of a file stand for a hidden library, and where a piece of syntax uses one.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{
    File, Generics, ItemEnum, ItemImpl, ItemTrait, ItemUse, Path, Signature, TraitItemType, Type,
    UseTree,
};

/// The names that stand for a hidden library in one file: the library's own, and what the file
/// imports from it under whatever name.
pub(super) struct Names {
    library_of: BTreeMap<String, String>,
    globs: Vec<String>,
}

impl Names {
    pub(super) fn of(file: &File, hidden: &[&str]) -> Self {
        let own = hidden
            .iter()
            .map(|name| (name.to_string(), name.to_string()));
        let mut names = Self {
            library_of: own.collect(),
            globs: Vec::new(),
        };
        names.visit_file(file);
        names
    }

    /// The hidden libraries from which the file imports everything: names that cannot be followed.
    pub(super) fn globs(&self) -> &[String] {
        &self.globs
    }

    pub(super) fn in_type(&self, item: &Type) -> Option<String> {
        self.search(|search| search.visit_type(item))
    }

    pub(super) fn in_signature(&self, item: &Signature) -> Option<String> {
        self.search(|search| search.visit_signature(item))
    }

    pub(super) fn in_generics(&self, item: &Generics) -> Option<String> {
        self.search(|search| search.visit_generics(item))
    }

    pub(super) fn in_enum(&self, item: &ItemEnum) -> Option<String> {
        self.search(|search| search.visit_item_enum(item))
    }

    pub(super) fn in_associated_type(&self, item: &TraitItemType) -> Option<String> {
        self.search(|search| search.visit_trait_item_type(item))
    }

    pub(super) fn in_trait_head(&self, item: &ItemTrait) -> Option<String> {
        self.search(|search| {
            search.visit_generics(&item.generics);
            for bound in &item.supertraits {
                search.visit_type_param_bound(bound);
            }
        })
    }

    pub(super) fn in_implementation_head(&self, item: &ItemImpl) -> Option<String> {
        self.search(|search| {
            search.visit_generics(&item.generics);
            search.visit_type(&item.self_ty);
            if let Some((path, _)) = &item.trait_ {
                search.visit_path(path);
            }
        })
    }

    /// The hidden library that a `pub use` hands on.
    pub(super) fn in_import(&self, item: &ItemUse) -> Option<String> {
        first_words(&item.tree)
            .into_iter()
            .find_map(|word| self.library_of.get(&word).cloned())
    }

    fn search(&self, look: impl FnOnce(&mut Search<'_>)) -> Option<String> {
        let mut search = Search {
            names: self,
            found: None,
        };
        look(&mut search);
        search.found
    }

    fn add_import(&mut self, tree: &UseTree, library: &str) {
        let name = match tree {
            UseTree::Path(path) => return self.add_import(&path.tree, library),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_import(tree, library);
                }
                return;
            }
            UseTree::Name(name) => name.ident.to_string(),
            UseTree::Rename(rename) => rename.rename.to_string(),
            UseTree::Glob(_) => return self.globs.push(library.to_owned()),
        };
        self.library_of.insert(name, library.to_owned());
    }
}

/// Collects imports, wherever in the file they stand.
impl<'a> Visit<'a> for Names {
    fn visit_use_tree(&mut self, tree: &'a UseTree) {
        match tree {
            UseTree::Path(path) => {
                if let Some(library) = self.library_of.get(&path.ident.to_string()).cloned() {
                    self.add_import(&path.tree, &library);
                }
            }
            UseTree::Rename(rename) => {
                if let Some(library) = self.library_of.get(&rename.ident.to_string()).cloned() {
                    self.library_of.insert(rename.rename.to_string(), library);
                }
            }
            UseTree::Group(_) => visit::visit_use_tree(self, tree),
            UseTree::Name(_) | UseTree::Glob(_) => {}
        }
    }
}

/// The first word of every path in a `use`.
fn first_words(tree: &UseTree) -> Vec<String> {
    match tree {
        UseTree::Path(path) => vec![path.ident.to_string()],
        UseTree::Name(name) => vec![name.ident.to_string()],
        UseTree::Rename(rename) => vec![rename.ident.to_string()],
        UseTree::Group(group) => group.items.iter().flat_map(first_words).collect(),
        UseTree::Glob(_) => Vec::new(),
    }
}

/// Looks for a path that begins with a hidden name.
struct Search<'a> {
    names: &'a Names,
    found: Option<String>,
}

impl<'a> Visit<'a> for Search<'_> {
    fn visit_path(&mut self, path: &'a Path) {
        let first = path
            .segments
            .first()
            .map(|segment| segment.ident.to_string());
        if let Some(library) = first.and_then(|first| self.names.library_of.get(&first)) {
            self.found.get_or_insert_with(|| library.clone());
        }
        visit::visit_path(self, path);
    }

    /// A body is nobody's business.
    fn visit_block(&mut self, _: &'a syn::Block) {}

    /// Nor is an attribute.
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
}
