//! Commands, before it is known which connection sends them.

use bytes::Bytes;
use fred::types::Value;

use crate::script::Script;

/// One command for the server that has its key.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    what: What,
    /// For a script without the two arguments that name it and count its keys.
    arguments: Vec<Value>,
    keys: usize,
    slot_key: Bytes,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Command(&'static str),
    /// `SET … NX GET`, which servers below 7.0 do not know.
    SetOrGet,
    Script(Script),
}

/// Whether the provider sends a command again by itself when its answer was lost (S4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing, or the same when it is executed twice.
    Safely,
    /// Only where it certainly was not executed.
    Never,
}

impl Request {
    /// The command `name` whose first argument is `key`.
    pub(crate) fn command(name: &'static str, key: Bytes) -> Self {
        Self {
            what: What::Command(name),
            arguments: vec![Value::Bytes(key.clone())],
            keys: 1,
            slot_key: key,
        }
    }

    /// Writes an absent key, or gives what stands there.
    pub(crate) fn set_or_get(key: Bytes, stored: Bytes, life: u64) -> Self {
        let request = Self::command("SET", key).with(stored).with("PX");
        let mut request = request.with_millis(life).with("NX").with("GET");
        request.what = What::SetOrGet;
        request
    }

    /// The same for a server below 7.0, where that is another command.
    pub(crate) fn below_seven(&self) -> Option<Self> {
        let (What::SetOrGet, [key, stored, _, life, ..]) = (self.what, &*self.arguments) else {
            return None;
        };
        Some(Self {
            what: What::Script(Script::Add),
            arguments: vec![key.clone(), stored.clone(), life.clone()],
            keys: 1,
            slot_key: self.slot_key.clone(),
        })
    }

    /// A script on `keys`, which are all in the slot of the first.
    pub(crate) fn script<const N: usize>(script: Script, keys: [Bytes; N]) -> Self {
        let slot_key = keys.first().cloned().unwrap_or_default();
        Self {
            what: What::Script(script),
            arguments: keys.into_iter().map(Value::Bytes).collect(),
            keys: N,
            slot_key,
        }
    }

    /// The same command with one more argument.
    pub(crate) fn with(mut self, argument: impl Into<Value>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The same command with a duration in milliseconds as one more argument.
    pub(crate) fn with_millis(self, milliseconds: u64) -> Self {
        // A lifetime is at most a hundred years, so this never cuts anything.
        self.with(i64::try_from(milliseconds).unwrap_or(i64::MAX))
    }

    /// The stored key that decides which node of a Cluster gets it.
    pub(crate) fn slot_key(&self) -> &[u8] {
        &self.slot_key
    }

    /// The script it runs.
    pub(crate) fn script_called(&self) -> Option<Script> {
        match self.what {
            What::Script(script) => Some(script),
            What::Command(_) | What::SetOrGet => None,
        }
    }

    /// Name and arguments of a plain command, or of a script as `named`: its hash or its text.
    pub(crate) fn on_the_wire(&self, named: Option<NamedScript>) -> (&'static str, Vec<Value>) {
        let name = match (self.what, &named) {
            (What::Command(name), _) => name,
            (What::SetOrGet, _) => "SET",
            (What::Script(_), Some(NamedScript::Text(_))) => "EVAL",
            (What::Script(_), _) => "EVALSHA",
        };
        let mut arguments = Vec::with_capacity(self.arguments.len() + 2);
        if let Some(NamedScript::Hash(text) | NamedScript::Text(text)) = named {
            arguments.push(text);
            arguments.push(Value::Integer(i64::try_from(self.keys).unwrap_or(1)));
        }
        arguments.extend(self.arguments.iter().cloned());
        (name, arguments)
    }
}

/// How a script is called.
#[derive(Clone, Debug)]
pub(crate) enum NamedScript {
    /// By its hash, which the server knows if it was loaded.
    Hash(Value),
    /// By its text, which loads it.
    Text(Value),
}
