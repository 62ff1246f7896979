//! The orders and where they are kept: in the store, so that every instance sees them. A real
//! service keeps them in its database.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use xihan_caching::prelude::*;

/// How long an order is kept: every entry of the store expires.
const KEPT: std::time::Duration = days(30);

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
#[derive(Clone, Debug)]
pub struct OrderBook(Arc<dyn CacheStore>);

impl OrderBook {
    /// The orders in this store.
    pub fn new(store: Arc<dyn CacheStore>) -> Self {
        Self(store)
    }

    /// Places an order.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn place(
        &self,
        tenant: Option<&str>,
        name: String,
        amount: u32,
    ) -> Result<Order, CachingError> {
        let order = Order {
            id: Uuid::now_v7().to_string(),
            name,
            amount,
        };
        let document = serde_json::to_vec(&order)
            .map_err(|error| CachingError::internal("an order has no JSON").with_source(error))?;
        let key = key(tenant, &order.id)?;
        let options = CacheEntryOptions::time_to_live(KEPT)?;
        // `try_add` and not `set`: an order must not be evicted.
        if !self.0.try_add(&key, document.into(), options).await? {
            return Err(CachingError::internal("the id of a new order is taken"));
        }
        Ok(order)
    }

    /// The tenant's orders, oldest first.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(&self, tenant: Option<&str>) -> Result<Vec<Order>, CachingError> {
        let keys = self.0.sorted_keys(&prefix(tenant)).await?;
        let documents = self.0.get_many(&keys).await?;
        documents
            .iter()
            .flatten()
            .map(|document| read(document))
            .collect()
    }

    /// One of the tenant's orders.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn find(
        &self,
        tenant: Option<&str>,
        id: &str,
    ) -> Result<Option<Order>, CachingError> {
        // What is no key is no order's id either.
        let Ok(key) = key(tenant, id) else {
            return Ok(None);
        };
        self.0
            .get(&key)
            .await?
            .map(|document| read(&document))
            .transpose()
    }
}

/// Keys begin with the tenant, escaped, so that no tenant reads another's orders; a UUID of version
/// 7 makes their order that of time.
fn prefix(tenant: Option<&str>) -> String {
    let mut prefix = String::from(if tenant.is_some() {
        "order:of:"
    } else {
        "order:all"
    });
    CacheKey::escape_segment(&mut prefix, tenant.unwrap_or_default());
    prefix.push(':');
    prefix
}

fn key(tenant: Option<&str>, id: &str) -> Result<CacheKey, CachingError> {
    let mut key = prefix(tenant);
    CacheKey::escape_segment(&mut key, id);
    CacheKey::new(key)
}

fn read(document: &[u8]) -> Result<Order, CachingError> {
    serde_json::from_slice(document)
        .map_err(|error| CachingError::internal("an order does not decode").with_source(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn book() -> OrderBook {
        let caching = Caching::builder()
            .provider(InMemoryProvider::new())
            .build()
            .await
            .unwrap();
        OrderBook::new(Arc::clone(caching.store()))
    }

    #[tokio::test]
    async fn a_tenant_sees_its_own_orders_only() {
        let book = book().await;
        let order = book
            .place(Some("acme"), "Keyboard".into(), 2)
            .await
            .unwrap();
        assert_eq!(
            book.list(Some("acme")).await.unwrap(),
            std::slice::from_ref(&order)
        );
        assert_eq!(
            book.find(Some("acme"), &order.id).await.unwrap(),
            Some(order.clone())
        );
        for other in [Some("globex"), Some("acm"), Some("acme:"), Some(""), None] {
            assert_eq!(
                book.find(other, &order.id).await.unwrap(),
                None,
                "{other:?}"
            );
            assert_eq!(book.list(other).await.unwrap(), [], "{other:?}");
        }
    }

    #[tokio::test]
    async fn orders_are_listed_oldest_first() {
        let book = book().await;
        let mut placed = Vec::new();
        for amount in 1..=20 {
            placed.push(book.place(None, "Keyboard".into(), amount).await.unwrap());
        }
        assert_eq!(book.list(None).await.unwrap(), placed);
    }

    #[tokio::test]
    async fn an_id_is_a_uuid_of_version_7() {
        let order = book()
            .await
            .place(None, "Keyboard".into(), 1)
            .await
            .unwrap();
        assert_eq!(Uuid::parse_str(&order.id).unwrap().get_version_num(), 7);
    }
}
