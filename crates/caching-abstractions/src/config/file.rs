use std::fmt;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::entry::{Entry, Place, Value};
use crate::capability::AssemblyProblem;

/// The formats of a configuration file.
#[derive(Clone, Copy)]
pub(super) enum Format {
    Toml,
    Json,
}

/// Reads the file at `path`, in the format that its extension names.
pub(super) fn read(path: &Path) -> Result<Vec<Entry>, AssemblyProblem> {
    let name = path.display().to_string();
    let extension = path
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    let format = match extension.as_str() {
        "toml" => Format::Toml,
        "json" => Format::Json,
        _ => {
            return Err(AssemblyProblem::new(
                name,
                "its extension does not say what format it has",
                "name the configuration file *.toml or *.json",
            ));
        }
    };
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&name, &text, format),
        Err(error) => Err(AssemblyProblem::new(
            name,
            format!("the configuration file cannot be read: {error}"),
            "name a file that is there, that this process may read, and that is UTF-8 text",
        )),
    }
}

/// Every value in `text`, with its nested sections joined by `:`.
pub(super) fn parse(name: &str, text: &str, format: Format) -> Result<Vec<Entry>, AssemblyProblem> {
    // Some editors put a byte order mark in front.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = match format {
        Format::Toml => toml_root(name, text)?,
        Format::Json => json_root(name, text)?,
    };
    let mut entries = Vec::new();
    flatten(&Arc::from(name), String::new(), root, &mut entries);
    Ok(entries)
}

/// What both formats have in common.
enum Node {
    Leaf(Value),
    Table(Vec<(String, Option<usize>, Node)>),
    List(Vec<Node>),
    Nothing,
}

fn flatten(name: &Arc<str>, key: String, root: Node, entries: &mut Vec<Entry>) {
    // A stack of its own: the depth of a file is not limited by the thread's stack.
    let mut pending = vec![(key, None, root)];
    while let Some((key, line, node)) = pending.pop() {
        let below = |part: &str| match key.as_str() {
            "" => part.to_owned(),
            _ => format!("{key}:{part}"),
        };
        match node {
            Node::Nothing => {}
            Node::Leaf(value) => entries.push(Entry {
                key,
                value,
                place: Place::File {
                    name: Arc::clone(name),
                    line,
                },
            }),
            Node::Table(members) => pending.extend(
                members
                    .into_iter()
                    .rev()
                    .map(|(part, line, node)| (below(&part), line, node)),
            ),
            Node::List(items) => pending.extend(
                items
                    .into_iter()
                    .enumerate()
                    .rev()
                    .map(|(position, node)| (below(&position.to_string()), line, node)),
            ),
        }
    }
}

fn toml_root(name: &str, text: &str) -> Result<Node, AssemblyProblem> {
    let line_of = |offset: usize| 1 + text[..offset].bytes().filter(|b| *b == b'\n').count();
    match DeTable::parse(text) {
        Ok(table) => Ok(toml_table(table.into_inner(), &line_of)),
        // The error's own `Display` quotes the line, and the line may hold a secret (X3).
        Err(error) => Err(unparsable(
            name,
            error.span().map(|span| line_of(span.start)),
            error.message(),
            "TOML",
        )),
    }
}

fn toml_table(table: DeTable<'_>, line_of: &dyn Fn(usize) -> usize) -> Node {
    let member = |(key, value): (Spanned<DeString<'_>>, Spanned<DeValue<'_>>)| {
        let line = line_of(key.span().start);
        let key = key.into_inner().into_owned();
        (key, Some(line), toml_value(value.into_inner(), line_of))
    };
    Node::Table(table.into_iter().map(member).collect())
}

fn toml_value(value: DeValue<'_>, line_of: &dyn Fn(usize) -> usize) -> Node {
    Node::Leaf(match value {
        DeValue::Table(table) => return toml_table(table, line_of),
        DeValue::Array(items) => {
            return Node::List(
                items
                    .into_iter()
                    .map(|item| toml_value(item.into_inner(), line_of))
                    .collect(),
            );
        }
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Boolean(truth) => Value::Boolean(truth),
        DeValue::Datetime(datetime) => Value::Text(datetime.to_string()),
        DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::Text(number.to_string()), Value::Integer),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .map_or_else(|_| Value::Text(number.to_string()), Value::Decimal),
    })
}

fn json_root(name: &str, text: &str) -> Result<Node, AssemblyProblem> {
    match serde_json::from_str(text) {
        Ok(node @ Node::Table(_)) => Ok(node),
        Ok(_) => Err(unparsable(name, Some(1), "it is no object", "JSON")),
        Err(error) => {
            let text = error.to_string();
            // "expected `,` or `}` at line 3 column 5": the line stands in front already.
            let reason = text.split(" at line ").next().unwrap_or_default();
            Err(unparsable(name, Some(error.line()), reason, "JSON"))
        }
    }
}

fn unparsable(name: &str, line: Option<usize>, reason: &str, format: &str) -> AssemblyProblem {
    let place = line.map_or_else(String::new, |line| format!(", line {line}"));
    let reason = reason.replace('\n', ", ");
    AssemblyProblem::new(
        format!("{name}{place}"),
        format!("the configuration is not valid {format}: {reason}"),
        "correct this line",
    )
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

/// Keeps members that come twice, where `serde_json::Value` would drop the first.
struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Boolean(truth)))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Integer(number.into())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Integer(number.into())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Decimal(number)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Text(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element()? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some((key, node)) = members.next_entry()? {
            nodes.push((key, None, node));
        }
        Ok(Node::Table(nodes))
    }
}
