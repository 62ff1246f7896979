//! P15: handlers that make calls with keys of their own.

use futures_util::future::BoxFuture;

use crate::first_poll::{keep_busy, on_workers};
use crate::support::{Fixture, Gate, Order, operation};

/// Calls itself with another key, so often.
fn nested(fixture: Fixture, depth: usize) -> BoxFuture<'static, usize> {
    let call = async move {
        if depth == 0 {
            return 0;
        }
        let (runs, other) = (fixture.runs.clone(), fixture.clone());
        let calls = operation("orders.nested", &runs, move |_, _, request| {
            let inner = nested(other.clone(), depth - 1);
            async move {
                Ok(Order {
                    id: inner.await + 1,
                    name: request.name,
                })
            }
        });
        let key = format!("depth-{depth}");
        fixture.call(&calls, &key).await.unwrap().0.id
    };
    Box::pin(call)
}

#[test]
fn p15_calls_that_call_each_other_take_no_more_stack_than_one() {
    on_workers(1, async {
        let (fixture, gate) = (Fixture::new(), Gate::new());
        let busy = keep_busy(&fixture, &gate).await;
        let depth = tokio::spawn(nested(fixture.clone(), 500)).await.unwrap();
        assert_eq!((depth, fixture.runs.count()), (500, 500));
        gate.open();
        busy.await.unwrap();
    });
}
