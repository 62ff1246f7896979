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
            keys {
                k1_the_longest_key_is_kept_whole,
                k2_keys_are_compared_byte_for_byte,
                k1_every_character_of_the_grammar_is_only_itself,
                keys_lists_what_begins_with_the_prefix,
                keys_with_an_empty_prefix_lists_everything,
                keys_takes_glob_characters_literally,
                keys_takes_a_prefix_that_is_no_key,
                keys_lists_ten_thousand_keys_once_each,
                keys_lists_correctly_while_others_write,
                keys_lists_no_removed_key,
                keys_lists_leases_and_counters,
                keys_can_be_left_half_read,
            }
            prefixes {
                k4_a_prefix_is_invisible,
                k4_reads_see_no_entry_of_another_prefix,
                k4_writes_leave_another_prefix_alone,
                k4_comparisons_match_no_entry_of_another_prefix,
                k4_removals_leave_another_prefix_alone,
                k4_leases_of_two_prefixes_do_not_exclude_each_other,
                k4_a_release_under_another_prefix_wakes_nobody,
                k4_prefix_and_key_do_not_run_together,
                k4_glob_characters_in_a_prefix_are_literal,
                k4_without_a_prefix_the_whole_keyspace_is_owned,
            }
            expiration {
                e1_an_entry_without_an_expiration_takes_the_default,
                e1_the_default_can_be_configured,
                e1_a_created_entry_ends_with_its_time_to_live,
                e1_reads_do_not_prolong_a_time_to_live,
                e3_a_fraction_of_a_millisecond_is_one_and_not_for_ever,
                e3_a_life_below_a_second_is_kept_to_the_millisecond,
                e3_a_hundred_years_are_accepted_everywhere,
                e5_overwriting_shortens_a_life,
                e5_overwriting_prolongs_a_life,
                e5_overwriting_ends_sliding,
                e5_overwriting_begins_sliding,
                e5_overwriting_takes_the_new_sliding_period,
                e5_an_expiration_ends_with_a_removed_entry,
                e5_try_extend_ends_sliding,
                e5_an_old_expiration_does_not_end_a_new_entry,
            }
            sliding {
                e2_get_restarts_the_clock,
                e2_get_many_restarts_the_clock,
                e2_another_clients_read_restarts_the_clock,
                e2_an_unread_entry_ends_after_its_period,
                e2_whatever_writes_an_entry_can_make_it_sliding,
                e2_a_failed_try_add_is_no_read,
                e2_get_or_add_is_no_read,
                e2_a_failed_try_replace_extends_nothing,
                e2_a_failed_try_remove_extends_nothing,
                e2_a_failed_try_extend_extends_nothing,
                e2_a_failed_lease_extends_nothing,
                e2_increment_of_a_standing_number_is_no_read,
                e2_increment_leaves_an_entry_sliding,
                e2_keys_is_no_read,
                e2_time_to_live_is_no_read,
                e2_watch_is_no_read,
            }
            expired {
                e4_get_does_not_see_an_expired_entry,
                e4_get_many_does_not_see_an_expired_entry,
                e4_a_read_does_not_revive_an_expired_sliding_entry,
                e4_set_writes_over_an_expired_entry,
                e4_set_many_writes_over_an_expired_entry,
                e4_try_add_succeeds_on_an_expired_entry,
                e4_get_or_add_adds_over_an_expired_entry,
                e4_try_replace_fails_on_an_expired_entry,
                e4_try_remove_fails_on_an_expired_entry,
                e4_try_extend_fails_on_an_expired_entry,
                e4_try_lease_takes_an_expired_entry,
                e4_try_lease_counts_anew_for_its_own_expired_token,
                e4_try_relay_fails_on_an_expired_lease,
                e4_release_of_an_expired_lease_is_false,
                e4_remove_of_an_expired_entry_is_false,
                e4_remove_many_of_an_expired_entry_is_false,
                e4_increment_begins_anew_on_an_expired_entry,
                e4_time_to_live_of_an_expired_entry_is_none,
                e4_keys_does_not_list_an_expired_entry,
            }
            values {
                get_gives_none_for_an_absent_key,
                get_gives_what_was_set,
                get_tells_an_empty_value_from_none,
                every_byte_value_comes_back,
                a_value_of_one_mebibyte_comes_back,
                set_writes_whatever_was_there,
                another_client_sees_a_write_at_once,
                get_many_answers_in_the_order_asked,
                set_many_writes_each_item_with_its_own_options,
                set_many_lets_the_last_of_two_equal_keys_count,
                remove_says_whether_the_key_was_there,
                remove_leaves_other_keys_alone,
                remove_many_answers_in_the_order_asked,
                remove_many_answers_true_once_for_equal_keys,
                empty_batches_do_nothing,
                a_batch_of_a_thousand_keys_keeps_its_order,
                time_to_live_gives_none_for_an_absent_key,
                time_to_live_counts_down,
                time_to_live_of_a_sliding_entry_is_what_is_left,
                ping_succeeds_and_changes_nothing,
            }
            conditional {
                try_add_writes_an_absent_key,
                try_add_leaves_a_present_key_alone,
                try_add_takes_an_empty_value_for_a_present_one,
                try_add_writes_again_after_a_removal,
                get_or_add_writes_an_absent_key_and_gives_none,
                get_or_add_gives_what_stands_there_and_leaves_it,
                get_or_add_gives_an_empty_value_that_stands_there,
                try_replace_swaps_the_expected_value,
                try_replace_leaves_another_value_alone,
                try_replace_fails_on_an_absent_key,
                try_replace_takes_empty_values_on_both_sides,
                try_replace_compares_bytes_that_are_no_text,
                try_replace_with_the_same_value_takes_the_new_lifetime,
                try_remove_takes_the_expected_value_away,
                try_remove_leaves_another_value_alone,
                try_remove_tells_empty_from_absent,
                try_extend_prolongs_the_expected_value,
                try_extend_can_shorten_a_life,
                try_extend_leaves_another_value_alone,
                try_extend_never_brings_an_entry_back,
            }
            counters {
                increment_counts_an_absent_key_from_zero,
                increment_gives_the_sum_and_writes_it_as_text,
                increment_takes_numbers_that_others_wrote,
                increment_refuses_what_is_no_decimal_number,
                increment_refuses_bytes_that_are_no_text,
                increment_refuses_an_overflow_both_ways,
                increment_reaches_both_ends,
                increment_takes_options_only_when_it_creates,
                increment_keeps_the_life_of_an_entry_others_wrote,
                increment_is_seen_by_another_client,
                x3_the_error_of_increment_shows_no_stored_value,
            }
            leases {
                try_lease_takes_a_free_key,
                l3_the_value_of_a_lease_is_the_token_itself,
                try_lease_gives_none_to_another_token,
                try_lease_gives_the_same_number_to_the_same_token,
                try_lease_restarts_the_time_to_live_for_the_same_token,
                try_lease_gives_none_where_a_plain_value_stands,
                l3_a_foreign_token_excludes_and_is_excluded,
                l3_the_plain_primitives_work_on_a_lease,
                try_relay_hands_a_lease_on,
                try_relay_shuts_the_old_token_out,
                try_relay_gives_none_without_the_token,
                release_takes_the_lease_away_once,
                release_never_takes_anothers_lease,
                release_by_another_client_frees_the_key,
                a_lease_ends_with_its_time_to_live,
                a_lease_leaves_nothing_listed_behind,
            }
            watching {
                release_wakes_a_watcher,
                release_wakes_the_watcher_of_another_client,
                each_release_gives_a_hint,
                release_wakes_every_watcher,
                release_after_a_relay_wakes_a_watcher,
                a_hint_comes_when_the_key_is_free,
                a_dropped_watch_disturbs_nobody,
                watches_of_several_keys_stand_beside_each_other,
                a_watch_changes_nothing,
                a_watcher_that_does_not_listen_holds_nobody_up,
            }
            racing {
                s1_one_of_64_wins_try_add,
                s1_one_of_64_wins_get_or_add_and_all_others_see_its_value,
                s1_one_of_64_wins_try_replace,
                s1_one_of_64_wins_try_remove,
                s1_one_of_64_wins_remove,
                s1_one_of_64_wins_try_lease,
                s1_one_of_64_wins_try_relay,
                s1_one_of_64_wins_release,
                s1_try_extend_and_try_remove_exclude_each_other,
                s1_increments_of_64_tasks_add_up,
                s1_compare_and_swap_of_64_tasks_loses_no_step,
                s1_readers_never_see_half_a_write,
            }
            room {
                s2_a_full_store_refuses_and_forgets_nothing,
                s2_a_refused_write_changes_nothing,
                s2_removed_and_expired_entries_make_room,
                s2_a_store_full_of_entries_still_leases,
                s2_leases_are_refused_when_the_reserve_is_used_up,
                s2_no_number_of_sets_evicts_what_is_protected,
                s2_a_set_never_makes_a_protected_entry_evictable,
                s2_sets_evict_other_sets,
                s2_a_set_larger_than_its_room_leaves_the_old_value,
                s2_neither_room_takes_from_the_other,
            }
            outages {
                s3_an_unreachable_store_is_unavailable_for_every_operation,
                s3_a_client_comes_back_by_itself,
                s3_a_client_made_during_an_outage_works_after_it,
                s3_nothing_is_sent_late_after_an_outage,
                s3_a_watch_works_after_an_outage,
            }
            cancelling {
                s5_a_dropped_write_takes_place_wholly_or_not_at_all,
                s5_a_dropped_removal_takes_place_wholly_or_not_at_all,
                s5_a_dropped_lease_takes_place_wholly_or_not_at_all,
                s5_a_dropped_try_extend_takes_place_wholly_or_not_at_all,
                s5_a_dropped_batch_leaves_every_key_whole,
                s5_cancelled_increments_count_at_most_once,
                s5_a_client_works_on_after_dropped_calls,
            }
            fencing {
                s6_numbers_rise_after_a_release,
                s6_numbers_rise_after_expiry,
                s6_numbers_rise_with_each_relay,
                s6_numbers_rise_however_the_lease_went,
                s6_numbers_rise_for_every_client,
                s6_a_failed_lease_uses_no_number_up,
                s6_numbers_rise_after_the_store_lost_its_data,
                s6_numbers_rise_though_the_clock_steps_back,
            }
            foreign {
                s7_reads_of_another_kind_of_value_conflict,
                s7_comparisons_with_another_kind_of_value_conflict,
                s7_leases_on_another_kind_of_value_conflict,
                s7_increment_of_another_kind_of_value_conflicts,
                s7_another_kind_of_value_is_never_absent,
                s7_set_over_another_kind_of_value_is_clean,
            }
            models {
                s1_random_operations_are_answered_as_by_the_model,
                s1_concurrent_operations_are_linearizable,
            }
            // Part 5: the lease lock on the store, in src/cases/lock.
            lock {
                l1_a_free_lock_is_leased_under_its_key,
                l1_a_held_lock_gives_none_and_stays_as_it_is,
                l1_every_grant_has_a_token_of_its_own,
                l1_different_resources_do_not_exclude_each_other,
                l1_a_resource_that_is_no_key_is_refused,
                l1_one_of_64_wins,
                l2_a_held_lock_is_a_conflict_that_names_the_resource,
                l3_other_programs_exclude_and_are_excluded,
                l7_a_lock_is_not_reentrant,
                l7_after_its_time_anyone_may_acquire,
                l8_an_unreachable_store_is_never_not_acquired,
                l13_fencing_numbers_rise_from_holder_to_holder,
                l13_a_resource_that_keeps_the_largest_number_refuses_late_holders,
                l5_the_first_release_is_true_and_the_next_false,
                l5_of_releases_at_the_same_time_one_is_true,
                l5_release_of_an_expired_lease_is_false,
                l5_a_value_that_is_not_ours_is_left_alone,
                l6_dropping_the_handle_frees_the_lock,
                l6_dropping_the_handle_outside_a_runtime_frees_the_lock,
                l6_dropping_a_late_handle_takes_nothing_from_the_next_holder,
                l9_a_cancelled_acquire_leaves_no_lock,
                l9_a_cancelled_waiter_leaves_no_lock,
                l10_the_works_own_result_comes_back_and_the_lock_is_free,
                l10_the_work_runs_under_the_lock,
                l10_under_a_held_lock_the_work_does_not_run,
                l10_a_late_release_never_replaces_the_result,
                l10_a_panic_frees_the_lock,
                l10_a_cancellation_frees_the_lock,
                l11_a_waiter_gets_the_lock_after_a_release,
                l11_a_wait_that_is_too_short_times_out,
                l11_a_waiter_outlives_a_holder_that_vanished,
                l11_a_cancelled_waiter_blocks_nobody,
                l11_64_waiters_get_their_turns_one_at_a_time,
                l12_a_lock_is_kept_beyond_its_time,
                l12_without_it_a_lock_ends_with_its_time,
                l12_renewal_ends_with_the_handle,
                l12_a_deleted_key_is_a_loss,
                l12_an_overwritten_key_is_a_loss,
                l12_renewal_never_brings_a_lost_lock_back,
                l14_each_resource_is_locked_once,
                l14_one_that_is_held_means_none,
                l14_dropping_the_handle_frees_every_lock,
                l14_opposite_orders_do_not_deadlock,
                l14_the_loss_of_one_is_the_loss_of_all,
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
