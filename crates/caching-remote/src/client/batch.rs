//! Batches that may be longer than one message.

use bytes::Bytes;
use caching_abstractions::{CacheItem, CacheKey};

use crate::client::calls::Calls;
use crate::client::error::{Attempt, Fault};
use crate::client::reply;
use crate::client::request::{Kind, Request, item_len, key_in_batch_len};
use crate::client::stream::is_too_long;

/// So many parts of a batch go into one message.
const PARTS: usize = 1000;

/// The value of each key.
pub(crate) async fn get_many(calls: &Calls, keys: &[CacheKey]) -> Attempt<Vec<Option<Bytes>>> {
    let mut values = Vec::with_capacity(keys.len());
    // The values of a piece may be too much for one message, which only its answer shows.
    let mut pieces: Vec<&[CacheKey]> = split(keys, calls.room(), key_in_batch_len).collect();
    pieces.reverse();
    while let Some(some) = pieces.pop() {
        let answer = calls.call(&Request::on_many(Kind::GetMany, some)).await;
        match answer.and_then(|answer| reply::values(answer, some.len())) {
            Ok(found) => values.extend(found),
            Err(fault) if is_too_long(&fault) && some.len() > 1 => {
                let (first, second) = some.split_at(some.len() / 2);
                pieces.extend([second, first]);
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(values)
}

/// Writes every item, in their order.
pub(crate) async fn set_many(calls: &Calls, items: &[CacheItem]) -> Attempt<()> {
    let mut has_written = false;
    for some in split(items, calls.room(), item_len) {
        let answer = calls.call(&Request::set_many(some)).await;
        let written = answer.and_then(reply::done);
        written.map_err(|fault| told(fault, has_written))?;
        has_written = true;
    }
    Ok(())
}

/// Removes every key.
pub(crate) async fn remove_many(calls: &Calls, keys: &[CacheKey]) -> Attempt<Vec<bool>> {
    let mut removed = Vec::with_capacity(keys.len());
    for some in split(keys, calls.room(), key_in_batch_len) {
        let answer = calls.call(&Request::on_many(Kind::RemoveMany, some)).await;
        let flags = answer.and_then(|answer| reply::flags(answer, some.len()));
        removed.extend(flags.map_err(|fault| told(fault, !removed.is_empty()))?);
    }
    Ok(removed)
}

/// What a failed piece means for the whole batch.
fn told(fault: Fault, has_changed: bool) -> Fault {
    if has_changed {
        fault.after_other_parts()
    } else {
        fault
    }
}

/// Cuts a batch so that each piece fits into a message, if its first part alone does.
fn split<T>(parts: &[T], room: usize, length: fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    let mut rest = parts;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut left = room;
        let fits = |part: &&T| match left.checked_sub(length(part)) {
            Some(now) => {
                left = now;
                true
            }
            None => false,
        };
        let count = rest.iter().take(PARTS).take_while(fits).count().max(1);
        let (some, others) = rest.split_at(count);
        rest = others;
        Some(some)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(lengths: &[usize], room: usize) -> Vec<Vec<usize>> {
        split(lengths, room, |length| *length)
            .map(<[usize]>::to_vec)
            .collect()
    }

    #[test]
    fn each_piece_fits_and_nothing_is_lost() {
        assert_eq!(pieces(&[], 10), Vec::<Vec<usize>>::new());
        assert_eq!(
            pieces(&[4, 6, 1, 9, 2], 10),
            [vec![4, 6], vec![1, 9], vec![2]]
        );
        // It is refused when it is called, by its length.
        assert_eq!(pieces(&[1, 99, 1], 10), [vec![1], vec![99], vec![1]]);
        let many = vec![0; 2 * PARTS + 1];
        let counts: Vec<usize> = pieces(&many, 10).iter().map(Vec::len).collect();
        assert_eq!(counts, [PARTS, PARTS, 1]);
    }
}
