//! The cases, by what they prove. Each takes the harness, starts its own store and panics where
//! the store breaks the rule that the case is named after.

#![allow(missing_docs, reason = "the name of a case says what it proves")]

pub mod conditional;
// The cases of the lease lock (spec part 5) stand in `lock`.
