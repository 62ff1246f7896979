//! Operations as they go onto the wire, encoded from borrowed parts straight into a frame.

use bytes::{BufMut, BytesMut};
use caching_abstractions::{CacheEntryOptions, CacheItem, CacheKey, LeaseToken, TimeToLive};
use prost::encoding::{encode_varint, encoded_len_varint};

use crate::proto;
use crate::wire;

/// Which operation. The order is that of the contract's `Call` and `Reply`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    GetMany,
    Set,
    SetMany,
    TryAdd,
    GetOrAdd,
    TryReplace,
    TryRemove,
    TryExtend,
    TryLease,
    TryRelay,
    Release,
    Remove,
    RemoveMany,
    Increment,
    TimeToLive,
    Ping,
}

impl Kind {
    /// The number of its field in `Call` and `Reply`.
    fn field(self) -> u32 {
        self as u32 + 3
    }

    /// Its name in errors.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::GetMany => "get_many",
            Self::Set => "set",
            Self::SetMany => "set_many",
            Self::TryAdd => "try_add",
            Self::GetOrAdd => "get_or_add",
            Self::TryReplace => "try_replace",
            Self::TryRemove => "try_remove",
            Self::TryExtend => "try_extend",
            Self::TryLease => "try_lease",
            Self::TryRelay => "try_relay",
            Self::Release => "release",
            Self::Remove => "remove",
            Self::RemoveMany => "remove_many",
            Self::Increment => "increment",
            Self::TimeToLive => "time_to_live",
            Self::Ping => "ping",
        }
    }

    /// The path of the unary call.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Get => "/xihan.caching.v1.Store/Get",
            Self::GetMany => "/xihan.caching.v1.Store/GetMany",
            Self::Set => "/xihan.caching.v1.Store/Set",
            Self::SetMany => "/xihan.caching.v1.Store/SetMany",
            Self::TryAdd => "/xihan.caching.v1.Store/TryAdd",
            Self::GetOrAdd => "/xihan.caching.v1.Store/GetOrAdd",
            Self::TryReplace => "/xihan.caching.v1.Store/TryReplace",
            Self::TryRemove => "/xihan.caching.v1.Store/TryRemove",
            Self::TryExtend => "/xihan.caching.v1.Store/TryExtend",
            Self::TryLease => "/xihan.caching.v1.Store/TryLease",
            Self::TryRelay => "/xihan.caching.v1.Store/TryRelay",
            Self::Release => "/xihan.caching.v1.Store/Release",
            Self::Remove => "/xihan.caching.v1.Store/Remove",
            Self::RemoveMany => "/xihan.caching.v1.Store/RemoveMany",
            Self::Increment => "/xihan.caching.v1.Store/Increment",
            Self::TimeToLive => "/xihan.caching.v1.Store/TimeToLive",
            Self::Ping => "/xihan.caching.v1.Store/Ping",
        }
    }

    /// Whether the provider sends it again by itself when its answer was lost: it changes nothing,
    /// or the same when it is executed twice (S4).
    pub(crate) fn is_repeatable(self) -> bool {
        matches!(
            self,
            Self::Get | Self::GetMany | Self::TryLease | Self::TimeToLive | Self::Ping
        )
    }
}

/// One operation. Its fields have the numbers 1, 2, 3 and 4, as all requests of the contract.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) kind: Kind,
    fields: [Field<'a>; 4],
}

#[derive(Clone, Copy)]
enum Field<'a> {
    Nothing,
    Bytes(&'a [u8]),
    Number(u64),
    Expiration(proto::Expiration),
    Keys(&'a [CacheKey]),
    Items(&'a [CacheItem]),
}

impl<'a> Request<'a> {
    fn new<const N: usize>(kind: Kind, fields: [Field<'a>; N]) -> Self {
        let mut all = [Field::Nothing; 4];
        for (place, field) in all.iter_mut().zip(fields) {
            *place = field;
        }
        Self { kind, fields: all }
    }

    /// An operation on nothing but a key.
    pub(crate) fn on(kind: Kind, key: &'a CacheKey) -> Self {
        Self::new(kind, [Field::key(key)])
    }

    /// Without any field.
    pub(crate) fn ping() -> Self {
        Self::new(Kind::Ping, [])
    }

    /// An operation on several keys.
    pub(crate) fn on_many(kind: Kind, keys: &'a [CacheKey]) -> Self {
        Self::new(kind, [Field::Keys(keys)])
    }

    pub(crate) fn set_many(items: &'a [CacheItem]) -> Self {
        Self::new(Kind::SetMany, [Field::Items(items)])
    }

    /// `set`, `try_add` and `get_or_add`.
    pub(crate) fn write(
        kind: Kind,
        key: &'a CacheKey,
        value: &'a [u8],
        options: CacheEntryOptions,
    ) -> Self {
        let fields = [
            Field::key(key),
            Field::Bytes(value),
            Field::options(options),
        ];
        Self::new(kind, fields)
    }

    pub(crate) fn try_replace(
        key: &'a CacheKey,
        expected: &'a [u8],
        value: &'a [u8],
        options: CacheEntryOptions,
    ) -> Self {
        let fields = [
            Field::key(key),
            Field::Bytes(expected),
            Field::Bytes(value),
            Field::options(options),
        ];
        Self::new(Kind::TryReplace, fields)
    }

    pub(crate) fn try_remove(key: &'a CacheKey, expected: &'a [u8]) -> Self {
        let fields = [Field::key(key), Field::Bytes(expected)];
        Self::new(Kind::TryRemove, fields)
    }

    pub(crate) fn try_extend(key: &'a CacheKey, expected: &'a [u8], life: TimeToLive) -> Self {
        let fields = [
            Field::key(key),
            Field::Bytes(expected),
            Field::Number(life.as_millis()),
        ];
        Self::new(Kind::TryExtend, fields)
    }

    pub(crate) fn try_lease(key: &'a CacheKey, token: &'a LeaseToken, life: TimeToLive) -> Self {
        let fields = [
            Field::key(key),
            Field::Bytes(token.as_bytes()),
            Field::Number(life.as_millis()),
        ];
        Self::new(Kind::TryLease, fields)
    }

    pub(crate) fn try_relay(
        key: &'a CacheKey,
        token: &'a LeaseToken,
        new_token: &'a LeaseToken,
        life: TimeToLive,
    ) -> Self {
        let fields = [
            Field::key(key),
            Field::Bytes(token.as_bytes()),
            Field::Bytes(new_token.as_bytes()),
            Field::Number(life.as_millis()),
        ];
        Self::new(Kind::TryRelay, fields)
    }

    pub(crate) fn release(key: &'a CacheKey, token: &'a LeaseToken) -> Self {
        let fields = [Field::key(key), Field::Bytes(token.as_bytes())];
        Self::new(Kind::Release, fields)
    }

    pub(crate) fn increment(key: &'a CacheKey, delta: i64, options: CacheEntryOptions) -> Self {
        let fields = [
            Field::key(key),
            Field::Number(zigzag(delta)),
            Field::options(options),
        ];
        Self::new(Kind::Increment, fields)
    }

    /// The length of the request alone.
    pub(crate) fn len(&self) -> usize {
        self.fields.iter().map(Field::len).sum()
    }

    /// Appends the request alone, as a unary call sends it.
    pub(crate) fn encode(&self, into: &mut BytesMut) {
        for (number, field) in (1..).zip(&self.fields) {
            field.encode(number, into);
        }
    }

    /// The lengths of the session's messages about this request.
    pub(crate) fn measure(&self, id: u64, timeout_milliseconds: u32) -> Measured {
        let request = self.len();
        let call = field_len(id)
            + field_len(u64::from(timeout_milliseconds))
            + key_len(self.kind.field())
            + encoded_len_varint(request as u64)
            + request;
        Measured {
            request,
            call,
            whole: 1 + encoded_len_varint(call as u64) + call,
        }
    }

    /// Appends the request as one call of a `SessionRequest`.
    pub(crate) fn encode_call(
        &self,
        id: u64,
        timeout_milliseconds: u32,
        measured: Measured,
        into: &mut BytesMut,
    ) {
        put_bytes_head(1, measured.call, into);
        put_number(1, id, into);
        put_number(2, u64::from(timeout_milliseconds), into);
        put_bytes_head(self.kind.field(), measured.request, into);
        self.encode(into);
    }
}

/// Lengths that are needed twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    request: usize,
    call: usize,
    /// What the call adds to a frame.
    pub(crate) whole: usize,
}

const LENGTH_DELIMITED: u32 = 2;

impl<'a> Field<'a> {
    fn key(key: &'a CacheKey) -> Self {
        Self::Bytes(key.as_str().as_bytes())
    }

    fn options(options: CacheEntryOptions) -> Self {
        wire::expiration(options).map_or(Self::Nothing, Self::Expiration)
    }

    fn len(&self) -> usize {
        match *self {
            Self::Nothing => 0,
            Self::Bytes([]) => 0,
            Self::Bytes(bytes) => delimited_len(bytes.len()),
            Self::Number(number) => field_len(number),
            Self::Expiration(expiration) => delimited_len(prost::Message::encoded_len(&expiration)),
            Self::Keys(keys) => keys.iter().map(key_in_batch_len).sum(),
            Self::Items(items) => items.iter().map(item_len).sum(),
        }
    }

    fn encode(&self, number: u32, into: &mut BytesMut) {
        match *self {
            Self::Nothing => {}
            Self::Bytes(bytes) => put_bytes(number, bytes, into),
            Self::Number(value) => put_number(number, value, into),
            Self::Expiration(expiration) => {
                put_bytes_head(number, prost::Message::encoded_len(&expiration), into);
                prost::Message::encode_raw(&expiration, into);
            }
            Self::Keys(keys) => {
                for key in keys {
                    put_bytes(number, key.as_str().as_bytes(), into);
                }
            }
            Self::Items(items) => {
                for item in items {
                    let set = Request::of_item(item);
                    put_bytes_head(number, set.len(), into);
                    set.encode(into);
                }
            }
        }
    }
}

impl<'a> Request<'a> {
    fn of_item(item: &'a CacheItem) -> Self {
        Self::write(Kind::Set, &item.key, &item.value, item.options)
    }
}

/// What a key adds to a batch.
pub(crate) fn key_in_batch_len(key: &CacheKey) -> usize {
    delimited_len(key.as_str().len())
}

/// What an item adds to a batch.
pub(crate) fn item_len(item: &CacheItem) -> usize {
    delimited_len(Request::of_item(item).len())
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn key_len(field: u32) -> usize {
    encoded_len_varint(u64::from(field << 3))
}

/// The length of a number's field with a one-byte key; zero is left out.
fn field_len(number: u64) -> usize {
    if number == 0 {
        return 0;
    }
    1 + encoded_len_varint(number)
}

fn delimited_len(length: usize) -> usize {
    1 + encoded_len_varint(length as u64) + length
}

fn put_number(field: u32, number: u64, into: &mut BytesMut) {
    if number != 0 {
        encode_varint(u64::from(field << 3), into);
        encode_varint(number, into);
    }
}

fn put_bytes_head(field: u32, length: usize, into: &mut BytesMut) {
    encode_varint(u64::from(field << 3 | LENGTH_DELIMITED), into);
    encode_varint(length as u64, into);
}

fn put_bytes(field: u32, bytes: &[u8], into: &mut BytesMut) {
    if !bytes.is_empty() {
        put_bytes_head(field, bytes.len(), into);
        into.put_slice(bytes);
    }
}

#[cfg(test)]
mod tests;
