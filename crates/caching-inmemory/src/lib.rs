//! The in-memory provider of XiHan Caching.
