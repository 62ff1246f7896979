//! The running calls, in places that are used again: a call comes and goes without an allocation.

use std::sync::Arc;
use std::time::Duration;

use caching_abstractions::CacheKey;
use tokio::runtime;
use tokio::time::Instant;

use crate::record::Marker;

/// The memory of more places than this is given back once no call runs.
const KEPT_PLACES: usize = 1024;

#[derive(Default)]
pub(super) struct Calls {
    places: Vec<Option<Numbered>>,
    free: Vec<usize>,
    next: u64,
}

/// A call in its place. The number tells it from those that had the place before.
struct Numbered {
    number: u64,
    call: Call,
}

/// Which call it is: where it is, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id {
    place: usize,
    number: u64,
}

pub(super) struct Call {
    pub(super) key: CacheKey,
    pub(super) marker: Marker,
    pub(super) operation: Option<Arc<str>>,
    /// The runtime it runs on.
    pub(super) home: runtime::Id,
    /// When its marker is to be extended.
    pub(super) due: Instant,
    /// When it is given up.
    pub(super) end: Instant,
}

/// A call whose marker is due.
pub(super) struct Due {
    pub(super) id: Id,
    pub(super) key: CacheKey,
    pub(super) marker: Marker,
}

impl Calls {
    pub(super) fn insert(&mut self, call: Call) -> Id {
        let number = self.next;
        self.next += 1;
        let numbered = Some(Numbered { number, call });
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place] = numbered;
                place
            }
            None => {
                self.places.push(numbered);
                self.places.len() - 1
            }
        };
        Id { place, number }
    }

    /// Takes the call out; none if it is out already.
    pub(super) fn remove(&mut self, id: Id) -> Option<Call> {
        let place = self.places.get_mut(id.place)?;
        let numbered = place.take_if(|numbered| numbered.number == id.number)?;
        self.free.push(id.place);
        if self.is_empty() && self.places.len() > KEPT_PLACES {
            (self.places, self.free) = Default::default();
        }
        Some(numbered.call)
    }

    /// Says when the call is due next, unless it is out.
    pub(super) fn set_due(&mut self, id: Id, due: Instant) {
        if let Some(Some(numbered)) = self.places.get_mut(id.place)
            && numbered.number == id.number
        {
            numbered.call.due = due;
        }
    }

    /// The calls that are due at `now`, each after its grace; they are due again at `next`.
    pub(super) fn take_due(
        &mut self,
        now: Instant,
        next: Instant,
        grace: impl Fn(&Call) -> Duration,
    ) -> Vec<Due> {
        let mut taken = Vec::new();
        for (place, numbered) in self.places.iter_mut().enumerate() {
            if let Some(Numbered { number, call }) = numbered
                && call.due + grace(call) <= now
            {
                call.due = next;
                taken.push(Due {
                    id: Id {
                        place,
                        number: *number,
                    },
                    key: call.key.clone(),
                    marker: call.marker,
                });
            }
        }
        taken
    }

    /// Takes out the calls that are given up at `now`.
    pub(super) fn take_ended(&mut self, now: Instant) -> Vec<Call> {
        let ended: Vec<Id> = self
            .ids()
            .filter(|(_, call)| call.end <= now)
            .map(|(id, _)| id)
            .collect();
        ended.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Whether a call runs on the runtime `home`.
    pub(super) fn has_any_of(&self, home: runtime::Id) -> bool {
        self.ids().any(|(_, call)| call.home == home)
    }

    fn ids(&self) -> impl Iterator<Item = (Id, &Call)> {
        self.places
            .iter()
            .enumerate()
            .filter_map(|(place, numbered)| {
                let Numbered { number, call } = numbered.as_ref()?;
                let id = Id {
                    place,
                    number: *number,
                };
                Some((id, call))
            })
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::record::{ExecutionToken, IdempotencyRecord};

    /// A name of a runtime that no other has.
    fn runtime() -> runtime::Id {
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        runtime.handle().id()
    }

    fn call(due: Instant) -> Call {
        static HOME: LazyLock<runtime::Id> = LazyLock::new(runtime);
        Call {
            home: *HOME,
            key: CacheKey::new("idem:-:-:a").unwrap(),
            marker: IdempotencyRecord::marker(ExecutionToken::generate()),
            operation: None,
            due,
            end: due + Duration::from_secs(3600),
        }
    }

    #[test]
    fn p16_a_call_that_is_out_takes_no_later_one_with_it() {
        let (now, mut calls) = (Instant::now(), Calls::default());
        let first = calls.insert(call(now));
        assert!(calls.remove(first).is_some());
        let second = calls.insert(call(now));
        assert_eq!(second.place, first.place, "the place is used again");
        let later = now + Duration::from_secs(1);
        calls.set_due(first, later);
        assert!(calls.remove(first).is_none());
        assert_eq!(calls.take_due(now, later, |_| Duration::ZERO)[0].id, second);
        assert!(calls.take_due(now, later, |_| Duration::ZERO).is_empty());
        assert!(calls.remove(second).is_some());
        assert!(calls.is_empty());
    }

    #[test]
    fn p16_calls_of_other_runtimes_are_taken_later() {
        let (now, mut calls) = (Instant::now(), Calls::default());
        let (ours, grace) = (runtime(), Duration::from_secs(2));
        let theirs = calls.insert(call(now));
        assert!(!calls.has_any_of(ours));
        let own = calls.insert(Call {
            home: ours,
            ..call(now)
        });
        assert!(calls.has_any_of(ours));
        let mut taken = |at: u64| {
            let grace = |call: &Call| match call.home == ours {
                true => Duration::ZERO,
                false => grace,
            };
            let at = now + Duration::from_secs(at);
            let due = calls.take_due(at, now + Duration::from_secs(3600), grace);
            due.into_iter().map(|due| due.id).collect::<Vec<_>>()
        };
        assert_eq!(taken(1), [own]);
        assert_eq!(taken(2), [theirs]);
        assert_eq!(taken(2), []);
    }

    #[test]
    fn p16_only_calls_that_ran_too_long_are_given_up() {
        let (now, mut calls) = (Instant::now(), Calls::default());
        let old = calls.insert(call(now));
        let new = calls.insert(call(now + Duration::from_secs(1)));
        let ended = calls.take_ended(now + Duration::from_secs(3600));
        assert_eq!((ended.len(), calls.len()), (1, 1));
        assert!(calls.remove(old).is_none());
        assert!(calls.remove(new).is_some());
    }

    #[test]
    fn p16_the_memory_of_a_crowd_is_given_back() {
        let (now, mut calls) = (Instant::now(), Calls::default());
        let ids: Vec<Id> = (0..=KEPT_PLACES).map(|_| calls.insert(call(now))).collect();
        for id in ids {
            assert!(calls.remove(id).is_some());
        }
        assert_eq!(calls.places.capacity(), 0);
        let next = calls.insert(call(now));
        assert!(calls.remove(next).is_some());
    }
}
