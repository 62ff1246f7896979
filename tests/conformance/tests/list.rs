//! The list of cases is complete: what is written as a case is run.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the whole program is test code"
)]

use std::collections::BTreeSet;
use std::path::Path;

use conformance::CASES;

/// The names of all public functions that take a harness, below `folder`.
fn written(folder: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            written(&path, into);
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        for part in source.split("\npub async fn ").skip(1) {
            let (name, rest) = part.split_once('(').unwrap();
            if rest.trim_start().starts_with("harness: &dyn StoreHarness") {
                into.insert(name.to_owned());
            }
        }
    }
}

#[test]
fn every_case_that_is_written_is_listed() {
    let mut sources = BTreeSet::new();
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cases");
    written(&cases, &mut sources);
    let listed: BTreeSet<_> = CASES.iter().map(|case| case.name.to_owned()).collect();
    assert_eq!(sources, listed);
    assert_eq!(listed.len(), CASES.len(), "no name stands twice");
    println!("{} cases", CASES.len());
}
