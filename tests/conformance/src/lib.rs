//! The conformance suite that every provider of XiHan Caching runs.
