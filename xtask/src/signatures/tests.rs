use super::*;

fn problems(source: &str) -> Vec<String> {
    let file = syn::parse_file(source).unwrap();
    problems_of(&[("crates/p/src/a.rs".to_owned(), file)])
}

#[track_caller]
fn assert_shows(source: &str, item: &str, library: &str) {
    assert_eq!(
        problems(source),
        [format!(
            "crates/p/src/a.rs: `{item}` shows `{library}` in public"
        )]
    );
}

#[track_caller]
fn assert_hides(source: &str) {
    assert_eq!(problems(source), Vec::<String>::new());
}

#[test]
fn functions_and_methods_are_looked_at() {
    assert_shows("pub fn f(c: &moka::sync::Cache<u8, u8>) {}", "f", "moka");
    assert_shows("pub fn f() -> Option<::fred::Client> { None }", "f", "fred");
    assert_shows("pub fn f<T>(_: T) where T: fred::Interface {}", "f", "fred");
    assert_shows(
        "struct S; impl S { pub fn c(&self) -> moka::C {} }",
        "c",
        "moka",
    );
    assert_shows("pub trait T { fn c(&self) -> fred::Client; }", "c", "fred");
    assert_shows(
        "mod m { pub async fn f(_: Box<dyn Fn(moka::E)>) {} }",
        "f",
        "moka",
    );
}

#[test]
fn imported_and_renamed_types_are_recognised() {
    assert_shows(
        "use moka::sync::Cache; pub fn f(_: Cache<u8, u8>) {}",
        "f",
        "moka",
    );
    assert_shows(
        "use moka::sync::{Cache as C, X}; pub fn f(_: C) {}",
        "f",
        "moka",
    );
    assert_shows(
        "use fred as redis; pub fn f(_: redis::Client) {}",
        "f",
        "fred",
    );
    assert_shows("use moka::sync; pub fn f(_: sync::Cache) {}", "f", "moka");
    assert_shows(
        "use moka::sync; pub use sync::Cache;",
        "a re-export",
        "moka",
    );
}

#[test]
fn importing_everything_is_refused() {
    for source in [
        "use fred::prelude::*;",
        "fn f() { use fred::{types::*, Error}; }",
    ] {
        let problems = problems(source);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("import from `fred` by name"));
    }
    assert_hides("use super::*; use std::fred::*;");
}

#[test]
fn fields_variants_aliases_constants_and_re_exports_are_looked_at() {
    assert_shows("pub struct S { pub cache: moka::Cache }", "S", "moka");
    assert_shows("pub struct S(pub fred::Client);", "S", "fred");
    assert_shows("pub enum E { A(fred::Error) }", "E", "fred");
    assert_shows(
        "pub type Cache = moka::sync::Cache<u8, u8>;",
        "Cache",
        "moka",
    );
    assert_shows("pub const C: Option<moka::C> = None;", "C", "moka");
    assert_shows("pub static C: Option<moka::C> = None;", "C", "moka");
    assert_shows("pub use fred::prelude::Client;", "a re-export", "fred");
    assert_shows("pub use {fred, std::fmt};", "a re-export", "fred");
    assert_shows("pub trait T: fred::Interface {}", "T", "fred");
    assert_shows("pub trait T { type C: fred::Interface; }", "C", "fred");
}

#[test]
fn trait_implementations_of_public_types_are_looked_at() {
    let conversion = "pub struct S; impl From<fred::Error> for S { fn from(_: u8) -> S { S } }";
    assert_shows(conversion, "an `impl` for S", "fred");
    let associated = "pub struct S; impl Deref for S { type Target = moka::C; }";
    assert_shows(associated, "Target", "moka");
    let elsewhere = [
        ("a.rs".to_owned(), syn::parse_file("pub struct S;").unwrap()),
        (
            "b.rs".to_owned(),
            syn::parse_file("impl moka::Expiry for S {}").unwrap(),
        ),
    ];
    assert_eq!(problems_of(&elsewhere).len(), 1);
}

#[test]
fn what_nobody_outside_can_see_is_free() {
    assert_hides("use moka::sync::Cache; pub struct S { cache: Cache<u8, u8> }");
    assert_hides("struct E; impl moka::Expiry<u8, u8> for E { fn f(_: moka::X) {} }");
    assert_hides("pub(crate) fn f(_: moka::C) {} pub(super) type T = fred::C;");
    assert_hides("fn f(_: fred::Client) {}");
    assert_hides("pub fn f() { let cache: moka::sync::Cache<u8, u8> = build(); }");
    assert_hides("impl S { pub(crate) fn f(_: moka::C) {} fn g(_: moka::C) {} }");
    assert_hides("/// As moka does.\n#[doc = \"fred\"] pub fn moka(fred: u8) {}");
    assert_hides("pub fn f(_: other::moka::Cache) {}");
}
