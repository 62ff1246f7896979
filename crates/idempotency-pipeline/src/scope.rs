//! Whose idempotency key it is: the key of a record (P4).

use caching_abstractions::{CacheKey, CachingError, Result};

/// What every record's key begins with.
const PREFIX: &str = "idem:";
/// Stands for a missing tenant or principal.
const NOBODY: &str = "-";

/// The key of the record of `key` in the scope of this tenant and principal:
/// `idem:<tenant>:<principal>:<key>`.
///
/// - A missing or empty tenant or principal is `-`; one that is literally `-` becomes `%2D`.
/// - Both are escaped as segments (K3), so no two scopes share a record.
///
/// # Errors
/// `CACHING_VALIDATION_001` if `key` is empty or the whole breaks K1.
pub fn record_key(tenant: Option<&str>, principal: Option<&str>, key: &str) -> Result<CacheKey> {
    if key.is_empty() {
        return Err(CachingError::invalid_key("the idempotency key is empty"));
    }
    let (tenant, principal) = (tenant.unwrap_or_default(), principal.unwrap_or_default());
    let length = PREFIX.len() + tenant.len() + principal.len() + key.len() + 2;
    let mut text = String::with_capacity(length);
    text.push_str(PREFIX);
    for part in [tenant, principal] {
        match part {
            "" => text.push_str(NOBODY),
            NOBODY => text.push_str("%2D"),
            _ => CacheKey::escape_segment(&mut text, part),
        }
        text.push(':');
    }
    text.push_str(key);
    CacheKey::new(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use caching_abstractions::ErrorCode;

    #[test]
    fn p4_cases() {
        let mut rows = 0;
        for row in include_str!("../tests/data/idempotency-keys.tsv").lines() {
            if row.starts_with('#') {
                continue;
            }
            let columns: Vec<&str> = row.split('\t').collect();
            let optional = |text: &str| serde_json::from_str::<Option<String>>(text).unwrap();
            let (tenant, principal) = (optional(columns[0]), optional(columns[1]));
            let key: String = serde_json::from_str(columns[2]).unwrap();
            let result = record_key(tenant.as_deref(), principal.as_deref(), &key);
            if columns[3] == "error" {
                assert_eq!(result.unwrap_err().code(), ErrorCode::InvalidKey, "{row}");
            } else {
                let expected: String = serde_json::from_str(columns[3]).unwrap();
                assert_eq!(result.unwrap().as_str(), expected, "{row}");
            }
            rows += 1;
        }
        assert_eq!(rows, 19);
    }
}
