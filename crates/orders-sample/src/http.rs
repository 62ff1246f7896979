//! The HTTP side: the operations' routes, health and metrics.

use axum::Router;
use axum::extract::Request;
use axum::response::IntoResponse;
use axum::routing::get;
use idempotency_pipeline::Failure;
use idempotency_pipeline::http::{OperationRouter, Problems};
use metrics_exporter_prometheus::PrometheusHandle;

use crate::service::Service;

/// Every route of the service.
pub fn router(service: &Service, metrics: PrometheusHandle) -> Router {
    let operations = &service.operations;
    let store = service.caching.store().clone();
    let problems = Problems::new(&service.pipeline);
    let (ready, refused) = (problems.clone(), problems.clone());
    OperationRouter::new(&service.pipeline)
        .post("/orders", &operations.create_order)
        .get("/orders", &operations.list_orders)
        .get("/orders/{id}", &operations.get_order)
        .post("/reports/daily", &operations.daily_report)
        .into_router()
        .route("/healthz", get(async || "ok"))
        .route(
            "/readyz",
            get(move |request: Request| {
                let (store, problems) = (store.clone(), ready.clone());
                async move {
                    match store.ping().await {
                        Ok(()) => "ready".into_response(),
                        Err(error) => problems.respond(&request, &error.into()),
                    }
                }
            }),
        )
        .route("/metrics", get(async move || metrics.render()))
        .method_not_allowed_fallback(async move |request: Request| {
            refused.respond(&request, &Failure::method_not_allowed())
        })
        .fallback(problems.not_found())
}
