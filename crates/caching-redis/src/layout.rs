//! Which slots of a Cluster moved while keys were listed, and whether a key can have been missed.

use std::collections::{HashMap, HashSet};

use crate::keyspace::SLOTS;

/// Where the slots are at one moment, as the primaries themselves say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The owner of each slot, by its place in `nodes`.
    owners: Vec<Option<usize>>,
    /// Slots that are on their way.
    moving: HashSet<usize>,
    /// Each primary with its epoch, which rises when it is given a slot.
    nodes: Vec<(String, String)>,
}

impl Layout {
    /// Reads what each primary answers to `CLUSTER NODES`; only its own line counts.
    pub(crate) fn read(answers: &[String]) -> Self {
        let own = |answer: &String| {
            let line = answer.lines().find(|line| line.contains("myself"));
            line.unwrap_or_default().to_owned()
        };
        let mut lines: Vec<String> = answers.iter().map(own).collect();
        lines.sort_unstable();
        let mut layout = Self {
            owners: vec![None; SLOTS],
            ..Self::default()
        };
        for line in &lines {
            let mut fields = line.split(' ');
            let id = fields.next().unwrap_or_default().to_owned();
            let epoch = fields.nth(5).unwrap_or_default().to_owned();
            let node = layout.nodes.len();
            layout.nodes.push((id, epoch));
            for slots in fields.skip(1) {
                layout.add(node, slots);
            }
        }
        layout
    }

    /// Takes note of slots as they are written: `5`, `5-9`, `[5->-node]` or `[5-<-node]`.
    fn add(&mut self, node: usize, slots: &str) {
        if let Some(moving) = slots.strip_prefix('[') {
            let slot = moving.split('-').next();
            let slot = slot.and_then(|slot| slot.parse::<usize>().ok());
            self.moving.extend(slot);
            return;
        }
        let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
        let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) else {
            return;
        };
        for slot in first..=last.min(SLOTS - 1) {
            if let Some(owner) = self.owners.get_mut(slot) {
                *owner = Some(node);
            }
        }
    }

    fn owner(&self, slot: usize) -> Option<&str> {
        let node = (*self.owners.get(slot)?)?;
        self.nodes.get(node).map(|node| node.0.as_str())
    }
}

/// What is known of the rounds that read all nodes one after the other.
///
/// A key that moves while it is looked for is missed by a round at most. It is found for sure by a
/// round in which its slot stood still, and also when there were more rounds than it can have
/// moved: it moves once for each time that its slot does.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    finished: u32,
    /// Rounds that may have missed anything.
    disturbed: u32,
    slots: HashMap<usize, Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Rounds in which it did not stand still.
    disturbed: u32,
    /// How often its owner was seen to change.
    changes: u32,
}

impl Rounds {
    /// Takes note of a round between two moments, and says whether every key was found.
    pub(crate) fn finish(&mut self, before: &Layout, after: &Layout, is_disturbed: bool) -> bool {
        self.finished += 1;
        let mut has_changed = false;
        for slot in 0..before.owners.len().max(after.owners.len()) {
            let is_changed = before.owner(slot) != after.owner(slot);
            if is_changed || before.moving.contains(&slot) || after.moving.contains(&slot) {
                let slot = self.slots.entry(slot).or_default();
                slot.disturbed += 1;
                slot.changes += u32::from(is_changed);
                has_changed |= is_changed;
            }
        }
        // A slot that came back to where it was leaves only a new epoch.
        let is_unclear = !has_changed && before.nodes != after.nodes;
        self.disturbed += u32::from(is_disturbed || is_unclear);
        let finished = self.finished - self.disturbed;
        finished > 0
            && self
                .slots
                .values()
                .all(|slot| finished > slot.disturbed || finished >= slot.changes + 2)
    }

    /// How many rounds there were.
    pub(crate) fn finished(&self) -> u32 {
        self.finished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of the primary `id`, which has `slots`.
    fn answer(id: &str, epoch: u32, slots: &str) -> String {
        format!(
            "{id} 127.0.0.1:7000@17000 myself,master - 0 0 {epoch} connected {slots}\n\
             other 127.0.0.1:7001@17001 master - 0 0 9 connected 0-16383\n"
        )
    }

    fn layout(a: &str, b: &str) -> Layout {
        Layout::read(&[answer("a", 1, a), answer("b", 2, b)])
    }

    #[test]
    fn one_round_is_enough_where_nothing_moves() {
        let still = layout("0-8000", "8001-16383");
        assert_eq!(still.owner(8000), Some("a"));
        assert_eq!(still.owner(8001), Some("b"));
        assert!(Rounds::default().finish(&still, &still, false));
        let one_server = Layout::default();
        assert!(Rounds::default().finish(&one_server, &one_server, false));
    }

    #[test]
    fn two_rounds_are_enough_while_one_slot_is_on_its_way() {
        let moving = layout("0-8000 [5->-b]", "8001-16383 [5-<-a]");
        let mut rounds = Rounds::default();
        assert!(!rounds.finish(&moving, &moving, false));
        assert!(rounds.finish(&moving, &moving, false));
    }

    #[test]
    fn a_slot_that_stood_still_once_is_complete() {
        let still = layout("0-8000", "8001-16383");
        let moved = layout("0-7999", "8000-16383");
        let mut rounds = Rounds::default();
        assert!(!rounds.finish(&still, &moved, false));
        assert!(rounds.finish(&moved, &moved, false));
    }

    #[test]
    fn a_slot_that_moves_in_each_round_needs_more_of_them() {
        let (one, two) = (
            layout("0-8000", "8001-16383"),
            layout("0-7999", "8000-16383"),
        );
        let mut rounds = Rounds::default();
        assert!(!rounds.finish(&one, &two, false));
        assert!(!rounds.finish(&two, &one, false));
        assert!(!rounds.finish(&one, &two, false));
        assert!(rounds.finish(&two, &two, false));
        assert_eq!(rounds.finished(), 4);
    }

    #[test]
    fn a_round_that_lost_its_cursor_does_not_count() {
        let still = layout("0-8000", "8001-16383");
        let mut rounds = Rounds::default();
        assert!(!rounds.finish(&still, &still, true));
        assert!(rounds.finish(&still, &still, false));
    }

    #[test]
    fn a_slot_that_went_and_came_back_leaves_an_epoch() {
        let before = Layout::read(&[answer("a", 1, "0-16383"), answer("b", 2, "")]);
        let after = Layout::read(&[answer("a", 3, "0-16383"), answer("b", 2, "")]);
        let mut rounds = Rounds::default();
        assert!(!rounds.finish(&before, &after, false));
        assert!(rounds.finish(&after, &after, false));
    }
}
