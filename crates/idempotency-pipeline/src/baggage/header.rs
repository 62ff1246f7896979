use caching_abstractions::{CacheKey, CachingError, Result};

use super::grammar;

/// Reads the `Idempotency-Key` header (H1); `lines` are the values of all its lines.
///
/// - A structured-field string: `"order-1"`, in which `\"` and `\\` stand for `"` and `\`.
/// - Or a bare token, as many clients send it: printable ASCII without white space, `"`, `,`, `;`
///   and `\`, such as a UUID. Percent signs have no meaning.
/// - No line: none.
///
/// ```
/// use idempotency_pipeline::baggage::idempotency_key_header;
///
/// let quoted = idempotency_key_header([&br#""order-1""#[..]])?;
/// let bare = idempotency_key_header([&b"order-1"[..]])?;
/// assert_eq!(quoted, bare);
/// # Ok::<(), caching_abstractions::CachingError>(())
/// ```
///
/// # Errors
/// `CACHING_VALIDATION_001`, saying which rule is broken: there are several lines, even if they
/// are equal; the value is empty or malformed, or has parameters; it breaks K1.
pub fn idempotency_key_header<'a>(
    lines: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Option<CacheKey>> {
    let mut lines = lines.into_iter();
    let Some(line) = lines.next() else {
        return Ok(None);
    };
    if lines.next().is_some() {
        return Err(refused("stands there more than once"));
    }
    let key = match grammar::trim(line) {
        [] => return Err(refused("is empty")),
        [b'"', rest @ ..] => key(&unquote(rest)?),
        bare if bare.iter().copied().all(grammar::is_octet) => key(&String::from_utf8_lossy(bare)),
        _ => Err(refused(
            "is neither one string in double quotes nor one bare token",
        )),
    };
    key.map(Some)
}

/// The text of a structured-field string from what follows its opening quote.
fn unquote(rest: &[u8]) -> Result<String> {
    let mut text = String::with_capacity(rest.len());
    let mut bytes = rest.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' if bytes.len() == 0 => return Ok(text),
            b'"' => return Err(refused("has something after its closing quote")),
            b'\\' => match bytes.next() {
                Some(escaped @ (b'"' | b'\\')) => text.push(char::from(escaped)),
                _ => return Err(refused("escapes something else than `\"` and `\\`")),
            },
            b' '..=b'~' => text.push(char::from(byte)),
            _ => return Err(refused("has a byte that is not printable ASCII")),
        }
    }
    Err(refused("has no closing quote"))
}

fn key(text: &str) -> Result<CacheKey> {
    CacheKey::new(text).map_err(|error| {
        let reason = error
            .parameter("reason")
            .unwrap_or("it breaks the grammar of keys");
        refused(&format!("holds no key: {reason}"))
    })
}

fn refused(fault: &str) -> CachingError {
    CachingError::invalid_key(format!("the header `Idempotency-Key` {fault}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&[u8]]) -> Result<Option<String>> {
        idempotency_key_header(lines.iter().copied())
            .map(|key| key.map(|key| key.as_str().to_owned()))
    }

    #[test]
    fn h1_strings_and_bare_tokens_are_keys() {
        for (header, key) in [
            (r#""order-1""#, "order-1"),
            (r#"  "a\"b\\c"	"#, r#"a"b\c"#),
            (r#""a,b;c""#, "a,b;c"),
            (
                "8e03978e-40d5-43dd-bc93-6894a57f9324",
                "8e03978e-40d5-43dd-bc93-6894a57f9324",
            ),
            (" a%20+b/c:d= ", "a%20+b/c:d="),
        ] {
            let read = read(&[header.as_bytes()]).unwrap();
            assert_eq!(read.as_deref(), Some(key), "{header}");
        }
        assert_eq!(read(&[]).unwrap(), None);
    }

    #[test]
    fn h1_anything_else_is_refused_and_never_absent() {
        for header in [
            &b""[..],
            b" ",
            b"\"\"",
            b"\"a",
            b"\"a\\",
            b"\"a\\n\"",
            b"\"a b\"",
            b"\"a\"; p=1",
            b"\"a\", \"b\"",
            b"a b",
            b"a,b",
            b"a;b",
            b"a\"",
            b"a\xff",
            b"\"a\xff\"",
            b"\"a\x07\"",
        ] {
            let error = read(&[header]).unwrap_err();
            assert_eq!(error.code().as_str(), "CACHING_VALIDATION_001");
            assert!(error.detail().contains("`Idempotency-Key`"), "{error}");
        }
        assert!(read(&[&[b'k'; 512]]).is_ok());
        assert!(read(&[&[b'k'; 513]]).is_err());
    }

    #[test]
    fn h1_several_lines_are_refused_even_if_equal() {
        assert!(read(&[b"a", b"a"]).is_err());
    }
}
