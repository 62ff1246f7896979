use std::fmt;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use caching_abstractions::{CacheEntryOptions, CacheKey, CacheStore, CachingError, Result};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Builder;
use tokio::sync::OnceCell;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::BlockingStore;

/// The blocking face of a store behind a network: a connection of its own, on a thread of its own
/// (D3).
///
/// - The thread and its connection are opened by the first operation. A connection that cannot be
///   opened fails that operation, and the next one tries again.
/// - The calling thread waits on a plain channel, so it may be any thread: also the only one of a
///   current-thread runtime, whose tasks then stand still meanwhile.
/// - An operation takes no longer than the store's own time limit.
/// - The thread ends with the last clone.
#[derive(Clone)]
pub struct ThreadStore(Arc<Shared>);

struct Shared {
    open: Open,
    jobs: Mutex<Option<UnboundedSender<Job>>>,
}

type Store = Arc<dyn CacheStore>;
type Open = Arc<dyn Fn() -> BoxFuture<'static, Result<Store>> + Send + Sync>;
/// Does one operation on the store, or on the reason why there is none, and answers the caller.
type Job = Box<dyn FnOnce(Result<Store>) -> BoxFuture<'static, ()> + Send>;

impl ThreadStore {
    /// The blocking face of the store that `open` opens; it is called on the thread's own runtime.
    pub fn new<F, Fut>(open: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Store>> + Send + 'static,
    {
        Self(Arc::new(Shared {
            open: Arc::new(move || Box::pin(open())),
            jobs: Mutex::new(None),
        }))
    }

    fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(Store) -> BoxFuture<'static, Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = mpsc::sync_channel(1);
        let job: Job = Box::new(move |store| {
            Box::pin(async move {
                let result = match store {
                    Ok(store) => operation(store).await,
                    Err(error) => Err(error),
                };
                // The caller waits for it; if its thread is gone, nobody does.
                let _ = answer.send(result);
            })
        });
        self.jobs()?.send(job).map_err(|_| ended())?;
        answered.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// The way to the thread, which is started if it is not there.
    fn jobs(&self) -> Result<UnboundedSender<Job>> {
        let mut jobs = self.0.jobs.lock();
        if let Some(jobs) = jobs.as_ref().filter(|jobs| !jobs.is_closed()) {
            return Ok(jobs.clone());
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "each caller waits for its answer, so there are no more jobs than threads"
        )]
        let (sender, receiver) = unbounded_channel();
        let open = Arc::clone(&self.0.open);
        let no_thread = |error: std::io::Error| {
            CachingError::internal("the thread of the blocking face does not start")
                .with_source(error)
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(no_thread)?;
        std::thread::Builder::new()
            .name("xihan-blocking".to_owned())
            .spawn(move || runtime.block_on(serve(receiver, open)))
            .map_err(no_thread)?;
        *jobs = Some(sender.clone());
        Ok(sender)
    }
}

/// Does each job on a task of its own, so that a slow one holds up no other.
async fn serve(mut jobs: UnboundedReceiver<Job>, open: Open) {
    let store: Arc<OnceCell<Store>> = Arc::new(OnceCell::new());
    while let Some(job) = jobs.recv().await {
        let (store, open) = (Arc::clone(&store), Arc::clone(&open));
        tokio::spawn(async move {
            let store = store.get_or_try_init(|| open()).await.cloned();
            job(store).await;
        });
    }
}

fn ended() -> CachingError {
    CachingError::unavailable("the connection of the blocking face has ended")
}

impl BlockingStore for ThreadStore {
    fn get(&self, key: &CacheKey) -> Result<Option<Bytes>> {
        let key = key.clone();
        self.run(move |store| Box::pin(async move { store.get(&key).await }))
    }

    fn set(&self, key: &CacheKey, value: Bytes, options: CacheEntryOptions) -> Result<()> {
        let key = key.clone();
        self.run(move |store| Box::pin(async move { store.set(&key, value, options).await }))
    }

    fn remove(&self, key: &CacheKey) -> Result<bool> {
        let key = key.clone();
        self.run(move |store| Box::pin(async move { store.remove(&key).await }))
    }
}

impl fmt::Debug for ThreadStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThreadStore")
    }
}
