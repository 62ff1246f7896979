//! The reference store passes the whole suite.

use conformance::ReferenceHarness;

conformance::suite!(ReferenceHarness::default());
