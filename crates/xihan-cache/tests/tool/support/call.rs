use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::process;

/// Far longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(60);

/// A call of the tool that is about to be made, with nothing inherited that would configure it.
pub(crate) struct Call {
    command: Command,
    input: Option<Vec<u8>>,
}

impl Call {
    pub(crate) fn new<A: AsRef<OsStr>>(arguments: &[A]) -> Self {
        let mut call = Self::of(env!("CARGO_BIN_EXE_xihan-cache"));
        call.command.args(arguments);
        call
    }

    /// A call of another program, for those that call the tool.
    pub(crate) fn of(program: &str) -> Self {
        // Whoever runs the tests may ignore signals, as a shell does for what it runs in the
        // background.
        let mut command = Command::new("env");
        command.args(["--default-signal", program]);
        for (name, _) in std::env::vars_os() {
            let is_ours = name.to_string_lossy().starts_with("XIHAN");
            if is_ours || name == "RUST_LOG" {
                command.env_remove(&name);
            }
        }
        Self {
            command,
            input: None,
        }
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: &[A]) -> Self {
        self.command.args(arguments);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn in_directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Makes the call and waits for its end.
    #[track_caller]
    pub(crate) fn run(self) -> Done {
        self.start().wait()
    }

    pub(crate) fn start(mut self) -> Running {
        // Files, not pipes: what a command leaves behind must not hold a reader up.
        let (output, error) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let child = self
            .command
            .stdin(Stdio::piped())
            .stdout(output.try_clone().unwrap())
            .stderr(error.try_clone().unwrap())
            .spawn()
            .unwrap();
        let mut running = Running {
            child,
            output,
            error,
        };
        match self.input {
            Some(input) => running.write(&input),
            None => drop(running.child.stdin.take()),
        }
        running
    }
}

/// A call that was made; killed when this is dropped.
pub(crate) struct Running {
    child: Child,
    output: File,
    error: File,
}

impl Running {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes to its standard input, which stays open.
    pub(crate) fn write(&mut self, input: &[u8]) {
        let pipe = self.child.stdin.as_mut().unwrap();
        pipe.write_all(input).unwrap();
    }

    pub(crate) fn signal(&self, name: &str) {
        process::signal(self.id(), name);
    }

    /// What it has printed so far.
    pub(crate) fn output(&mut self) -> String {
        String::from_utf8_lossy(&content(&mut self.output)).into_owned()
    }

    #[track_caller]
    pub(crate) fn wait(mut self) -> Done {
        // A call that reads its input to the end sees one, once all was written.
        let _closed = self.child.stdin.take();
        drop(_closed);
        self.wait_open()
    }

    /// Waits with standard input left open.
    #[track_caller]
    pub(crate) fn wait_open(mut self) -> Done {
        let begun = std::time::Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < PATIENCE, "the call does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        Done {
            code: status.code(),
            signal: status.signal(),
            output: content(&mut self.output),
            error: String::from_utf8_lossy(&content(&mut self.error)).into_owned(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn content(file: &mut File) -> Vec<u8> {
    // The position is shared with the writer and must stay where it is.
    let mut content = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut content, 0).unwrap();
    content
}

/// How a call ended and what it printed.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    #[allow(dead_code, reason = "only the crowd is killed itself")]
    pub(crate) signal: Option<i32>,
    pub(crate) output: Vec<u8>,
    pub(crate) error: String,
}

impl Done {
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    /// Ends with 64 and says this.
    #[track_caller]
    pub(crate) fn refused(self, says: &str) -> Self {
        let done = self.expect(64);
        assert!(done.error.contains(says), "{says}: {done:?}");
        done
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.output).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.output).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The failure that was printed for programs.
    #[track_caller]
    pub(crate) fn json_error(&self) -> Value {
        let value: Value =
            serde_json::from_str(&self.error).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        value["error"].clone()
    }
}
