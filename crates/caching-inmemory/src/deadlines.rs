/// The deadlines of the dense slots `0..len`, earliest first.
///
/// An indexed binary heap: each slot knows where it stands, so a deadline is moved or taken out
/// exactly, without leftovers that a later clean-up has to see through. Slots are dense:
/// [`swap_remove`](Self::swap_remove) gives the last slot the number of the one that went, as
/// `Vec::swap_remove` does for the entries beside it.
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

    fn sift_up(&mut self, mut position: usize) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.heap[parent].deadline <= self.heap[position].deadline {
                break;
            }
            self.swap(parent, position);
            position = parent;
        }
        position
    }

    fn sift_down(&mut self, mut position: usize) {
        loop {
            let left = 2 * position + 1;
            let Some(first) = self.heap.get(left) else {
                return;
            };
            let child = match self.heap.get(left + 1) {
                Some(second) if second.deadline < first.deadline => left + 1,
                _ => left,
            };
            if self.heap[position].deadline <= self.heap[child].deadline {
                return;
            }
            self.swap(position, child);
            position = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for position in [a, b] {
            self.positions[self.heap[position].slot as usize] = position as u32;
        }
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
