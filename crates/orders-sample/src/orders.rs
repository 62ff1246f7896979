//! The orders and where they are kept: in this process, which stands for the service's database.
//!
//! They are not in the store: a database commits an order with its transaction, or not at all,
//! whereas a write to a remote store whose answer is lost may have happened. A handler that gives
//! such an error up with `?` is run again by a retry.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An order that was placed.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Order {
    /// A version 7 UUID: later orders have larger ids.
    pub id: String,
    /// What was ordered.
    pub name: String,
    /// How many of it.
    pub amount: u32,
}

/// The orders of every tenant; clones share them.
#[derive(Clone, Debug, Default)]
pub struct OrderBook(Arc<RwLock<HashMap<Tenant, Vec<Order>>>>);

/// A tenant's name; none for callers without one.
type Tenant = Option<String>;

impl OrderBook {
    /// Places an order.
    pub fn place(&self, tenant: Option<&str>, name: String, amount: u32) -> Order {
        let order = Order {
            id: Uuid::now_v7().to_string(),
            name,
            amount,
        };
        let mut book = self.0.write();
        book.entry(tenant.map(str::to_owned))
            .or_default()
            .push(order.clone());
        order
    }

    /// The tenant's orders, oldest first.
    pub fn list(&self, tenant: Option<&str>) -> Vec<Order> {
        self.0
            .read()
            .get(&tenant.map(str::to_owned))
            .cloned()
            .unwrap_or_default()
    }

    /// One of the tenant's orders.
    pub fn find(&self, tenant: Option<&str>, id: &str) -> Option<Order> {
        let book = self.0.read();
        book.get(&tenant.map(str::to_owned))?
            .iter()
            .find(|order| order.id == id)
            .cloned()
    }

    /// How many orders the tenant has.
    pub fn count(&self, tenant: Option<&str>) -> usize {
        self.0
            .read()
            .get(&tenant.map(str::to_owned))
            .map_or(0, Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_sees_its_own_orders_only() {
        let book = OrderBook::default();
        let order = book.place(Some("acme"), "Keyboard".into(), 2);
        assert_eq!(book.list(Some("acme")), std::slice::from_ref(&order));
        assert_eq!(book.find(Some("acme"), &order.id), Some(order.clone()));
        assert_eq!(book.find(Some("globex"), &order.id), None);
        assert_eq!(book.list(None), []);
    }

    #[test]
    fn an_id_is_a_uuid_of_version_7() {
        let order = OrderBook::default().place(None, "Keyboard".into(), 1);
        assert_eq!(Uuid::parse_str(&order.id).unwrap().get_version_num(), 7);
    }
}
