//! Help, version, completions and manual pages.

use crate::support::Call;

fn text(arguments: &[&str]) -> String {
    let done = Call::new(arguments).run().expect(0);
    assert_eq!(done.error, "", "{arguments:?}");
    done.text().to_owned()
}

#[test]
fn part11_help_and_version_need_no_store_and_are_status_0() {
    assert!(text(&["--version"]).starts_with("xihan-cache "));
    let help = text(&["--help"]);
    for says in [
        "Exit status",
        " 64 ",
        " 69 ",
        " 75 ",
        " 76 ",
        "XIHAN_CACHE_STORE",
        "Examples",
    ] {
        assert!(help.contains(says), "{says}");
    }
    let commands = ["get", "set", "add", "remove", "ttl", "keys", "ping"];
    for command in commands {
        let help = text(&[command, "--help"]);
        assert!(
            help.contains("Examples:") && help.contains("Exit status: 0"),
            "{command}"
        );
    }
    let lock = text(&["help", "lock"]);
    for says in [
        "XIHAN_LOCK_FENCING",
        "--keep-alive",
        " 76 ",
        "127",
        "Examples:",
    ] {
        assert!(lock.contains(says), "{says}");
    }
    let serve = text(&["help", "serve"]);
    for says in [
        "[default: 127.0.0.1:50051]",
        "--token-file",
        "one to a line",
        "XIHAN_CACHE_TOKEN",
        "--client-ca",
        "--insecure",
        "/metrics",
        "/readyz",
        "The store is away:",
        "Signals:",
        "Examples:",
        "70  the address is in use",
        "listening on grpc://",
    ] {
        assert!(serve.contains(says), "{says}");
    }
}

#[test]
fn part11_completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = text(&["completions", shell]);
        for name in ["remove", "lock", "serve", "completions"] {
            assert!(script.contains(name), "{shell}: {name}");
        }
        assert!(
            !script.contains("__locked-command"),
            "{shell} shows what is internal"
        );
    }
}

#[test]
fn part11_manual_pages_are_there_for_the_program_and_each_command() {
    let page = text(&["man"]);
    assert!(
        page.contains(".TH xihan") && page.contains("Exit status"),
        "{page}"
    );
    for command in [
        "get", "set", "add", "remove", "ttl", "keys", "ping", "lock", "serve",
    ] {
        let page = text(&["man", command]);
        assert!(
            page.contains(&format!(".TH xihan-cache-{command}")),
            "{page}"
        );
    }
}
