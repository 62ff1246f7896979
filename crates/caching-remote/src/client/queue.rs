//! Calls that wait for the next message of a session, already encoded.

use std::collections::VecDeque;

use bytes::{BufMut, Bytes, BytesMut};

/// The head of a gRPC message: whether it is compressed, and its length.
pub(crate) const HEAD: usize = 5;
/// A message takes no further call when it is this long; one call alone may be longer.
const FULL: usize = 64 * 1024;
/// So much of calls that nobody waits for any more may stay where it is.
const TOLERATED: usize = 1024 * 1024;

/// Messages in the making, the next one to be sent first.
#[derive(Default)]
pub(crate) struct Queue {
    messages: VecDeque<Message>,
    /// The bytes of all calls, and of those among them that were taken back.
    bytes: usize,
    dead: usize,
    /// How long a message of several calls gets.
    full: usize,
    spare: Message,
}

#[derive(Default)]
struct Message {
    /// Begins with room for the head.
    buffer: BytesMut,
    entries: Vec<Entry>,
}

/// One call of a message, and where it ends.
#[derive(Clone, Copy)]
struct Entry {
    id: u64,
    end: usize,
}

impl Queue {
    /// No message of several calls is longer than `longest`.
    pub(crate) fn new(longest: usize) -> Self {
        Self {
            full: FULL.min(longest),
            ..Self::default()
        }
    }

    /// Throws everything away.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.full);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// How many bytes wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the call `id` of `length` bytes.
    pub(crate) fn push(&mut self, id: u64, length: usize, encode: impl FnOnce(&mut BytesMut)) {
        let has_room = |message: &&mut Message| message.buffer.len() + length <= self.full;
        let message = match self.messages.back_mut().filter(has_room) {
            Some(message) => message,
            None => {
                let mut fresh = std::mem::take(&mut self.spare);
                fresh.buffer.reserve(HEAD + length);
                fresh.buffer.put_bytes(0, HEAD);
                self.messages.push_back(fresh);
                // It was pushed just now, so the deque is not empty.
                let last = self.messages.len() - 1;
                &mut self.messages[last]
            }
        };
        message.buffer.reserve(length);
        encode(&mut message.buffer);
        message.entries.push(Entry {
            id,
            end: message.buffer.len(),
        });
        self.bytes += length;
    }

    /// Takes note that a call of `length` bytes was taken back, and says whether it is time to
    /// [`forget`](Self::forget) such calls.
    pub(crate) fn bury(&mut self, length: usize) -> bool {
        self.dead += length;
        self.dead > TOLERATED && self.dead > self.bytes / 2
    }

    /// Throws away what was taken back.
    pub(crate) fn forget(&mut self, mut is_wanted: impl FnMut(u64) -> bool) {
        for message in &mut self.messages {
            message.keep(&mut is_wanted);
        }
        self.messages.retain(|message| !message.entries.is_empty());
        self.dead = 0;
        let length = |message: &Message| message.buffer.len() - HEAD;
        self.bytes = self.messages.iter().map(length).sum();
    }

    /// The next message, ready to be sent, without the calls that are not wanted any more.
    pub(crate) fn pop(&mut self, mut is_wanted: impl FnMut(u64) -> bool) -> Option<Bytes> {
        loop {
            let mut message = self.messages.pop_front()?;
            let before = message.buffer.len() - HEAD;
            self.bytes -= before;
            message.keep(&mut is_wanted);
            let length = message.buffer.len() - HEAD;
            self.dead = self.dead.saturating_sub(before - length);
            let sent = (length > 0).then(|| message.close(length));
            message.entries.clear();
            message.buffer.clear();
            if length > FULL {
                // Its memory goes with it.
                message.buffer = BytesMut::new();
            }
            self.spare = message;
            if sent.is_some() {
                return sent;
            }
        }
    }
}

impl Message {
    /// Drops the calls that are not wanted.
    fn keep(&mut self, mut is_wanted: impl FnMut(u64) -> bool) {
        let (mut begin, mut kept) = (HEAD, HEAD);
        let buffer = &mut self.buffer;
        self.entries.retain_mut(|entry| {
            let call = begin..entry.end;
            begin = entry.end;
            if !is_wanted(entry.id) {
                return false;
            }
            if call.start != kept {
                buffer.copy_within(call.clone(), kept);
            }
            kept += call.len();
            entry.end = kept;
            true
        });
        buffer.truncate(kept);
    }

    fn close(&mut self, length: usize) -> Bytes {
        let mut head = &mut self.buffer[1..HEAD];
        // A message is no longer than the setting allows, which fits.
        head.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
        self.buffer.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut Queue, id: u64, text: &[u8]) {
        queue.push(id, text.len(), |buffer| buffer.put_slice(text));
    }

    fn message(text: &[u8]) -> Bytes {
        let length = u32::try_from(text.len()).unwrap();
        let mut whole = vec![0];
        whole.put_u32(length);
        whole.extend_from_slice(text);
        whole.into()
    }

    #[test]
    fn what_waits_goes_into_one_message() {
        let mut queue = Queue::new(FULL);
        push(&mut queue, 1, b"one");
        push(&mut queue, 2, b"two");
        assert_eq!(queue.bytes(), 6);
        assert_eq!(queue.pop(|_| true), Some(message(b"onetwo")));
        assert_eq!(queue.pop(|_| true), None);
        push(&mut queue, 3, b"three");
        assert_eq!(queue.pop(|_| true), Some(message(b"three")));
        assert!(queue.is_empty() && queue.bytes() == 0);
    }

    #[test]
    fn s5_what_was_taken_back_is_not_sent() {
        let mut queue = Queue::new(FULL);
        for (id, text) in [(1, "a"), (2, "bb"), (3, "ccc"), (4, "dddd")] {
            push(&mut queue, id, text.as_bytes());
        }
        assert_eq!(queue.pop(|id| id == 2 || id == 4), Some(message(b"bbdddd")));
        push(&mut queue, 5, b"e");
        assert_eq!(queue.pop(|_| false), None);
        assert!(queue.is_empty() && queue.bytes() == 0);
    }

    #[test]
    fn a_long_call_goes_alone_and_a_full_message_is_followed_by_another() {
        let mut queue = Queue::new(FULL);
        let long = vec![7; 2 * FULL];
        push(&mut queue, 1, b"short");
        push(&mut queue, 2, &long);
        push(&mut queue, 3, b"after");
        assert_eq!(queue.pop(|_| true), Some(message(b"short")));
        assert_eq!(queue.pop(|_| true), Some(message(&long)));
        assert_eq!(queue.pop(|_| true), Some(message(b"after")));
    }

    #[test]
    fn s5_calls_that_were_taken_back_do_not_fill_the_memory() {
        let mut queue = Queue::new(FULL);
        let long = vec![7; FULL];
        let mut forgotten = 0;
        for id in 0..1000 {
            push(&mut queue, id, &long);
            if queue.bury(long.len()) {
                queue.forget(|_| false);
                forgotten += 1;
            }
        }
        assert!(forgotten > 0 && queue.bytes() <= TOLERATED + FULL);
    }
}
