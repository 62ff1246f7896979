use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Sends a signal, such as `TERM`; that the process is gone is no error.
pub(crate) fn signal(id: u32, name: &str) {
    let signal: Signal = format!("SIG{name}").parse().unwrap();
    let _ = kill(Pid::from_raw(id.try_into().unwrap()), signal);
}

/// State, process group and name of a process; none if it is gone.
fn look(id: u32) -> Option<(char, u32, String)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (begin, rest) = stat.rsplit_once(") ")?;
    let name = begin.split_once('(')?.1.to_owned();
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    let group = fields.nth(1)?.parse().ok()?;
    Some((state, group, name))
}

/// Whether the process runs, sleeps or stands still; one that nobody has waited for is dead.
pub(crate) fn is_alive(id: u32) -> bool {
    look(id).is_some_and(|(state, ..)| !matches!(state, 'Z' | 'X'))
}

pub(crate) fn group_of(id: u32) -> Option<u32> {
    look(id).map(|(_, group, _)| group)
}

/// The living members of a group with this name.
pub(crate) fn find(group: u32, name: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&id| {
            look(id).is_some_and(|(state, its_group, its_name)| {
                state != 'Z' && its_group == group && its_name == name
            })
        })
        .collect()
}
