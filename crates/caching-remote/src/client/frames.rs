//! Messages as they come in: gRPC frames in pieces of any size.

use bytes::{Buf, Bytes, BytesMut};

use crate::client::queue::HEAD;

/// Puts pieces together to messages.
#[derive(Debug)]
pub(crate) struct Frames {
    /// A piece that is read where it is …
    piece: Bytes,
    /// … or the beginning of a message that came in several.
    partial: BytesMut,
    longest: usize,
}

/// A message that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It has this many bytes, which is more than allowed.
    TooLong(usize),
    /// It is compressed, which was not asked for.
    Compressed,
}

impl Frames {
    /// For messages of at most `longest` bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self {
            piece: Bytes::new(),
            partial: BytesMut::new(),
            longest,
        }
    }

    /// How long a message may be.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Adds the next piece.
    pub(crate) fn push(&mut self, piece: Bytes) {
        if self.partial.is_empty() && self.piece.is_empty() {
            self.piece = piece;
            return;
        }
        self.partial
            .extend_from_slice(&std::mem::take(&mut self.piece));
        self.partial.extend_from_slice(&piece);
    }

    /// What has come of the message that is too long, and of what follows it.
    pub(crate) fn take_begun(&mut self) -> BytesMut {
        let mut begun = std::mem::take(&mut self.partial);
        begun.extend_from_slice(&std::mem::take(&mut self.piece));
        begun.advance(HEAD.min(begun.len()));
        begun
    }

    /// Whether everything that came in was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.partial.is_empty() && self.piece.is_empty()
    }

    /// The next whole message.
    ///
    /// # Errors
    /// It cannot be read; nor can anything behind it.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, Unreadable> {
        if self.partial.is_empty() {
            match self.length(&self.piece)? {
                Some(length) if self.piece.len() >= HEAD + length => {
                    self.piece.advance(HEAD);
                    return Ok(Some(self.piece.split_to(length)));
                }
                // The rest is put behind this, once for each byte.
                Some(length) => self.partial.reserve(HEAD + length),
                None if self.piece.is_empty() => return Ok(None),
                None => {}
            }
            self.partial
                .extend_from_slice(&std::mem::take(&mut self.piece));
            return Ok(None);
        }
        match self.length(&self.partial)? {
            Some(length) if self.partial.len() >= HEAD + length => {
                self.partial.advance(HEAD);
                Ok(Some(self.partial.split_to(length).freeze()))
            }
            Some(length) => {
                let missing = HEAD + length - self.partial.len();
                self.partial.reserve(missing);
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// The length of the message that begins here, if its head is complete.
    fn length(&self, bytes: &[u8]) -> Result<Option<usize>, Unreadable> {
        let Some((&[compressed, a, b, c, d], _)) = bytes.split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        if compressed != 0 {
            return Err(Unreadable::Compressed);
        }
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > self.longest {
            return Err(Unreadable::TooLong(length));
        }
        Ok(Some(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All messages of `stream`, which comes in pieces of `size` bytes.
    fn messages(stream: &[u8], size: usize) -> Vec<Bytes> {
        let mut frames = Frames::new(1000);
        let mut found = Vec::new();
        for piece in stream.chunks(size) {
            frames.push(Bytes::copy_from_slice(piece));
            while let Some(message) = frames.next().unwrap() {
                found.push(message);
            }
        }
        assert!(frames.is_empty());
        found
    }

    #[test]
    fn messages_are_the_same_whatever_pieces_they_come_in() {
        let parts: [&[u8]; 4] = [b"one", b"", &[9; 700], b"four"];
        let mut stream = Vec::new();
        for part in parts {
            let length = u32::try_from(part.len()).unwrap();
            stream.push(0);
            stream.extend_from_slice(&length.to_be_bytes());
            stream.extend_from_slice(part);
        }
        for size in 1..=stream.len() {
            assert_eq!(messages(&stream, size), parts, "pieces of {size}");
        }
    }

    #[test]
    fn a_message_that_is_too_long_or_compressed_is_refused_by_its_head() {
        let mut frames = Frames::new(1000);
        frames.push(Bytes::from_static(&[0, 0, 0, 4, 0]));
        assert_eq!(frames.next(), Err(Unreadable::TooLong(1024)));
        let mut frames = Frames::new(1000);
        frames.push(Bytes::from_static(&[1, 0, 0, 0, 1, 9]));
        assert_eq!(frames.next(), Err(Unreadable::Compressed));
    }
}
