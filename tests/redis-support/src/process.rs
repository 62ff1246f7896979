//! Child processes that do not outlive the test process.

use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{self, Sender};

use parking_lot::Mutex;

type Request = (Command, Sender<std::io::Result<Child>>);

/// The thread that starts every child. The kernel ends a child with the *thread* that started it,
/// so it has to be one that lives as long as the process.
static STARTER: LazyLock<Mutex<Sender<Request>>> = LazyLock::new(|| {
    let (requests, received) = mpsc::channel::<Request>();
    std::thread::spawn(move || {
        for (mut command, answer) in received {
            let _ = answer.send(command.spawn());
        }
    });
    Mutex::new(requests)
});

/// Starts `program`, quiet, in a way that ends it with this process.
pub(crate) fn start(program: &str, arguments: &[String]) -> Child {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", program]);
    command.args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let (answer, answered) = mpsc::channel();
    STARTER
        .lock()
        .send((command, answer))
        .expect("the thread never ends");
    let child = answered.recv().expect("it answers");
    child.unwrap_or_else(|error| panic!("cannot start {program}: {error}; install redis-server"))
}

/// Sends `signal` to the process `id`.
pub(crate) fn signal(id: u32, signal: &str) {
    let status = Command::new("kill")
        .args([format!("-{signal}"), id.to_string()])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "no such child");
}
