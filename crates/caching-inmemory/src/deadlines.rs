/// The deadlines of the dense slots `0..len`, earliest first.
///
/// An indexed heap of four branches, so that a deadline moves over few levels. Each slot knows where
/// it stands, so a deadline is moved or taken out exactly, without leftovers that a later clean-up
/// has to see through. Slots are dense: [`swap_remove`](Self::swap_remove) gives the last slot the
/// number of the one that went, as `Vec::swap_remove` does for the entries beside it.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    heap: Vec<Timed>,
    /// Where each slot stands in `heap`.
    positions: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Timed {
    deadline: u64,
    slot: u32,
}

impl Deadlines {
    const BRANCHES: usize = 4;

    /// The slot with the earliest deadline.
    pub(crate) fn first(&self) -> Option<(u64, usize)> {
        self.heap
            .first()
            .map(|timed| (timed.deadline, timed.slot as usize))
    }

    /// Adds the next slot.
    pub(crate) fn push(&mut self, deadline: u64) {
        let position = self.heap.len();
        let slot = position as u32;
        self.heap.push(Timed { deadline, slot });
        self.positions.push(slot);
        self.sift_up(position);
    }

    /// Moves the deadline of `slot`.
    pub(crate) fn set(&mut self, slot: usize, deadline: u64) {
        let position = self.positions[slot] as usize;
        self.heap[position].deadline = deadline;
        self.sift(position);
    }

    /// Takes `slot` out and gives the last slot its number.
    pub(crate) fn swap_remove(&mut self, slot: usize) {
        let position = self.positions[slot] as usize;
        self.heap.swap_remove(position);
        self.positions.swap_remove(slot);
        // The entry that filled the hole stands elsewhere now, and the last slot has a new number.
        if let Some(filler) = self.heap.get(position) {
            let filler_slot = filler.slot as usize;
            if filler_slot < self.positions.len() {
                self.positions[filler_slot] = position as u32;
            } else {
                self.positions[slot] = position as u32;
            }
        }
        if let Some(&renumbered) = self.positions.get(slot) {
            self.heap[renumbered as usize].slot = slot as u32;
        }
        if position < self.heap.len() {
            self.sift(position);
        }
    }

    /// Gives back memory beyond `capacity` slots.
    pub(crate) fn shrink_to(&mut self, capacity: usize) {
        self.heap.shrink_to(capacity);
        self.positions.shrink_to(capacity);
    }

    fn sift(&mut self, position: usize) {
        let position = self.sift_up(position);
        self.sift_down(position);
    }

    /// Moves later parents down until what stood at `position` fits; gives its new position.
    fn sift_up(&mut self, mut position: usize) -> usize {
        let moved = self.heap[position];
        while position > 0 {
            let parent = (position - 1) / Self::BRANCHES;
            if self.heap[parent].deadline <= moved.deadline {
                break;
            }
            self.put(position, self.heap[parent]);
            position = parent;
        }
        self.put(position, moved);
        position
    }

    /// Moves earlier children up until what stood at `position` fits.
    fn sift_down(&mut self, mut position: usize) {
        let moved = self.heap[position];
        while let Some(child) = self.first_child(position)
            && self.heap[child].deadline < moved.deadline
        {
            self.put(position, self.heap[child]);
            position = child;
        }
        self.put(position, moved);
    }

    /// The child of `position` with the earliest deadline.
    fn first_child(&self, position: usize) -> Option<usize> {
        let begin = Self::BRANCHES * position + 1;
        let end = self.heap.len().min(begin + Self::BRANCHES);
        (begin..end).min_by_key(|&child| self.heap[child].deadline)
    }

    fn put(&mut self, position: usize, timed: Timed) {
        self.heap[position] = timed;
        self.positions[timed.slot as usize] = position as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u64),
        Set(usize, u64),
        Remove(usize),
        RemoveFirst,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0_u64..50).prop_map(Step::Push),
            2 => (any::<usize>(), 0_u64..50).prop_map(|(slot, at)| Step::Set(slot, at)),
            2 => any::<usize>().prop_map(Step::Remove),
            1 => Just(Step::RemoveFirst),
        ]
    }

    fn check(deadlines: &Deadlines, model: &[u64]) {
        assert_eq!(deadlines.heap.len(), model.len());
        assert_eq!(
            deadlines.first().map(|(at, _)| at),
            model.iter().copied().min()
        );
        for (slot, &at) in model.iter().enumerate() {
            let timed = deadlines.heap[deadlines.positions[slot] as usize];
            assert_eq!((timed.slot as usize, timed.deadline), (slot, at));
        }
    }

    proptest! {
        #[test]
        fn e4_the_index_is_exact_under_any_sequence_of_changes(
            steps in proptest::collection::vec(step(), 1..200),
        ) {
            let mut deadlines = Deadlines::default();
            let mut model: Vec<u64> = Vec::new();
            for step in steps {
                match step {
                    Step::Push(at) => {
                        deadlines.push(at);
                        model.push(at);
                    }
                    _ if model.is_empty() => {}
                    Step::Set(slot, at) => {
                        let slot = slot % model.len();
                        deadlines.set(slot, at);
                        model[slot] = at;
                    }
                    Step::Remove(slot) => {
                        let slot = slot % model.len();
                        deadlines.swap_remove(slot);
                        model.swap_remove(slot);
                    }
                    Step::RemoveFirst => {
                        let (at, slot) = deadlines.first().unwrap();
                        prop_assert_eq!(model[slot], at);
                        deadlines.swap_remove(slot);
                        model.swap_remove(slot);
                    }
                }
                check(&deadlines, &model);
            }
        }
    }
}
