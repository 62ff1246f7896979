//! Commands at a terminal. `script` gives one to what it runs.

use crate::support::{Call, Running, Scene};

fn at_a_terminal(scene: &Scene, line: &str) -> Running {
    let tool = env!("CARGO_BIN_EXE_xihan-cache");
    let line = line.replace("TOOL", tool);
    Call::of("script")
        .args(&["--quiet", "--return", "--command", &line, "/dev/null"])
        .env("XIHAN_CACHE_STORE", &scene.server.url())
        .env("SHELL", "/bin/sh")
        .in_directory(scene.directory.path())
        .input("")
        .start()
}

#[test]
fn the_command_reads_from_the_terminal_and_gives_it_back() {
    let scene = Scene::new();
    let line = "TOOL lock r --ttl 30s -- sh -c 'read x; echo command:$x >> got'; \
                read y; echo shell:$y >> got; exit 9";
    let mut terminal = at_a_terminal(&scene, line);
    terminal.write(b"first\n");
    scene.until_written("got", "command:first");
    terminal.write(b"second\n");
    terminal.wait_open().expect(9);
    assert_eq!(scene.read("got"), "command:first\nshell:second\n");
}

#[test]
fn ctrl_c_ends_the_command_and_ctrl_z_does_not_suspend_it() {
    let scene = Scene::new();
    let script = "trap \"echo INT >> got; exit 7\" INT; echo > begun; while :; do \
                  sleep 0.02; echo >> alive; done";
    let line = format!("TOOL lock r --ttl 30s -- sh -c '{script}'");
    let mut terminal = at_a_terminal(&scene, &line);
    scene.until_written("begun", "\n");
    terminal.write(b"\x1a");
    redis_support::wait_until("a refusal", || terminal.output().contains("not suspended"));
    let lines = scene.read("alive").lines().count();
    redis_support::wait_until("a command that goes on", || {
        scene.read("alive").lines().count() > lines + 2
    });
    terminal.write(b"\x03");
    terminal.wait_open().expect(7);
    assert_eq!(scene.read("got"), "INT\n");
    assert_eq!(scene.token(), "");
}

#[test]
fn part11_a_terminal_gets_notes_and_readable_values() {
    let scene = Scene::new();
    let see = |line: &str, code: i32| {
        let done = at_a_terminal(&scene, line).wait_open().expect(code);
        done.text().replace('\r', "")
    };
    assert_eq!(see("TOOL get k", 1), "`k` is not there\n");
    assert_eq!(see("TOOL add k v", 0), "`k` is added\n");
    assert_eq!(see("TOOL add k v", 1), "`k` is there already\n");
    assert_eq!(see("TOOL get k", 0), "v\n");
    assert_eq!(
        see("printf '\\033[2J' | TOOL set k -", 0),
        "`k` is written\n"
    );
    assert_eq!(see("TOOL get k", 0), "\\x1b[2J\n");
    assert_eq!(see("TOOL remove k", 0), "`k` is removed\n");
}

#[test]
fn a_command_that_wants_a_terminal_it_has_not_is_told_of_and_can_be_ended() {
    let scene = Scene::new();
    let line = "TOOL lock r --ttl 30s -- sh -c 'echo $PPID > wrapper; read x < /dev/tty' \
                < /dev/null";
    let mut terminal = at_a_terminal(&scene, line);
    let wrapper = scene.until_number("wrapper");
    redis_support::wait_until("a warning", || terminal.output().contains("stands still"));
    crate::support::signal(wrapper, "TERM");
    terminal.wait_open().expect(143);
    assert_eq!(scene.token(), "");
}
