use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::baggage::Baggage;
use crate::extensions::Extensions;
use crate::language::Language;

/// Everything a stage or a handler knows about one call.
///
/// Cheap to clone; clones share one state. Principal and tenant are set once, by their stages.
#[derive(Clone)]
pub struct InvocationContext(Arc<Shared>);

struct Shared {
    entry: EntryKind,
    operation: Option<Arc<str>>,
    baggage: Baggage,
    language: Language,
    instance: String,
    trace_id: OnceLock<String>,
    metadata: Box<dyn Metadata>,
    cancellation: CancellationToken,
    principal: OnceLock<Principal>,
    tenant: OnceLock<Arc<str>>,
    replay: AtomicU8,
    commit: AtomicU8,
    extensions: Extensions,
}

impl InvocationContext {
    /// Starts the context of a call that arrives by `entry`.
    pub fn builder(entry: EntryKind) -> InvocationContextBuilder {
        InvocationContextBuilder {
            entry,
            baggage: Baggage::default(),
            language: Language::default(),
            instance: String::new(),
            trace_id: OnceLock::new(),
            metadata: Box::new(NoMetadata),
        }
    }

    /// How the call arrived.
    pub fn entry(&self) -> EntryKind {
        self.0.entry
    }

    /// The id of the operation called; none for a plain call.
    pub fn operation(&self) -> Option<&str> {
        self.0.operation.as_deref()
    }

    /// The caller's baggage, with the idempotency key if there is one.
    pub fn baggage(&self) -> &Baggage {
        &self.0.baggage
    }

    /// The caller's language, among those that have a catalogue (X2).
    pub fn language(&self) -> &Language {
        &self.0.language
    }

    /// What identifies this call in a problem's `instance`: on HTTP the path.
    pub fn instance(&self) -> &str {
        &self.0.instance
    }

    /// The trace the call belongs to: 32 hexadecimal digits, the caller's or fresh ones.
    pub fn trace_id(&self) -> &str {
        self.0.trace_id.get_or_init(fresh_trace_id)
    }

    /// One value of the transport's metadata (HTTP: a request header), by lower-case name.
    pub fn metadata(&self, name: &str) -> Option<&[u8]> {
        self.0.metadata.get(name)
    }

    /// Is cancelled when a graceful shutdown has waited as long as it may (P15).
    ///
    /// A client that goes away does not cancel it: keyed work runs to its end.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancellation
    }

    /// Who is calling, once the Authenticate stage has found out.
    pub fn principal(&self) -> Option<&Principal> {
        self.0.principal.get()
    }

    /// The tenant the call is for, once the Tenant stage has found out.
    pub fn tenant(&self) -> Option<&str> {
        self.0.tenant.get().map(AsRef::as_ref)
    }

    /// Says who is calling; `false` if that was said before, and then nothing changes.
    pub fn set_principal(&self, principal: Principal) -> bool {
        self.0.principal.set(principal).is_ok()
    }

    /// Says which tenant the call is for; `false` if that was said before.
    pub fn set_tenant(&self, tenant: impl Into<Arc<str>>) -> bool {
        self.0.tenant.set(tenant.into()).is_ok()
    }

    /// What the Idempotency stage did with the call so far (P8).
    pub fn replay(&self) -> Replay {
        match self.0.replay.load(Ordering::Acquire) {
            1 => Replay::Executed,
            2 => Replay::Replayed,
            _ => Replay::NoKey,
        }
    }

    pub(crate) fn set_replay(&self, replay: Replay) {
        self.0.replay.store(replay as u8, Ordering::Release);
    }

    /// How far the transaction's commit is (P6).
    pub(crate) fn commit(&self) -> CommitState {
        match self.0.commit.load(Ordering::Acquire) {
            1 => CommitState::Begun,
            2 => CommitState::Committed,
            _ => CommitState::Nothing,
        }
    }

    pub(crate) fn set_commit(&self, state: CommitState) {
        self.0.commit.store(state as u8, Ordering::Release);
    }

    /// Values that middleware leaves for later stages and the handler, by type.
    pub fn extensions(&self) -> &Extensions {
        &self.0.extensions
    }
}

impl fmt::Debug for InvocationContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InvocationContext")
            .field("entry", &self.entry())
            .field("operation", &self.operation())
            .field("principal", &self.principal().map(Principal::name))
            .field("tenant", &self.tenant())
            .field("language", self.language())
            .field("replay", &self.replay())
            .finish_non_exhaustive()
    }
}

/// Collects what the transport knows about a call.
pub struct InvocationContextBuilder {
    entry: EntryKind,
    baggage: Baggage,
    language: Language,
    instance: String,
    trace_id: OnceLock<String>,
    metadata: Box<dyn Metadata>,
}

impl InvocationContextBuilder {
    /// The caller's baggage.
    #[must_use]
    pub fn baggage(mut self, baggage: Baggage) -> Self {
        self.baggage = baggage;
        self
    }

    /// The caller's language.
    #[must_use]
    pub fn language(mut self, language: Language) -> Self {
        self.language = language;
        self
    }

    /// What identifies the call in a problem's `instance`.
    #[must_use]
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = instance.into();
        self
    }

    /// The caller's trace, 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(mut self, trace_id: impl Into<String>) -> Self {
        self.trace_id = OnceLock::from(trace_id.into());
        self
    }

    /// The transport's metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: impl Metadata) -> Self {
        self.metadata = Box::new(metadata);
        self
    }

    pub(crate) fn build(
        self,
        operation: Option<Arc<str>>,
        cancellation: CancellationToken,
    ) -> InvocationContext {
        let baggage = match self.entry {
            // Several messages of one request, or retries of one, are not one call (P13).
            EntryKind::Message => self.baggage.without_idempotency_key(),
            _ => self.baggage,
        };
        InvocationContext(Arc::new(Shared {
            entry: self.entry,
            operation,
            baggage,
            language: self.language,
            instance: self.instance,
            trace_id: self.trace_id,
            metadata: self.metadata,
            cancellation,
            principal: OnceLock::new(),
            tenant: OnceLock::new(),
            replay: AtomicU8::new(Replay::NoKey as u8),
            commit: AtomicU8::new(CommitState::Nothing as u8),
            extensions: Extensions::default(),
        }))
    }
}

impl fmt::Debug for InvocationContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InvocationContextBuilder")
            .field("entry", &self.entry)
            .finish_non_exhaustive()
    }
}

/// How a call reaches the pipeline (P1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// An HTTP request.
    Http,
    /// A gRPC call.
    Grpc,
    /// An MCP tool call.
    Mcp,
    /// A typed call from code.
    Typed,
    /// A call from code with the request as bytes.
    Raw,
    /// A plain invocation of a closure.
    Plain,
    /// A message; an idempotency key in its baggage is ignored (P13).
    Message,
}

/// What the Idempotency stage did with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Replay {
    /// The call carried no key, or the stage has not been reached.
    NoKey = 0,
    /// The call was the first with its key and is executed.
    Executed = 1,
    /// The answer is the recorded one.
    Replayed = 2,
}

/// A trace of its own for a call that brings none: 32 hexadecimal digits.
pub(crate) fn fresh_trace_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Whether the answer of this call is a recorded one (P8).
pub fn was_replayed(context: &InvocationContext) -> bool {
    context.replay() == Replay::Replayed
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CommitState {
    /// Nothing was committed: not begun, or rolled back.
    Nothing = 0,
    /// Begun, and nobody knows how it ended.
    Begun = 1,
    /// Committed.
    Committed = 2,
}

/// Who is calling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    name: Arc<str>,
    tenant: Option<Arc<str>>,
}

impl Principal {
    /// The principal of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            tenant: None,
        }
    }

    /// The same principal, belonging to `tenant`.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tenant it belongs to, where it belongs to one.
    pub fn tenant(&self) -> Option<&Arc<str>> {
        self.tenant.as_ref()
    }
}

/// What a transport carries beside the request: on HTTP the request headers.
pub trait Metadata: Send + Sync + 'static {
    /// The first value of `name`, which is lower case.
    fn get(&self, name: &str) -> Option<&[u8]>;
}

struct NoMetadata;

impl Metadata for NoMetadata {
    fn get(&self, _name: &str) -> Option<&[u8]> {
        None
    }
}

impl Metadata for HashMap<String, String> {
    fn get(&self, name: &str) -> Option<&[u8]> {
        self.get(name).map(String::as_bytes)
    }
}
