//! Who is calling: `Authorization: ApiKey <key>`.

use async_trait::async_trait;
use idempotency_pipeline::{Authenticator, Failure, InvocationContext, InvocationError, Principal};

/// The keys of the development set-up. A real service keeps digests of its keys in a store.
const DEVELOPMENT_KEYS: [(&str, Option<&str>, &str); 4] = [
    ("dev-alice-key", Some("acme"), "alice"),
    ("dev-bob-key", Some("acme"), "bob"),
    ("dev-carol-key", Some("globex"), "alice"),
    ("dev-root-key", None, "root"),
];

/// Knows callers by their API keys.
#[derive(Debug)]
pub struct ApiKeys(Vec<(&'static str, Principal)>);

impl ApiKeys {
    /// The keys of the development set-up.
    pub fn development() -> Self {
        let keys = DEVELOPMENT_KEYS.map(|(key, tenant, name)| {
            let principal = Principal::new(name);
            (
                key,
                tenant.map_or_else(|| principal.clone(), |t| principal.clone().with_tenant(t)),
            )
        });
        Self(keys.into())
    }

    fn principal(&self, header: &[u8]) -> Option<&Principal> {
        let (scheme, key) = header.split_at_checked(b"ApiKey ".len())?;
        if !scheme.eq_ignore_ascii_case(b"ApiKey ") {
            return None;
        }
        self.0
            .iter()
            .find(|(known, _)| known.as_bytes() == key)
            .map(|(_, principal)| principal)
    }
}

#[async_trait]
impl Authenticator for ApiKeys {
    fn challenge(&self) -> &'static str {
        "ApiKey"
    }

    async fn authenticate(
        &self,
        context: &InvocationContext,
    ) -> Result<Option<Principal>, InvocationError> {
        let header = context.metadata("authorization").unwrap_or_default();
        match self.principal(header) {
            Some(principal) => Ok(Some(principal.clone())),
            None => Err(Failure::unauthenticated().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_a_principal_and_its_tenant() {
        let keys = ApiKeys::development();
        let carol = keys.principal(b"ApiKey dev-carol-key").unwrap();
        assert_eq!(
            (carol.name(), carol.tenant().map(|t| &**t)),
            ("alice", Some("globex"))
        );
        assert_eq!(
            keys.principal(b"apikey dev-root-key").unwrap().tenant(),
            None
        );
    }

    #[test]
    fn anything_else_names_nobody() {
        let keys = ApiKeys::development();
        for header in [
            "",
            "ApiKey",
            "ApiKey ",
            "Bearer dev-alice-key",
            "ApiKey dev-alice-key ",
        ] {
            assert_eq!(keys.principal(header.as_bytes()), None, "{header:?}");
        }
    }
}
