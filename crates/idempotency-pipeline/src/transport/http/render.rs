use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use crate::context::InvocationContext;
use crate::outcome::{Outcome, SuccessStatus};
use crate::problem::{Catalogues, Problem};
use crate::rendering::{Renderer, Rendering};

/// Turns outcomes into HTTP answers.
///
/// The headers it makes are the ones that describe the answer: `content-type`, `location`,
/// `content-language` and `retry-after`. Nothing else is recorded, so nothing else can be replayed by mistake (P9).
pub(super) struct HttpRenderer {
    catalogues: Arc<Catalogues>,
}

/// The name that HTTP renderings are recorded under.
pub(super) const TRANSPORT: &str = "http";

impl HttpRenderer {
    pub(super) fn new(catalogues: Arc<Catalogues>) -> Self {
        Self { catalogues }
    }
}

impl Renderer for HttpRenderer {
    fn transport(&self) -> &'static str {
        TRANSPORT
    }

    fn render(&self, context: &InvocationContext, outcome: &Outcome) -> Rendering {
        let success = match outcome.result() {
            Ok(success) => success,
            Err(failure) => {
                let problem = Problem::of_failure(failure, &self.catalogues, context.language())
                    .with_instance(context.instance())
                    .with_trace_id(context.trace_id());
                return of_problem(&problem);
            }
        };
        let mut headers = Vec::with_capacity(2);
        headers.push((
            Cow::Borrowed("content-type"),
            Bytes::from_static(b"application/json"),
        ));
        if let Some(location) = &success.location {
            headers.push((Cow::Borrowed("location"), Bytes::from(location.clone())));
        }
        Rendering {
            transport: Cow::Borrowed(TRANSPORT),
            status: match success.status {
                SuccessStatus::Done => 200,
                SuccessStatus::Created => 201,
                SuccessStatus::Accepted => 202,
            },
            headers,
            body: success.response.clone().unwrap_or_default(),
        }
    }
}

/// A problem as an HTTP answer.
pub(super) fn of_problem(problem: &Problem<'_>) -> Rendering {
    let mut headers = vec![
        (
            Cow::Borrowed("content-type"),
            Bytes::from_static(Problem::CONTENT_TYPE.as_bytes()),
        ),
        (Cow::Borrowed("content-language"), language(problem)),
    ];
    if let Some(seconds) = problem.retry_after_seconds() {
        headers.push((
            Cow::Borrowed("retry-after"),
            Bytes::from(seconds.to_string()),
        ));
    }
    Rendering {
        transport: Cow::Borrowed(TRANSPORT),
        status: problem.status(),
        headers,
        body: problem.to_json().into(),
    }
}

fn language(problem: &Problem<'_>) -> Bytes {
    Bytes::copy_from_slice(problem.language().as_str().as_bytes())
}
