//! How many files, and so connections, the process may have open.

/// What is needed besides connections: a store's own, metrics, the runtime's.
#[cfg(unix)]
const BESIDE: u64 = 256;

/// Raises the limit of the process so that there can be so many connections, as far as it may.
///
/// Systems begin with a limit of about a thousand for programs that use `select`, and let each
/// process raise it.
#[cfg(unix)]
pub(super) fn allow(connections: usize) {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    let needed = u64::try_from(connections)
        .unwrap_or(u64::MAX)
        .saturating_add(BESIDE);
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return;
    };
    let wanted = needed.min(hard);
    if wanted > soft && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_err() {
        tracing::debug!(soft, wanted, "the limit of open files stays as it is");
    }
    if hard < needed {
        tracing::warn!(
            limit = hard,
            needed,
            "the system allows fewer open files than --max-connections needs: raise its limit \
             (`ulimit -Hn`, `LimitNOFILE=`), or lower --max-connections"
        );
    }
}

#[cfg(not(unix))]
pub(super) fn allow(_: usize) {}
