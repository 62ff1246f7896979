use super::*;
use std::future::pending;

use futures_util::future::BoxFuture;

use tokio::task::yield_now;

impl Order for BoxFuture<'static, Attempt<Reply>> {
    fn execute(self) -> impl Future<Output = Attempt<Reply>> + Send {
        self
    }
}

type Boxed = BoxFuture<'static, Attempt<Reply>>;

/// An outbox of a connection that stands until the last handle is used.
fn outbox() -> (Arc<Outbox<Boxed>>, Arc<Life>) {
    let life = Life::new(tokio::spawn(pending::<()>()).abort_handle());
    let outbox = Arc::new(Outbox::new(Arc::clone(&life)));
    tokio::spawn(Arc::clone(&outbox).run());
    (outbox, life)
}

type Log = Arc<Mutex<Vec<&'static str>>>;

/// A command that notes when the client gets it, and is answered soon.
fn command(log: Log) -> Boxed {
    Box::pin(async move {
        log.lock().push("handed over");
        yield_now().await;
        Ok(Reply::Nil)
    })
}

#[tokio::test]
async fn what_tasks_send_at_the_same_time_goes_to_the_client_at_once() {
    let (outbox, _life) = outbox();
    let log = Log::default();
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let (outbox, log) = (Arc::clone(&outbox), Arc::clone(&log));
            tokio::spawn(async move {
                log.lock().push("asked");
                outbox.begin(command(Arc::clone(&log))).together().await
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap(), Reply::Nil);
    }
    let (asked, handed_over) = (["asked"; 3], ["handed over"; 3]);
    assert_eq!(*log.lock(), [asked, handed_over].concat());
}

#[tokio::test]
async fn s5_what_is_dropped_before_it_was_handed_over_never_is() {
    let (outbox, _life) = outbox();
    let log = Log::default();
    let mut dropped = Box::pin(outbox.begin(command(Arc::clone(&log))).together());
    assert!(futures_util::poll!(&mut dropped).is_pending());
    drop(dropped);
    let after = outbox.begin(command(Arc::clone(&log))).together().await;
    assert_eq!(after.unwrap(), Reply::Nil);
    assert_eq!(*log.lock(), ["handed over"], "only the second one");
    assert!(
        outbox.begin(Box::pin(pending())).is_alone(),
        "the first one counts no longer"
    );
}

#[tokio::test]
async fn s4_what_waits_when_the_connection_ends_was_certainly_not_sent() {
    let (outbox, life) = outbox();
    let log = Log::default();
    let mut call = Box::pin(outbox.begin(command(Arc::clone(&log))).together());
    assert!(futures_util::poll!(&mut call).is_pending());
    life.end();
    assert!(matches!(call.await, Err(Fault::NotSent(_))));
    assert!(log.lock().is_empty());
}

#[tokio::test]
async fn s3_nobody_waits_for_a_client_that_lost_its_connection() {
    let (outbox, life) = outbox();
    // It breaks while the client is given the command, which therefore never answers.
    let breaks = |life: Arc<Life>| async move {
        life.end();
        pending().await
    };
    let call = outbox.begin(Box::pin(breaks(Arc::clone(&life)))).together();
    assert!(matches!(call.await, Err(Fault::Unknown(_))));
    let call = outbox.begin(Box::pin(pending())).at_once();
    assert!(matches!(call.await, Err(Fault::Unknown(_))));
}
