//! Commands, before it is known which connection sends them.

use bytes::Bytes;
use fred::clients::Client;
use fred::interfaces::{ClientLike, KeysInterface};
use fred::types::{ClusterHash, CustomCommand, Expiration, SetOptions, Value};

use crate::client::fault;
use crate::error::Attempt;
use crate::outbox::Order;
use crate::reply::Reply;
use crate::script::Script;

/// One command for the server that has its key.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    what: What,
    /// A script begins with room for its name, and the number of its keys.
    arguments: Vec<Value>,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Command(&'static str),
    Get,
    /// `SET … PX`; its arguments are key and value.
    Set(Write, u64),
    Script(Script),
}

/// When a `SET` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    Always,
    /// Where the key is absent.
    Absent,
    /// The same, and it gives what stands there. Servers below 7.0 do not know it.
    AbsentOrGet,
}

/// Whether the provider sends a command again by itself when its answer was lost (S4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It changes nothing, or the same when it is executed twice.
    Safely,
    /// Only where it certainly was not executed.
    Never,
}

/// Room for the arguments of all but the longest commands.
const ARGUMENTS: usize = 8;
/// How many arguments of a script stand before its keys.
const BEFORE_KEYS: usize = 2;

impl Request {
    fn new(what: What, key: Bytes) -> Self {
        let mut arguments = Vec::with_capacity(ARGUMENTS);
        arguments.push(Value::Bytes(key));
        Self { what, arguments }
    }

    /// The command `name` whose first argument is `key`.
    pub(crate) fn command(name: &'static str, key: Bytes) -> Self {
        Self::new(What::Command(name), key)
    }

    /// Reads `key`.
    pub(crate) fn get(key: Bytes) -> Self {
        Self::new(What::Get, key)
    }

    /// Writes `key` for so many milliseconds.
    pub(crate) fn set(key: Bytes, stored: Bytes, life: u64, write: Write) -> Self {
        Self::new(What::Set(write, life), key).with(stored)
    }

    /// The same for a server below 7.0, where it may be another command.
    pub(crate) fn below_seven(self) -> Self {
        match self.what {
            What::Set(Write::AbsentOrGet, life) => {
                let mut script = Self::script::<0>(Script::Add, []);
                script.arguments[1] = Value::Integer(1);
                script.arguments.extend(self.arguments);
                script.with_millis(life)
            }
            _ => self,
        }
    }

    /// A script on `keys`, which are all in the slot of the first.
    pub(crate) fn script<const N: usize>(script: Script, keys: [Bytes; N]) -> Self {
        let mut arguments = Vec::with_capacity(ARGUMENTS);
        arguments.push(Value::Null);
        arguments.push(Value::Integer(i64::try_from(N).unwrap_or(1)));
        arguments.extend(keys.into_iter().map(Value::Bytes));
        Self {
            what: What::Script(script),
            arguments,
        }
    }

    /// The same command with one more argument.
    pub(crate) fn with(mut self, argument: impl Into<Value>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// The same command with a duration in milliseconds as one more argument.
    pub(crate) fn with_millis(self, milliseconds: u64) -> Self {
        self.with(millis(milliseconds))
    }

    /// The stored key that decides which node of a Cluster gets it.
    pub(crate) fn slot_key(&self) -> &[u8] {
        let place = match self.what {
            What::Script(_) => BEFORE_KEYS,
            What::Command(_) | What::Get | What::Set(..) => 0,
        };
        match self.arguments.get(place) {
            Some(Value::Bytes(key)) => key,
            _ => &[],
        }
    }

    /// The script it runs.
    pub(crate) fn script_called(&self) -> Option<Script> {
        match self.what {
            What::Script(script) => Some(script),
            What::Command(_) | What::Get | What::Set(..) => None,
        }
    }

    /// As it is given to the client; a script as `named`: its hash or its text.
    pub(crate) fn on_the_wire(self, named: Option<NamedScript>) -> OnTheWire {
        let mut arguments = self.arguments;
        let name = match self.what {
            What::Command(name) => name,
            What::Get => match arguments.pop() {
                Some(Value::Bytes(key)) => return OnTheWire::Get(key),
                _ => "GET",
            },
            What::Set(write, life) => match (arguments.pop(), arguments.pop()) {
                (Some(stored), Some(Value::Bytes(key))) => {
                    return OnTheWire::Set {
                        key,
                        stored,
                        life,
                        write,
                    };
                }
                _ => "SET",
            },
            What::Script(_) => {
                let (name, text) = match named {
                    Some(NamedScript::Text(text)) => ("EVAL", text),
                    Some(NamedScript::Hash(text)) => ("EVALSHA", text),
                    None => ("EVALSHA", Value::Null),
                };
                if let Some(place) = arguments.first_mut() {
                    *place = text;
                }
                name
            }
        };
        OnTheWire::Other(name, arguments)
    }
}

/// A duration as an argument.
fn millis(milliseconds: u64) -> Value {
    // A lifetime is at most a hundred years, so this never cuts anything.
    Value::Integer(i64::try_from(milliseconds).unwrap_or(i64::MAX))
}

/// A command as the client takes it. Those that it knows by name can share a write with others; it
/// writes each of the others by itself, and those still share the way to its task.
#[derive(Debug)]
pub(crate) enum OnTheWire {
    Get(Bytes),
    Set {
        key: Bytes,
        stored: Value,
        life: u64,
        write: Write,
    },
    /// Name and arguments.
    Other(&'static str, Vec<Value>),
}

impl OnTheWire {
    /// Name and arguments.
    pub(crate) fn into_words(self) -> (&'static str, Vec<Value>) {
        match self {
            Self::Other(name, arguments) => (name, arguments),
            Self::Get(key) => ("GET", vec![Value::Bytes(key)]),
            Self::Set {
                key,
                stored,
                life,
                write,
            } => {
                let px = Value::from_static_str("PX");
                let mut arguments = vec![Value::Bytes(key), stored, px, millis(life)];
                let more: &[_] = match write {
                    Write::Always => &[],
                    Write::Absent => &["NX"],
                    Write::AbsentOrGet => &["NX", "GET"],
                };
                arguments.extend(more.iter().map(|word| Value::from_static_str(word)));
                ("SET", arguments)
            }
        }
    }

    /// Gives it to `client`, at the first poll, and waits for the answer.
    async fn call(self, client: Client) -> Attempt<Reply> {
        let answer: Result<Value, _> = match self {
            Self::Get(key) => client.get(key).await,
            Self::Set {
                key,
                stored,
                life,
                write,
            } => {
                let px = Some(Expiration::PX(i64::try_from(life).unwrap_or(i64::MAX)));
                let (when, get) = match write {
                    Write::Always => (None, false),
                    Write::Absent => (Some(SetOptions::NX), false),
                    Write::AbsentOrGet => (Some(SetOptions::NX), true),
                };
                client.set(key, stored, px, when, get).await
            }
            Self::Other(name, arguments) => {
                let frame = client.custom_raw(command(name), arguments).await;
                return Reply::read(frame.map_err(|error| fault(&error))?);
            }
        };
        Reply::from_value(answer.map_err(|error| fault(&error))?)
    }
}

/// A command and who executes it.
#[derive(Debug)]
pub(crate) struct ForClient(pub(crate) Client, pub(crate) OnTheWire);

impl Order for ForClient {
    fn execute(self) -> impl Future<Output = Attempt<Reply>> + Send {
        self.1.call(self.0)
    }
}

/// A command that goes wherever the client is connected to.
pub(crate) fn command(name: &'static str) -> CustomCommand {
    CustomCommand::new_static(name, ClusterHash::Random, false)
}

/// How a script is called.
#[derive(Clone, Debug)]
pub(crate) enum NamedScript {
    /// By its hash, which the server knows if it was loaded.
    Hash(Value),
    /// By its text, which loads it.
    Text(Value),
}
