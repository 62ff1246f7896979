use std::cmp::Reverse;

use super::Language;
use super::tag::is_well_formed;

/// The language of `available` that suits `accept_language` best (X2).
///
/// `accept_language` is the value of the header, if there is one; it need not be UTF-8. The first
/// language of `available` is the default, `en` if there is none.
///
/// - The highest quality wins; among equals the one that stands first in the header, then the one
///   that is closest to what was asked for, then the one that stands first in `available`.
/// - A range suits a language of the same name: `zh`, `zh-Hans`, `zh-SG` and `zh-Hans-CN` suit
///   `zh-CN`, and `en-US` suits `en`. Another script does not suit: `zh-TW` and `zh-Hant` are not
///   `zh-CN`. Only a range without script and region suits any script, and its usual one better.
/// - `*` is any language that no other range of the header suits.
/// - Quality 0 excludes a language unless a closer range asks for it.
/// - Ranges that are malformed are skipped. If nothing is left, or nothing suits, the default is
///   the answer: an error in the wrong language is better than none.
///
/// Allocates nothing.
///
/// ```
/// use idempotency_pipeline::language::{Language, negotiate};
///
/// let available = [Language::ENGLISH, Language::SIMPLIFIED_CHINESE];
/// let language = negotiate(Some(b"fr, zh;q=0.5"), &available);
/// assert_eq!(language, Language::SIMPLIFIED_CHINESE);
/// assert_eq!(negotiate(None, &available), Language::ENGLISH);
/// ```
pub fn negotiate(accept_language: Option<&[u8]>, available: &[Language]) -> Language {
    let default = available.first().cloned().unwrap_or_default();
    let Some(header) = accept_language.filter(|header| !header.is_empty()) else {
        return default;
    };
    let mut best: Option<(Suitability, &Language)> = None;
    for language in available {
        if let Some(suitability) = suitability(header, language)
            && best
                .as_ref()
                .is_none_or(|(so_far, _)| suitability > *so_far)
        {
            best = Some((suitability, language));
        }
    }
    best.map_or(default, |(_, language)| language.clone())
}

/// How well a range suits a language; the order of the fields is their weight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Suitability {
    /// In thousandths.
    quality: u16,
    position: Reverse<usize>,
    closeness: Closeness,
}

/// How close a range is to a language that it suits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closeness {
    /// `*`.
    Any,
    /// The language alone, for which another script is usual: `zh` and `zh-TW`.
    OtherScript,
    /// The language alone: `zh` and `zh-CN`.
    Name,
    /// More than the language, but not the same: `zh-Hans` and `zh-CN`.
    Near,
    /// The same tag.
    Exact,
}

/// None if `header` does not ask for `language`, or excludes it.
fn suitability(header: &[u8], language: &Language) -> Option<Suitability> {
    let candidates = || candidates(header, language);
    let named = || candidates().filter(|candidate| candidate.closeness != Closeness::Any);
    let refused = named()
        .filter(|candidate| candidate.quality == 0)
        .map(|candidate| candidate.closeness)
        .max();
    let chosen = if named().next().is_some() {
        named()
            .filter(|candidate| Some(candidate.closeness) > refused)
            .max()
    } else {
        candidates().next()
    };
    chosen.filter(|candidate| candidate.quality > 0)
}

/// The ranges of `header` that suit `language`.
fn candidates(header: &[u8], language: &Language) -> impl Iterator<Item = Suitability> {
    let parts = header.split(|byte| *byte == b',').enumerate();
    parts.filter_map(move |(position, part)| {
        let (range, quality) = read(part)?;
        Some(Suitability {
            quality,
            position: Reverse(position),
            closeness: closeness(range, language.as_str().as_bytes())?,
        })
    })
}

/// Range and quality of one part of the header, or none if the part is malformed.
fn read(part: &[u8]) -> Option<(&[u8], u16)> {
    let mut pieces = part.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let range = pieces.next()?;
    let quality = pieces.next().map_or(Some(1000), quality)?;
    let well_formed = (range == b"*" || is_well_formed(range)) && pieces.next().is_none();
    well_formed.then_some((range, quality))
}

/// `q=0.85` in thousandths.
fn quality(parameter: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', b'=', whole @ (b'0' | b'1'), rest @ ..] = parameter else {
        return None;
    };
    let decimals = match rest {
        [] => rest,
        [b'.', decimals @ ..] if decimals.len() <= 3 => decimals,
        _ => return None,
    };
    let mut quality = u16::from(whole - b'0');
    for place in 0..3 {
        let digit = decimals.get(place).copied().unwrap_or(b'0');
        quality = quality * 10 + digit.is_ascii_digit().then(|| u16::from(digit - b'0'))?;
    }
    (quality <= 1000).then_some(quality)
}

/// None if `range` does not suit `language`.
fn closeness(range: &[u8], language: &[u8]) -> Option<Closeness> {
    if range == b"*" {
        return Some(Closeness::Any);
    }
    if range.eq_ignore_ascii_case(language) {
        return Some(Closeness::Exact);
    }
    let (name, rest) = split_name(range);
    if !name.eq_ignore_ascii_case(split_name(language).0) {
        return None;
    }
    let same_script = match (script(range), script(language)) {
        (Some(asked), Some(given)) => asked.eq_ignore_ascii_case(given),
        _ => true,
    };
    match (rest.is_empty(), same_script) {
        (true, true) => Some(Closeness::Name),
        (true, false) => Some(Closeness::OtherScript),
        (false, true) => Some(Closeness::Near),
        (false, false) => None,
    }
}

/// The script a tag names or, for Chinese, implies.
fn script(tag: &[u8]) -> Option<&[u8]> {
    let subtags = || tag.split(|byte| *byte == b'-').skip(1);
    let named = subtags()
        .take_while(|subtag| subtag.len() > 1)
        .find(|subtag| subtag.len() == 4 && subtag.iter().all(u8::is_ascii_alphabetic));
    if named.is_some() || !split_name(tag).0.eq_ignore_ascii_case(b"zh") {
        return named;
    }
    let traditional = subtags().any(|subtag| {
        [&b"TW"[..], b"HK", b"MO"]
            .iter()
            .any(|region| subtag.eq_ignore_ascii_case(region))
    });
    Some(if traditional { b"Hant" } else { b"Hans" })
}

fn split_name(tag: &[u8]) -> (&[u8], &[u8]) {
    let end = tag.iter().position(|byte| *byte == b'-');
    tag.split_at(end.unwrap_or(tag.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(header: &[u8], available: &[&str]) -> String {
        let available: Vec<_> = available
            .iter()
            .map(|tag| Language::new(tag).unwrap())
            .collect();
        negotiate(Some(header), &available).to_string()
    }

    #[test]
    fn x2_what_suits_the_languages_that_ship() {
        for (header, expected) in [
            ("zh", "zh-CN"),
            ("zh-CN", "zh-CN"),
            ("zh-cn", "zh-CN"),
            ("zh-Hans", "zh-CN"),
            ("zh-Hans-CN", "zh-CN"),
            ("zh-SG", "zh-CN"),
            ("fr, zh;q=0.5", "zh-CN"),
            ("zh-CN,zh;q=0.9,en;q=0.8", "zh-CN"),
            ("en-US,en;q=0.9,zh-CN;q=0.8", "en"),
            ("en;q=0.5, zh;q=0.8", "zh-CN"),
            ("zh;q=0.5, en;q=0.8", "en"),
            ("zh , en", "zh-CN"),
            ("\tzh\t;\tq=1.000", "zh-CN"),
            ("zh;Q=0.001", "zh-CN"),
            ("en", "en"),
            ("en-GB, zh;q=0.9", "en"),
            ("zh-TW, en;q=0.1", "en"),
            ("zh-Hant", "en"),
            ("fr", "en"),
            ("*", "en"),
            ("fr, *;q=0.5", "en"),
            ("en;q=0.1, *", "zh-CN"),
            ("zh;q=0.5, *;q=0.8", "en"),
        ] {
            assert_eq!(
                chosen(header.as_bytes(), &["en", "zh-CN"]),
                expected,
                "{header}"
            );
        }
    }

    #[test]
    fn x2_quality_zero_excludes_unless_a_closer_range_asks() {
        for (header, expected) in [
            ("zh;q=0", "en"),
            ("zh;q=0, *", "en"),
            ("en;q=0, *", "zh-CN"),
            ("en;q=0, zh;q=0.1", "zh-CN"),
            ("zh;q=0, zh-CN", "zh-CN"),
            ("zh-CN;q=0, zh", "en"),
            ("zh, zh-Hans;q=0, zh-CN;q=0.5, en;q=0.1", "zh-CN"),
            ("zh-Hans;q=0.000, zh", "en"),
            ("*;q=0, zh", "zh-CN"),
            ("*;q=0", "en"),
            ("en;q=0", "en"),
        ] {
            assert_eq!(
                chosen(header.as_bytes(), &["en", "zh-CN"]),
                expected,
                "{header}"
            );
        }
    }

    #[test]
    fn x2_malformed_ranges_are_skipped() {
        for header in [
            &b""[..],
            b",,,",
            b"zh_CN",
            b"zh--CN",
            b"zh-",
            b"-zh",
            b"z",
            b"zh CN",
            b"zh;q=2",
            b"zh;q=1.001",
            b"zh;q=0.0001",
            b"zh;q=",
            b"zh;q=.5",
            b"zh;q=0.x",
            b"zh;q",
            b"zh;level=1",
            b"zh;q=1;q=1",
            b"zh-\xff",
            b"\xe4\xb8\xad",
            b"*-CN",
        ] {
            assert_eq!(chosen(header, &["en", "zh-CN"]), "en", "{header:?}");
        }
        assert_eq!(chosen(b"@@, \xff;q=1, zh", &["en", "zh-CN"]), "zh-CN");
    }

    #[test]
    fn x2_added_languages_and_another_default() {
        let all = ["de", "zh-TW", "zh-CN", "en", "pt-BR", "sr-Latn"];
        for (header, expected) in [
            ("zh", "zh-CN"),
            ("zh-HK", "zh-TW"),
            ("zh-Hant-MO", "zh-TW"),
            ("pt", "pt-BR"),
            ("pt-PT", "pt-BR"),
            ("sr", "sr-Latn"),
            ("sr-Cyrl", "de"),
            ("fr", "de"),
        ] {
            assert_eq!(chosen(header.as_bytes(), &all), expected, "{header}");
        }
        assert_eq!(chosen(b"zh", &["en", "zh-TW"]), "zh-TW");
        assert_eq!(negotiate(Some(b"zh"), &[]), Language::ENGLISH);
    }
}
