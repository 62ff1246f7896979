//! What is printed, for people and for programs.

use std::io::{self, IsTerminal, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Where results and messages go.
///
/// - Standard output carries what was asked for and nothing else: the value, the keys, the time.
/// - Standard error carries failures and warnings, and on a terminal also notes such as "added".
/// - With `--json` each result is one object on standard output, each failure or warning one on
///   standard error, and there are no notes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    json: bool,
    verbose: bool,
}

impl Console {
    pub(crate) fn new(json: bool, verbose: bool) -> Self {
        Self { json, verbose }
    }

    /// Prints a result: `object` for programs, else what `people` writes.
    pub(crate) fn result(
        self,
        object: impl FnOnce() -> Value,
        people: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut output = io::stdout().lock();
        if self.json {
            writeln!(output, "{}", object())?;
        } else {
            people(&mut output)?;
        }
        Ok(output.flush()?)
    }

    /// Prints the outcome of a command that gives no more than its exit status: `object` for
    /// programs, `note` for people at a terminal.
    pub(crate) fn outcome(self, object: Value, note: &str) -> Result<(), Failure> {
        self.result(|| object, |_| Ok(()))?;
        if !self.json && io::stderr().is_terminal() {
            say(note);
        }
        Ok(())
    }

    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Prints why a command failed.
    ///
    /// That a lock is held is no news where nobody looks: of five machines with the same cron line
    /// four find it held every time.
    pub(crate) fn failure(self, failure: &Failure) {
        let is_looked_at = self.verbose || io::stderr().is_terminal();
        if self.json {
            say(&failure.to_json().to_string());
        } else if !failure.is_expected() || is_looked_at {
            say(&format!("xihan-cache: {failure}"));
        }
    }

    /// Prints what somebody should know although the command goes on.
    pub(crate) fn warn(self, text: &str) {
        if self.json {
            say(&json!({ "warning": { "message": text } }).to_string());
        } else {
            say(&format!("xihan-cache: {text}"));
        }
    }
}

/// A line on standard error. Nobody can be told if that fails.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// `value` as the members `value` and `encoding` of `object`: text as it is, other bytes as
/// base64.
pub(crate) fn with_value(mut object: Value, value: &[u8]) -> Value {
    let (text, encoding) = match std::str::from_utf8(value) {
        Ok(text) => (text.to_owned(), "utf-8"),
        Err(_) => (STANDARD.encode(value), "base64"),
    };
    object["value"] = text.into();
    object["encoding"] = encoding.into();
    object
}

/// Writes `value` for a terminal: text on lines of its own; what would move the cursor or is no
/// text, escaped.
pub(crate) fn write_readable(output: &mut dyn Write, value: &[u8]) -> io::Result<()> {
    let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    match std::str::from_utf8(value) {
        Ok(text) if text.chars().all(is_plain) => {
            output.write_all(value)?;
            let is_whole = value.is_empty() || value.ends_with(b"\n");
            output.write_all(if is_whole { b"" } else { b"\n" })
        }
        _ => writeln!(output, "{}", value.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(value: &[u8]) -> String {
        let mut output = Vec::new();
        write_readable(&mut output, value).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn a_terminal_gets_whole_lines_and_no_control_characters() {
        assert_eq!(readable(b""), "");
        assert_eq!(readable("h\u{e9}llo".as_bytes()), "h\u{e9}llo\n");
        assert_eq!(readable(b"two\nlines\n"), "two\nlines\n");
        assert_eq!(readable(b"\x1b[2J"), "\\x1b[2J\n");
        assert_eq!(readable(b"\xff\x00"), "\\xff\\x00\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_base64_and_say_so() {
        let value = |bytes| with_value(json!({}), bytes);
        assert_eq!(
            value(b"text"),
            json!({ "value": "text", "encoding": "utf-8" })
        );
        assert_eq!(
            value(b"\xff\x00"),
            json!({ "value": "/wA=", "encoding": "base64" })
        );
    }
}
