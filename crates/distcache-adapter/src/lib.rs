//! The distributed-cache contract on any store of XiHan Caching.
