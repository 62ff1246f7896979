//! The idempotency layers of other libraries on the handler that the product is measured on:
//! `bench-peers axum-idempotent|idempotent --port PORT`; and other clients of the Redis on a port:
//! `bench-peers redis --port PORT`.

#[path = "../../src/http/app.rs"]
mod app;
#[path = "../../src/redis/measure.rs"]
mod measure;
mod redis_clients;

use std::error::Error;
use std::sync::Arc;

use axum::Router;
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use idempotent::memory::MemoryStore;
use idempotent::middleware::IdempotencyLayer;
use ruts::store::moka::MokaStore;
use ruts::{CookieOptions, SessionLayer};
use tower_cookies::CookieManagerLayer;

/// As long as our own records live.
const SECONDS_PER_DAY: i64 = 24 * 60 * 60;

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [peer, option, port] = arguments.as_slice() else {
        return Err("usage: bench-peers axum-idempotent|idempotent|redis --port PORT".into());
    };
    if option != "--port" {
        return Err(format!("unknown option {option}").into());
    }
    let port = port.parse()?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let router = match peer.as_str() {
            "axum-idempotent" => axum_idempotent(),
            "idempotent" => idempotent()?,
            "redis" => return redis_clients::run(port).await,
            other => return Err(format!("unknown peer {other}").into()),
        };
        Ok(app::serve(router, port).await?)
    })
}

/// In its quickest mode: the header's value is the key, nothing is hashed.
fn axum_idempotent() -> Router {
    let options = IdempotentOptions::new(SECONDS_PER_DAY).use_idempotency_key_header(None, false);
    let store = MokaStore::builder().max_capacity(u64::MAX).build();
    let cookie = CookieOptions::build()
        .name("session")
        .max_age(SECONDS_PER_DAY as u64)
        .path("/");
    app::router()
        .layer(IdempotentLayer::<MokaStore>::new(options))
        .layer(SessionLayer::new(Arc::new(store)).with_cookie_options(cookie))
        .layer(CookieManagerLayer::new())
}

/// With its defaults.
fn idempotent() -> Result<Router, Box<dyn Error + Send + Sync>> {
    let store = MemoryStore::builder().try_build()?;
    Ok(app::router().layer(IdempotencyLayer::new(store)))
}
