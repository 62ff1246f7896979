//! The grammar of W3C Baggage, on bytes.

use std::borrow::Cow;
use std::fmt;

/// Why our own member cannot be read; continues the sentence "the baggage member `…`".
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    NoEquals,
    NotEquals,
    NoValue,
    Octet(usize),
    Property,
    Triplet(usize),
    NotUtf8,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEquals => f.write_str("has no `=`"),
            Self::NotEquals => f.write_str("has something else than `=` after its name"),
            Self::NoValue => f.write_str("has no value"),
            Self::Octet(at) => write!(
                f,
                "has an octet that baggage does not allow; percent-encode byte {at} of its value"
            ),
            Self::Property => f.write_str("has a malformed property"),
            Self::Triplet(at) => {
                write!(f, "has a broken percent triplet at byte {at} of its value")
            }
            Self::NotUtf8 => f.write_str("is not UTF-8 once it is decoded"),
        }
    }
}

/// `bytes` without optional white space (spaces and tabs) at both ends.
pub(super) fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

/// What follows `name` in `member`, or none if the member has another name.
///
/// A name that is followed by what belongs to no name is `name` all the same: the member is ours
/// and malformed, not somebody else's.
pub(super) fn after_name<'a>(member: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let rest = member.strip_prefix(name.as_bytes())?;
    match rest.first() {
        Some(&byte) if is_token_byte(byte) => None,
        _ => Some(rest),
    }
}

/// The decoded value of our own member from what follows its name.
pub(super) fn our_value(rest: &[u8]) -> Result<Cow<'_, str>, Fault> {
    let (head, properties) = split_once(rest, b';');
    let value = match trim(head) {
        [] => return Err(Fault::NoEquals),
        [b'=', value @ ..] => trim(value),
        _ => return Err(Fault::NotEquals),
    };
    if value.is_empty() {
        return Err(Fault::NoValue);
    }
    // Looked at whole, many bytes at a time; where the fault is matters only if there is one.
    if !value.iter().fold(true, |all, byte| all & is_octet(*byte)) {
        let before = value.iter().take_while(|byte| is_octet(**byte)).count();
        return Err(Fault::Octet(before + 1));
    }
    if !properties.is_none_or(are_properties) {
        return Err(Fault::Property);
    }
    decode(value)
}

/// `member` as text if it is well formed, else none.
pub(super) fn foreign_member(member: &[u8]) -> Option<&str> {
    let (head, properties) = split_once(member, b';');
    let (key, value) = split_once(head, b'=');
    let well_formed = is_token(trim(key))
        && trim(value?).iter().copied().all(is_octet)
        && properties.is_none_or(are_properties);
    // Well-formed members are ASCII, so this keeps every one of them.
    std::str::from_utf8(member).ok().filter(|_| well_formed)
}

/// Appends `key` with `%XX` for every byte that baggage does not allow as it is.
///
/// `+` is encoded too: many decoders in the field take it for a space.
pub(super) fn encode(into: &mut String, key: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in key.bytes() {
        if is_octet(byte) && !matches!(byte, b'%' | b'+') {
            into.push(char::from(byte));
        } else {
            into.push('%');
            into.push(char::from(HEX[usize::from(byte >> 4)]));
            into.push(char::from(HEX[usize::from(byte & 0xF)]));
        }
    }
}

/// An octet of a value: printable ASCII without white space, `"`, `,`, `;` and `\`.
pub(super) const fn is_octet(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\')
}

fn decode(value: &[u8]) -> Result<Cow<'_, str>, Fault> {
    if !value.contains(&b'%') {
        let text = std::str::from_utf8(value).map_err(|_| Fault::NotUtf8)?;
        return Ok(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;
    loop {
        match rest {
            [] => break,
            [b'%', after @ ..] => {
                let triplet = after
                    .first_chunk()
                    .and_then(|[high, low]| Some((hex_digit(*high)? << 4) | hex_digit(*low)?));
                decoded.push(triplet.ok_or(Fault::Triplet(value.len() - after.len()))?);
                rest = &after[2..];
            }
            [byte, after @ ..] => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
    let text = String::from_utf8(decoded).map_err(|_| Fault::NotUtf8)?;
    Ok(Cow::Owned(text))
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

fn are_properties(properties: &[u8]) -> bool {
    properties.split(|byte| *byte == b';').all(|property| {
        let (key, value) = split_once(property, b'=');
        is_token(trim(key)) && value.is_none_or(|value| trim(value).iter().copied().all(is_octet))
    })
}

fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().copied().all(is_token_byte)
}

const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

fn split_once(bytes: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    match bytes.iter().position(|byte| *byte == separator) {
        Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
        None => (bytes, None),
    }
}
