//! The plain axum handler that everything over HTTP is measured against: JSON in, order out, 201.
//!
//! The peers are built from this very file, so that the only difference is their layer.

use axum::extract::Json;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::IntoResponse;
use axum::routing::{Router, post};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

#[derive(Deserialize)]
struct CreateOrder {
    name: String,
    amount: u32,
}

#[derive(Serialize)]
struct Order {
    id: String,
    name: String,
    amount: u32,
}

/// `POST /orders` without any layer.
pub(crate) fn router() -> Router {
    Router::new().route("/orders", post(create_order))
}

/// Serves `router` on the loopback `port` until the process is ended.
pub(crate) async fn serve(router: Router, port: u16) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, router).await
}

async fn create_order(Json(request): Json<CreateOrder>) -> impl IntoResponse {
    let order = Order {
        id: Uuid::now_v7().to_string(),
        name: request.name,
        amount: request.amount,
    };
    let location = format!("/orders/{}", order.id);
    (StatusCode::CREATED, [(LOCATION, location)], Json(order))
}
