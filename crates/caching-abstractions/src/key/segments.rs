use std::fmt::Write;

/// Joins escaped segments with `:` (K3).
pub(super) fn join<I>(segments: I) -> String
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let mut text = String::new();
    for (position, segment) in segments.into_iter().enumerate() {
        if position > 0 {
            text.push(':');
        }
        escape(&mut text, segment.as_ref());
    }
    text
}

/// Appends `segment` to `into`, with `%XX` for whatever would be ambiguous or refused.
pub(super) fn escape(into: &mut String, segment: &str) {
    // Most segments are plain names, and go over in one piece.
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'%' | b':');
    if segment.bytes().all(is_plain) {
        into.push_str(segment);
        return;
    }
    for character in segment.chars() {
        let reserved = matches!(character, '%' | ':');
        if !reserved && !character.is_whitespace() && !character.is_control() {
            into.push(character);
            continue;
        }
        let mut buffer = [0; 4];
        for byte in character.encode_utf8(&mut buffer).bytes() {
            // Writing to a `String` cannot fail.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn k3_two_different_lists_never_give_the_same_key(
            left in proptest::collection::vec("[a:% é\u{a0}\n]{0,4}", 1..4),
            right in proptest::collection::vec("[a:% é\u{a0}\n]{0,4}", 1..4),
        ) {
            prop_assert_eq!(left == right, join(&left) == join(&right));
        }
    }
}
