use std::borrow::Cow;

/// A text with `{parameter}` placeholders; `{{` and `}}` stand for braces.
#[derive(Clone, Debug)]
pub(super) struct Template(Box<[Piece]>);

#[derive(Clone, Debug)]
enum Piece {
    Text(Box<str>),
    Placeholder(Box<str>),
}

impl Template {
    /// Reads `source`, or says which rule it breaks.
    pub(super) fn parse(source: &str) -> Result<Self, &'static str> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let (brace, after) = rest[at..].split_at(1);
            if let Some(after) = after.strip_prefix(brace) {
                text.push_str(brace);
                rest = after;
                continue;
            }
            let placeholder = after.split_once('}').filter(|_| brace == "{");
            let (name, after) =
                placeholder.ok_or("a lone brace; write `{{` or `}}` for a brace in the text")?;
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err("a placeholder is `{name}` of letters, digits and `_`");
            }
            if !text.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut text).into()));
            }
            pieces.push(Piece::Placeholder(name.into()));
            rest = after;
        }
        text.push_str(rest);
        if !text.is_empty() {
            pieces.push(Piece::Text(text.into()));
        }
        if pieces.is_empty() {
            return Err("the text is empty");
        }
        Ok(Self(pieces.into()))
    }

    /// The text with `parameters` in their places, each inserted as it is; none if a placeholder
    /// has no parameter. A text without placeholders is borrowed.
    pub(super) fn render(&self, parameters: &[(&str, &str)]) -> Option<Cow<'_, str>> {
        if let [Piece::Text(text)] = &*self.0 {
            return Some(Cow::Borrowed(text));
        }
        let parts = || self.0.iter().map(|piece| piece.resolve(parameters));
        let length = parts()
            .map(|part| part.map(str::len))
            .sum::<Option<usize>>()?;
        let mut rendered = String::with_capacity(length);
        rendered.extend(parts().flatten());
        Some(Cow::Owned(rendered))
    }

    /// The names of the placeholders, in order.
    #[cfg(test)]
    pub(super) fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Placeholder(name) => Some(&**name),
        })
    }
}

impl Piece {
    fn resolve<'a>(&'a self, parameters: &[(&str, &'a str)]) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Placeholder(name) => parameters
                .iter()
                .find(|(candidate, _)| *candidate == &**name)
                .map(|(_, value)| *value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rendered(source: &str, parameters: &[(&str, &str)]) -> Option<String> {
        let template = Template::parse(source).unwrap();
        template.render(parameters).map(Cow::into_owned)
    }

    #[test]
    fn x2_parameters_stand_where_their_names_stood() {
        let parameters = [("a", "{b}"), ("b", "2"), ("a", "later")];
        assert_eq!(rendered("plain", &[]).unwrap(), "plain");
        assert_eq!(rendered("{a}-{b}{a}", &parameters).unwrap(), "{b}-2{b}");
        assert_eq!(rendered("{{{b}}} {{b}}", &parameters).unwrap(), "{2} {b}");
        assert_eq!(rendered("键：{b}。", &parameters).unwrap(), "键：2。");
        assert_eq!(rendered("{missing}", &parameters), None);
    }

    #[test]
    fn x2_a_malformed_text_is_refused() {
        for source in [
            "", "{", "}", "a {b", "a } b", "{}", "{a b}", "{a{b}}", "{{}",
        ] {
            assert!(Template::parse(source).is_err(), "{source}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn x2_any_text_is_a_template_once_its_braces_are_doubled(source in "[a{}é ]{1,12}") {
            let doubled = source.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(rendered(&doubled, &[]), Some(source.clone()));
            let _ = Template::parse(&source);
        }
    }
}
