use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::key::CacheKey;

/// The keys that are being created at present, each with one flight (N4).
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<CacheKey, Slot>>);

#[derive(Debug)]
struct Slot {
    flight: Arc<Flight>,
    /// Counted under the map's lock, so that the last one out knows that it is the last.
    passengers: usize,
}

/// The encoded value that one of the passengers creates for all.
///
/// `OnceCell` lets one passenger at a time try; one that fails or is dropped lets the next one.
pub(super) type Flight = OnceCell<Bytes>;

/// A seat in the flight of one key; gives the seat back when dropped.
#[derive(Debug)]
pub(super) struct Passenger {
    flights: Arc<Flights>,
    key: CacheKey,
    flight: Arc<Flight>,
}

impl Flights {
    /// Joins the flight of `key`, or starts one. A flight that has arrived is not joined: its
    /// value may have been replaced since.
    pub(super) fn join(self: &Arc<Self>, key: &CacheKey) -> Passenger {
        let mut slots = self.0.lock();
        let slot = match slots.entry(key.clone()) {
            Entry::Vacant(free) => free.insert(Slot::new()),
            Entry::Occupied(there) => {
                let slot = there.into_mut();
                if slot.flight.initialized() {
                    *slot = Slot::new();
                }
                slot
            }
        };
        slot.passengers += 1;
        Passenger {
            flights: Arc::clone(self),
            key: key.clone(),
            flight: Arc::clone(&slot.flight),
        }
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.lock().len()
    }
}

impl Slot {
    fn new() -> Self {
        Self {
            flight: Arc::new(Flight::new()),
            passengers: 0,
        }
    }
}

impl Passenger {
    pub(super) fn flight(&self) -> &Flight {
        &self.flight
    }
}

impl Drop for Passenger {
    fn drop(&mut self) {
        let mut slots = self.flights.0.lock();
        let Entry::Occupied(mut slot) = slots.entry(self.key.clone()) else {
            return;
        };
        // A later flight of the same key is not ours to count.
        if !Arc::ptr_eq(&slot.get().flight, &self.flight) {
            return;
        }
        slot.get_mut().passengers -= 1;
        if slot.get().passengers == 0 {
            slot.remove();
        }
    }
}
