//! The one list of cases, and how it runs.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::harness::StoreHarness;

/// Makes one test of every case, for the harness it is given.
///
/// The argument is an expression that gives the harness; it is evaluated once for each case. The
/// tests stand in one module per group, so a file that proves two harnesses puts each `suite!`
/// into a module of its own.
///
/// ```
/// # use conformance::ReferenceHarness;
/// conformance::suite!(ReferenceHarness::default());
/// ```
#[macro_export]
macro_rules! suite {
    ($harness:expr) => {
        $crate::__cases! { __tests $harness }
    };
}

/// The list: every case, by the module that holds it.
#[doc(hidden)]
#[macro_export]
macro_rules! __cases {
    ($then:ident $($argument:tt)*) => {
        $crate::$then! { [$($argument)*]
            conditional {
                try_add_writes_an_absent_key,
                try_add_leaves_a_present_key_alone,
            }
            // Part 5: the lease lock on the store, in src/cases/lock.
            lock {
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __tests {
    ([$harness:expr] $($group:ident { $($case:ident),* $(,)? })*) => {
        $(
            mod $group {
                #[allow(unused_imports, reason = "the harness stands where `suite!` does")]
                use super::*;
                $(
                    #[test]
                    fn $case() {
                        $crate::run(&$harness, |harness| {
                            ::std::boxed::Box::pin($crate::cases::$group::$case(harness))
                        });
                    }
                )*
            }
        )*
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __list {
    ([] $($group:ident { $($case:ident),* $(,)? })*) => {
        /// Every case of the suite, in the order of the list.
        pub static CASES: &[$crate::Case] = &[$($(
            $crate::Case {
                group: ::std::stringify!($group),
                name: ::std::stringify!($case),
                body: |harness| ::std::boxed::Box::pin($crate::cases::$group::$case(harness)),
            },
        )*)*];
    };
}

crate::__cases! { __list }

/// What a case does.
pub type CaseBody = for<'a> fn(&'a dyn StoreHarness) -> BoxFuture<'a, ()>;

/// One case of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The module it stands in.
    pub group: &'static str,
    /// Its name, which says the rule.
    pub name: &'static str,
    /// What it does; it panics where the store breaks the rule.
    pub body: CaseBody,
}

/// No case takes longer, however slow the store: what does, hangs.
const CASE_LIMIT: Duration = Duration::from_secs(120);

/// Runs `body` on `harness`, on a runtime of its own with several threads.
///
/// # Panics
/// If the store breaks the rule, or the case hangs.
pub fn run(harness: &dyn StoreHarness, body: CaseBody) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("the operating system gives threads");
    runtime.block_on(async {
        let finished = tokio::time::timeout(CASE_LIMIT, body(harness)).await;
        assert!(finished.is_ok(), "the case did not end in {CASE_LIMIT:?}");
    });
    // What a case leaves behind must not keep the test run waiting.
    runtime.shutdown_background();
}
