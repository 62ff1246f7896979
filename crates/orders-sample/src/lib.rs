//! A small real service that uses all of XiHan Caching the way a user would.
