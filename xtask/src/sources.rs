//! `cargo xtask sources`: rules that can be read off the files.

use crate::workspace::{TextFile, text_files};
use crate::{Result, orphans, report};

/// The most lines a source file of a crate may have.
const MAX_LINES: usize = 500;
/// From here on a source file should be split.
const MANY_LINES: usize = 400;

/// What no Rust file may contain, and why. Written in parts, so that this file passes.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("#[", "ignore"), "an ignored test proves nothing"),
    (concat!("todo", "!("), "unfinished code is not merged"),
    (
        concat!("unimplemented", "!("),
        "unfinished code is not merged",
    ),
];

/// Beginnings of paths that exist on somebody's machine only.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("/wo", "rk/"),
    concat!("C:\\Us", "ers\\"),
];

/// Checks every tracked text file.
pub(crate) fn run() -> Result {
    let files = text_files()?;
    for file in &files {
        if let Some(warning) = many_lines(file) {
            println!("warning: {warning}");
        }
    }
    let mut problems: Vec<String> = files.iter().flat_map(problems_of).collect();
    problems.extend(orphans::problems_of(&files)?);
    report("sources", &problems)
}

fn problems_of(file: &TextFile) -> Vec<String> {
    let mut problems: Vec<String> = too_many_lines(file).into_iter().collect();
    for (index, line) in file.text.lines().enumerate() {
        let found = forbidden(file, line)
            .or_else(|| ignored_example(file, line))
            .or_else(|| machine_path(line));
        problems.extend(found.map(|what| format!("{}:{}: {what}", file.path, index + 1)));
    }
    problems
}

fn too_many_lines(file: &TextFile) -> Option<String> {
    let lines = file.text.lines().count();
    (is_crate_source(file) && lines > MAX_LINES)
        .then(|| format!("{}: {lines} lines; at most {MAX_LINES}", file.path))
}

fn many_lines(file: &TextFile) -> Option<String> {
    let lines = file.text.lines().count();
    (is_crate_source(file) && (MANY_LINES + 1..=MAX_LINES).contains(&lines))
        .then(|| format!("{}: {lines} lines; better at most {MANY_LINES}", file.path))
}

fn forbidden(file: &TextFile, line: &str) -> Option<String> {
    if !is_rust(file) {
        return None;
    }
    FORBIDDEN
        .iter()
        .find(|(mark, _)| line.contains(mark))
        .map(|(mark, reason)| format!("`{mark}`: {reason}"))
}

/// A code block in documentation that rustdoc does not even compile.
fn ignored_example(file: &TextFile, line: &str) -> Option<String> {
    if !is_rust(file) && !file.path.ends_with(".md") {
        return None;
    }
    let line = line.trim_start();
    let text = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))
        .unwrap_or(line);
    let words = text.trim_start().strip_prefix("```")?;
    words
        .split([',', ' ', '{', '}'])
        .any(|word| word == "ignore" || word.starts_with("ignore-"))
        .then(|| "an example that is not compiled rots".to_owned())
}

/// A path that is right on one machine.
fn machine_path(line: &str) -> Option<String> {
    MACHINE_PATHS
        .iter()
        .find(|start| line.contains(*start))
        .map(|start| format!("a path of one machine (`{start}…`)"))
}

fn is_rust(file: &TextFile) -> bool {
    file.path.ends_with(".rs")
}

fn is_crate_source(file: &TextFile) -> bool {
    let mut parts = file.path.split('/');
    is_rust(file)
        && parts.next() == Some("crates")
        && parts.nth(1) == Some("src")
        && parts.next() != Some("generated")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: impl Into<String>) -> TextFile {
        TextFile {
            path: path.to_owned(),
            text: text.into(),
        }
    }

    #[track_caller]
    fn assert_problem(path: &str, text: &str, says: &str) {
        let problems = problems_of(&file(path, text));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(says), "{problems:?}");
    }

    #[track_caller]
    fn assert_clean(path: &str, text: impl Into<String>) {
        assert_eq!(problems_of(&file(path, text)), Vec::<String>::new());
    }

    #[test]
    fn a_crate_file_over_the_limit_is_refused_and_a_long_one_warned_about() {
        let of = |path: &str, lines: usize| file(path, "line\n".repeat(lines));
        let path = "crates/caching-inmemory/src/store/shard.rs";
        assert_eq!(many_lines(&of(path, 400)), None);
        assert!(many_lines(&of(path, 401)).is_some());
        assert_eq!(too_many_lines(&of(path, 500)), None);
        assert!(too_many_lines(&of(path, 501)).is_some());
        assert_clean(
            "crates/caching-inmemory/tests/long.rs",
            "line\n".repeat(501),
        );
        assert_clean("tests/conformance/src/lib.rs", "line\n".repeat(501));
        assert_clean("docs/guide.md", "line\n".repeat(501));
    }

    #[test]
    fn ignored_tests_and_unfinished_code_are_refused() {
        let ignored = ["#[test]\n#[", "ignore]\nfn t() {}\n"].concat();
        assert_problem("crates/a/src/b.rs", &ignored, "b.rs:2: ");
        let with_reason = ["#[", "ignore = \"slow\"]"].concat();
        assert_problem("tests/e2e/tests/b.rs", &with_reason, "proves nothing");
        assert_problem("a.rs", &["fn f() { todo", "!() }"].concat(), "unfinished");
        assert_problem(
            "a.rs",
            &["unimplemented", "!(\"x\")"].concat(),
            "unfinished",
        );
        assert_clean("README.md", ["`todo", "!()` is refused"].concat());
    }

    #[test]
    fn examples_that_are_not_compiled_are_refused() {
        let says = "not compiled";
        assert_problem("a.rs", &["    /// ``", "`ignore\n"].concat(), says);
        assert_problem("a.rs", &["//! ``", "`rust,ignore\n"].concat(), says);
        assert_problem(
            "docs/a.md",
            &["``", "`rust,ignore-windows\n"].concat(),
            says,
        );
        assert_clean("a.rs", "/// ```no_run\n/// ```\n/// ```compile_fail\n");
        assert_clean("docs/a.md", "```text\nignore this\n```\n");
        assert_clean("notes.txt", ["``", "`ignore\n"].concat());
    }

    #[test]
    fn paths_of_one_machine_are_refused_in_any_text() {
        let path = |start: &str| format!("see {start}someone/notes");
        assert_problem("README.md", &path(concat!("/ho", "me/")), "one machine");
        assert_problem("a.toml", &path(concat!("/Us", "ers/")), "one machine");
        assert_problem("a.rs", &path(concat!("/ro", "ot/")), "one machine");
        assert_clean("README.md", "see /usr/local/bin and /orders/{id}");
    }
}
