//! The in-memory store passes the whole suite, on either kind of clock.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use caching_abstractions::{CacheStore, Clock, KeyPrefix, ManualClock};
use caching_inmemory::InMemoryStore;
use conformance::{Gap, RunningStore, Setup, StoreHarness};

/// What only something outside the process can do: be away, or hold a value of another kind.
const GAPS: &[Gap] = &[Gap::ForeignValue, Gap::Outage];

/// The store on a clock that is moved by hand.
mod manual_clock {
    use super::*;

    conformance::suite!(ManualHarness);
}

/// The store on the machine's clock, as services run it.
mod machine_clock {
    use super::*;

    conformance::suite!(MachineHarness);
}

#[derive(Debug)]
struct ManualHarness;

#[async_trait]
impl StoreHarness for ManualHarness {
    fn gaps(&self) -> &'static [Gap] {
        GAPS
    }

    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        let clock = ManualClock::new();
        Ok(Box::new(ManualRunning {
            store: store(&setup, Some(&clock)),
            setup,
            clock,
        }))
    }
}

struct ManualRunning {
    store: InMemoryStore,
    setup: Setup,
    clock: ManualClock,
}

#[async_trait]
impl RunningStore for ManualRunning {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        view(&self.store, prefix)
    }

    async fn pass(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    async fn restart_empty(&mut self) -> Result<(), Gap> {
        self.store = store(&self.setup, Some(&self.clock));
        Ok(())
    }

    async fn step_wall_clock_back(&self, by: Duration) -> Result<(), Gap> {
        let now = self.clock.unix_time();
        self.clock.set_unix_time(now.saturating_sub(by));
        Ok(())
    }
}

#[derive(Debug)]
struct MachineHarness;

#[async_trait]
impl StoreHarness for MachineHarness {
    fn gaps(&self) -> &'static [Gap] {
        &[Gap::ForeignValue, Gap::Outage, Gap::Clock]
    }

    async fn start(&self, setup: Setup) -> Result<Box<dyn RunningStore>, Gap> {
        Ok(Box::new(MachineRunning {
            store: store(&setup, None),
            setup,
        }))
    }
}

struct MachineRunning {
    store: InMemoryStore,
    setup: Setup,
}

#[async_trait]
impl RunningStore for MachineRunning {
    async fn client(&self, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
        view(&self.store, prefix)
    }

    async fn restart_empty(&mut self) -> Result<(), Gap> {
        self.store = store(&self.setup, None);
        Ok(())
    }
}

fn store(setup: &Setup, clock: Option<&ManualClock>) -> InMemoryStore {
    let mut builder = InMemoryStore::builder();
    if let Some(clock) = clock {
        builder = builder.clock(Arc::new(clock.clone()));
    }
    if let Some(time_to_live) = setup.default_time_to_live {
        builder = builder.default_time_to_live(time_to_live);
    }
    if let Some(budgets) = setup.budgets {
        builder = builder
            .max_capacity_bytes(budgets.evictable_bytes)
            .max_protected_bytes(budgets.protected_bytes);
    }
    builder.build()
}

/// Clients in one process share the store: each is a view.
fn view(store: &InMemoryStore, prefix: Option<&KeyPrefix>) -> Arc<dyn CacheStore> {
    Arc::new(match prefix {
        None => store.clone(),
        Some(prefix) => store.with_prefix(prefix.clone()),
    })
}
