//! The facade of XiHan Caching: one builder, one configuration, any provider.
