//! What the service does: each operation once, for every transport.

use std::time::Duration;

use idempotency_pipeline::{Failure, Operation};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use xihan_caching::prelude::*;

use crate::orders::{Order, OrderBook};

/// Every operation of the service.
#[derive(Clone, Debug)]
pub struct Operations {
    /// `orders.create`
    pub create_order: Operation<CreateOrder, Order>,
    /// `orders.list`
    pub list_orders: Operation<ListOrders, OrderList>,
    /// `orders.get`
    pub get_order: Operation<GetOrder, Order>,
    /// `reports.daily`
    pub daily_report: Operation<DailyReport, Report>,
}

/// How long things take that a real service would really do.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// What a payment inside `orders.create` takes.
    pub order_delay: Duration,
    /// What a report takes.
    pub report: Duration,
}

/// The request of `orders.create`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CreateOrder {
    /// 1 to 100 characters.
    pub name: String,
    /// 1 to 1000.
    pub amount: u32,
}

/// The request of `orders.list`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ListOrders {}

/// The response of `orders.list`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct OrderList {
    /// Oldest first.
    pub orders: Vec<Order>,
}

/// The request of `orders.get`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GetOrder {
    /// The order's id.
    pub id: String,
}

/// The request of `reports.daily`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct DailyReport {}

/// The response of `reports.daily`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Which report it is.
    pub report: String,
    /// How many orders the caller's tenant has.
    pub orders: usize,
}

impl Operations {
    /// The operations on these orders and locks.
    pub fn new(orders: &OrderBook, locks: &DistributedLock, timing: Timing) -> Self {
        Self {
            create_order: create_order(orders.clone(), timing.order_delay),
            list_orders: list_orders(orders.clone()),
            get_order: get_order(orders.clone()),
            daily_report: daily_report(orders.clone(), locks.clone(), timing.report),
        }
    }
}

fn create_order(orders: OrderBook, delay: Duration) -> Operation<CreateOrder, Order> {
    Operation::new("orders.create")
        .handler(move |context, request: CreateOrder| {
            let orders = orders.clone();
            async move {
                if !delay.is_zero() {
                    sleep(delay).await;
                }
                if request.name == "Unobtainium" {
                    return Err(Failure::new("ORDERS_CONFLICT_001")
                        .with_message_key("orders.out_of_stock")
                        .with_parameter("name", request.name)
                        .into());
                }
                let CreateOrder { name, amount } = request;
                Ok(orders.place(context.tenant(), name, amount))
            }
        })
        .validate(|request| {
            let refuse = |rule| Err(Failure::new("ORDERS_VALIDATION_001").with_message_key(rule));
            if !(1..=100).contains(&request.name.chars().count()) {
                return refuse("orders.name.length");
            }
            if !(1..=1000).contains(&request.amount) {
                return refuse("orders.amount.range");
            }
            Ok(())
        })
        .created(|order| format!("/orders/{}", order.id))
}

fn list_orders(orders: OrderBook) -> Operation<ListOrders, OrderList> {
    Operation::new("orders.list")
        .handler(move |context, _: ListOrders| {
            let orders = orders.list(context.tenant());
            async move { Ok(OrderList { orders }) }
        })
        .query()
}

fn get_order(orders: OrderBook) -> Operation<GetOrder, Order> {
    Operation::new("orders.get")
        .handler(move |context, request: GetOrder| {
            let order = orders.find(context.tenant(), &request.id);
            async move {
                order.ok_or_else(|| {
                    Failure::new("ORDERS_NOTFOUND_001")
                        .with_message_key("orders.not_found")
                        .with_parameter("id", request.id)
                        .into()
                })
            }
        })
        .query()
}

/// How long the report's lease lasts if this process dies; while it lives the lease is renewed.
const REPORT_LEASE: Duration = seconds(10);

fn daily_report(
    orders: OrderBook,
    locks: DistributedLock,
    length: Duration,
) -> Operation<DailyReport, Report> {
    Operation::new("reports.daily").handler(move |context, _: DailyReport| {
        let (orders, locks) = (orders.clone(), locks.clone());
        async move {
            // Held by another call or instance: CACHING_CONFLICT_001, which `?` passes on as 409.
            let lock = locks.acquire("report:daily", REPORT_LEASE).await?;
            lock.keep_alive();
            tokio::select! {
                () = sleep(length) => {}
                // Somebody else may hold it by now: stop before two reports run.
                () = lock.lost() => return Err(CachingError::unavailable("the lease was lost").into()),
            }
            let orders = orders.count(context.tenant());
            let report = Report { report: "daily".to_owned(), orders };
            if !lock.release().await.unwrap_or(false) {
                tracing::warn!("the report's lease was over before the report");
            }
            Ok(report)
        }
    })
}
