use std::time::Duration;

/// Growing, jittered pauses between attempts.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    first: Duration,
    next: Duration,
    longest: Duration,
}

impl Backoff {
    /// Pauses that double from `first` to `longest`.
    pub(super) fn new(first: Duration, longest: Duration) -> Self {
        let longest = longest.max(first);
        Self {
            first,
            next: first,
            longest,
        }
    }

    /// How long to pause now: between half and all of the present step, so that many who were
    /// refused together do not come back together.
    pub(super) fn pause(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(self.longest);
        between(step / 2, step)
    }

    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// A random duration from `least` to `most`.
pub(super) fn between(least: Duration, most: Duration) -> Duration {
    let spread = most.saturating_sub(least);
    least + spread.mul_f64(rand::random_range(0.0..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expiration::milliseconds;

    #[test]
    fn l9_pauses_grow_to_the_longest_and_start_again() {
        let mut backoff = Backoff::new(milliseconds(10), milliseconds(40));
        for step in [10, 20, 40, 40] {
            let pause = backoff.pause();
            assert!(
                pause >= milliseconds(step / 2) && pause <= milliseconds(step),
                "{step}: {pause:?}"
            );
        }
        backoff.reset();
        assert!(backoff.pause() <= milliseconds(10));
    }
}
