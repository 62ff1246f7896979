//! Assembly: from a configuration to a service that is ready to serve.

use std::error::Error;

use idempotency_pipeline::{Catalogues, Pipeline};
use xihan_caching::AssemblyProblem;
use xihan_caching::prelude::*;

use crate::arguments::Settings;
use crate::authentication::ApiKeys;
use crate::operations::Operations;
use crate::orders::OrderBook;

/// The texts of the service's own errors.
const ENGLISH: &str = include_str!("catalogues/en.toml");
const CHINESE: &str = include_str!("catalogues/zh-CN.toml");

/// A service that is ready to serve.
#[derive(Clone, Debug)]
pub struct Service {
    /// Store, locks and caches.
    pub caching: Caching,
    /// The stages every call passes.
    pub pipeline: Pipeline,
    /// What the service does.
    pub operations: Operations,
}

impl Service {
    /// Assembles the service; `problems` are those found in the service's own settings.
    ///
    /// # Errors
    /// Everything that is wrong with the configuration, at once.
    pub async fn assemble(
        configuration: Configuration,
        settings: &Settings,
        problems: Vec<AssemblyProblem>,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let caching = Caching::builder()
            .provider(InMemoryProvider::new())
            .provider(RedisProvider::new())
            .provider(RemoteProvider::new())
            .feature("daily-report", [CachingCapabilities::DISTRIBUTED])
            .configuration(configuration)
            .problems(problems)
            .build()
            .await?;
        let catalogues = Catalogues::built_in()
            .with("en", ENGLISH)?
            .with("zh-CN", CHINESE)?;
        let pipeline = Pipeline::builder()
            .authenticate(ApiKeys::development())
            .catalogues(catalogues)
            .build(&caching);
        let orders = OrderBook::default();
        let operations = Operations::new(&orders, caching.locks(), settings.timing);
        Ok(Self {
            caching,
            pipeline,
            operations,
        })
    }
}
