//! Answers as a session brings them.
//!
//! A server puts many answers into one message, as many as *its* limit allows. Where that is more
//! than this side takes at once, the message is read answer by answer; only an answer that is too
//! long by itself is passed over, and told to whoever waits for it.

use bytes::{Buf, Bytes, BytesMut};
use prost::encoding::{WireType, decode_key, decode_varint};

use crate::client::error::Cause;
use crate::client::frames::{Frames, Unreadable};
use crate::client::reply::{self, Answer, Garbled};
use crate::client::stream::too_long;
use crate::wire;

/// Reads the messages of a session.
#[derive(Debug)]
pub(crate) struct Answers {
    frames: Frames,
    long: Option<LongMessage>,
}

/// A message that is read as it comes.
#[derive(Debug)]
struct LongMessage {
    /// What has come and is not read.
    buffer: BytesMut,
    /// How much of the message is not read.
    left: usize,
    /// How much of that is passed over.
    passed_over: usize,
}

impl Answers {
    /// For messages, or at least answers, of at most `longest` bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self {
            frames: Frames::new(longest),
            long: None,
        }
    }

    /// Reads the next piece, and appends the answers that are complete.
    ///
    /// # Errors
    /// What came is none of the contract's messages; nothing behind it can be read.
    pub(crate) fn push(
        &mut self,
        piece: Bytes,
        answers: &mut Vec<(u64, Answer)>,
    ) -> Result<(), Cause> {
        match &mut self.long {
            Some(long) => long.buffer.extend_from_slice(&piece),
            None => self.frames.push(piece),
        }
        let garbled = |Garbled| {
            let text = "what it answers is not of the contract xihan.caching.v1";
            Cause::new(text)
        };
        loop {
            if let Some(long) = &mut self.long {
                let is_read = long.read(self.frames.longest(), answers);
                if !is_read.map_err(garbled)? {
                    return Ok(());
                }
                let rest = std::mem::take(&mut long.buffer).freeze();
                self.long = None;
                self.frames.push(rest);
            }
            match self.frames.next() {
                Ok(Some(mut message)) => {
                    while let Some(answer) = reply::next(&mut message).map_err(garbled)? {
                        answers.push(answer);
                    }
                }
                Ok(None) => return Ok(()),
                Err(Unreadable::TooLong(length)) => {
                    self.long = Some(LongMessage {
                        buffer: self.frames.take_begun(),
                        left: length,
                        passed_over: 0,
                    });
                }
                Err(Unreadable::Compressed) => {
                    let text = "its answer is compressed, which was not asked for";
                    return Err(Cause::new(text));
                }
            }
        }
    }
}

impl LongMessage {
    /// Reads what has come; whether that is the whole message.
    fn read(&mut self, longest: usize, answers: &mut Vec<(u64, Answer)>) -> Result<bool, Garbled> {
        loop {
            let passed = self.passed_over.min(self.buffer.len());
            self.advance(passed)?;
            self.passed_over -= passed;
            if self.left == 0 {
                return Ok(true);
            }
            if self.passed_over > 0 {
                return Ok(false);
            }
            let Some(next) = self.next_reply()? else {
                return Ok(false);
            };
            if next.length > longest {
                let error = too_long("an answer", next.length, longest);
                answers.push((next.id, Answer::Failure(wire::error::to_failure(&error))));
                self.advance(next.begin)?;
                self.passed_over = next.length;
                continue;
            }
            let end = next.begin + next.length;
            if self.buffer.len() < end {
                self.buffer.reserve(end - self.buffer.len());
                return Ok(false);
            }
            self.left = self.left.checked_sub(end).ok_or(Garbled)?;
            let mut alone = self.buffer.split_to(end).freeze();
            answers.extend(reply::next(&mut alone)?);
        }
    }

    /// Where the next reply begins, if enough of it has come to tell.
    fn next_reply(&self) -> Result<Option<NextReply>, Garbled> {
        /// Two keys and two numbers, as long as they can be.
        const HEAD: usize = 2 * (5 + 10);
        let has_all = self.buffer.len() >= HEAD.min(self.left);
        if !has_all {
            return Ok(None);
        }
        let come = self.buffer.len().min(self.left);
        let mut rest = &self.buffer[..come];
        let (1, WireType::LengthDelimited) = decode_key(&mut rest)? else {
            return Err(Garbled);
        };
        let length = decode_varint(&mut rest)?;
        let begin = come - rest.len();
        let (1, WireType::Varint) = decode_key(&mut rest)? else {
            return Err(Garbled);
        };
        Ok(Some(NextReply {
            id: decode_varint(&mut rest)?,
            begin,
            length: usize::try_from(length).map_err(|_| Garbled)?,
        }))
    }

    fn advance(&mut self, count: usize) -> Result<(), Garbled> {
        self.left = self.left.checked_sub(count).ok_or(Garbled)?;
        self.buffer.advance(count);
        Ok(())
    }
}

/// A reply that has begun.
struct NextReply {
    id: u64,
    /// Where it begins behind its head.
    begin: usize,
    length: usize,
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::client::reply::value;
    use crate::proto;

    fn reply(id: u64, length: usize) -> proto::Reply {
        proto::Reply {
            id,
            result: Some(Answer::Get(proto::GetResponse {
                value: Some(vec![7; length].into()),
            })),
        }
    }

    fn stream(messages: &[&[proto::Reply]]) -> Vec<u8> {
        let mut stream = Vec::new();
        for replies in messages {
            let replies = replies.to_vec();
            let message = proto::SessionResponse { replies }.encode_to_vec();
            stream.push(0);
            stream.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
            stream.extend(message);
        }
        stream
    }

    /// The number of each call, and the length of its value where it was not too long.
    fn read(stream: &[u8], size: usize) -> Vec<(u64, Option<usize>)> {
        let (mut reader, mut answers) = (Answers::new(1000), Vec::new());
        for piece in stream.chunks(size) {
            let piece = Bytes::copy_from_slice(piece);
            reader.push(piece, &mut answers).unwrap();
        }
        let length = |answer| value(answer).ok().map(|value| value.unwrap().len());
        answers
            .into_iter()
            .map(|(id, answer)| (id, length(answer)))
            .collect()
    }

    #[test]
    fn only_an_answer_that_is_too_long_by_itself_is_passed_over() {
        let long: Vec<_> = (1..=5).map(|id| reply(id, 400)).collect();
        let mixed = [reply(6, 10), reply(7, 3000), reply(8, 900), reply(9, 0)];
        let alone = [reply(10, 5000)];
        let short = [reply(11, 1)];
        let stream = stream(&[&short, &long, &mixed, &alone, &short]);
        let mut expected = vec![(11, Some(1))];
        expected.extend((1..=5).map(|id| (id, Some(400))));
        expected.extend([(6, Some(10)), (7, None), (8, Some(900)), (9, Some(0))]);
        expected.extend([(10, None), (11, Some(1))]);
        for size in [1, 2, 3, 7, 64, 999, 5000, stream.len()] {
            assert_eq!(read(&stream, size), expected, "pieces of {size}");
        }
    }

    #[test]
    fn a_long_message_of_something_else_is_an_error() {
        let mut stream = vec![0, 0, 0, 8, 0];
        stream.extend([0xff; 2048]);
        let (mut reader, mut answers) = (Answers::new(1000), Vec::new());
        assert!(reader.push(stream.into(), &mut answers).is_err());
        assert!(answers.is_empty());
    }
}
