//! Benchmarks of XiHan Caching, as ratios to a raw baseline in the same run.
