//! The cases, by what they prove. Each takes the harness, starts its own store and panics where
//! the store breaks the rule that the case is named after.
#![allow(missing_docs, reason = "the name of a case says what it proves")]

pub mod cancelling;
pub mod conditional;
pub mod counters;
pub mod expiration;
pub mod expired;
pub mod fencing;
pub mod foreign;
pub mod keys;
pub mod leases;
pub mod lock;
pub mod models;
pub mod outages;
pub mod prefixes;
pub mod racing;
pub mod room;
pub mod sliding;
pub mod values;
pub mod watching;
