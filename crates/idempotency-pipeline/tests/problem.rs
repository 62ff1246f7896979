//! Problem Details as a caller sees them (X1, X2, X3).

use std::sync::LazyLock;
use std::time::Duration;

use caching_abstractions::{CachingError, ErrorCode};
use idempotency_pipeline::language::Language;
use idempotency_pipeline::problem::{Catalogues, Failure, HttpCode, Problem, Violation};
use proptest::prelude::*;
use serde_json::{Value, json};

fn failure_json(failure: &Failure) -> Value {
    let catalogues = Catalogues::built_in();
    let problem = Problem::of_failure(failure, &catalogues, &Language::ENGLISH);
    serde_json::from_slice(&problem.to_json()).unwrap_or_default()
}

#[test]
fn x1_every_error_and_every_http_code_has_its_members() {
    let catalogues = Catalogues::built_in();
    for code in ErrorCode::ALL {
        let error = CachingError::new(code, "own text");
        let problem = Problem::of_error(&error, &catalogues, &Language::ENGLISH);
        let json: Value = serde_json::from_slice(&problem.to_json()).unwrap();
        assert_eq!(json["type"], format!("urn:xihan:problem:{code}"));
        assert_eq!(json["status"], code.http_status());
        assert_eq!(json["code"], code.as_str());
        assert_eq!(json["messageKey"], code.default_message_key());
        assert!(json["parameters"].is_object());
        assert!(!json["title"].as_str().unwrap().is_empty());
        assert!(!json["detail"].as_str().unwrap().is_empty());
    }
    for code in HttpCode::ALL {
        let json = failure_json(&Failure::new(code.as_str()));
        assert_eq!(json["type"], format!("urn:xihan:problem:{}", code.as_str()));
        assert_eq!(json["status"], code.http_status());
        assert_eq!(json["code"], code.as_str());
    }
}

#[test]
fn x1_members_stand_in_a_stable_order() {
    let catalogues = Catalogues::built_in();
    let failure = Failure::new("ORDERS_VALIDATION_001")
        .with_detail("the order is invalid")
        .with_parameter("b", "2")
        .with_parameter("a", "1")
        .with_violation(Violation::new("amount", "has to be 1 to 1000"));
    let problem = Problem::of_failure(&failure, &catalogues, &Language::ENGLISH)
        .with_instance("/orders")
        .with_trace_id("0af7");
    assert_eq!(
        String::from_utf8(problem.to_json()).unwrap(),
        concat!(
            r#"{"type":"urn:xihan:problem:ORDERS_VALIDATION_001","title":"Invalid request","#,
            r#""status":400,"detail":"the order is invalid","instance":"/orders","#,
            r#""code":"ORDERS_VALIDATION_001","messageKey":"ORDERS_VALIDATION_001","#,
            r#""parameters":{"b":"2","a":"1"},"traceId":"0af7","#,
            r#""violations":[{"field":"amount","detail":"has to be 1 to 1000"}]}"#,
        )
    );
}

#[test]
fn x1_retry_after_is_in_whole_seconds_and_never_on_003() {
    let catalogues = Catalogues::built_in();
    let seconds = |error: CachingError| {
        Problem::of_error(&error, &catalogues, &Language::ENGLISH).retry_after_seconds()
    };
    let delayed = |delay| seconds(CachingError::in_progress().with_retry_after(delay));
    assert_eq!(delayed(Duration::ZERO), Some(1));
    assert_eq!(delayed(Duration::from_millis(1)), Some(1));
    assert_eq!(delayed(Duration::from_millis(1001)), Some(2));
    assert_eq!(delayed(Duration::MAX), Some(u64::MAX));
    let reused = CachingError::key_reused("a", "b").with_retry_after(Duration::from_secs(5));
    assert_eq!(seconds(reused), None);
    assert_eq!(seconds(CachingError::lock_held("a")), None);
    assert_eq!(seconds(CachingError::unavailable("away")), Some(1));
    assert_eq!(seconds(CachingError::store_full("full")), Some(1));

    let of_code = |code: &'static str| {
        let failure = Failure::new(code);
        Problem::of_failure(&failure, &catalogues, &Language::ENGLISH).retry_after_seconds()
    };
    assert_eq!(of_code("ORDERS_UNAVAILABLE_001"), Some(1));
    assert_eq!(of_code("HTTP_EXHAUSTED_001"), Some(1));
    assert_eq!(of_code("ORDERS_CONFLICT_001"), None);
    assert_eq!(of_code("CACHING_CONFLICT_003"), None);
}

#[test]
fn x2_the_text_is_the_callers_and_the_code_is_everybodys() {
    let catalogues = Catalogues::built_in();
    let error = CachingError::invalid_key("it is empty; a key has 1 to 512 characters");
    let english = Problem::of_error(&error, &catalogues, &Language::ENGLISH);
    let chinese = Problem::of_error(&error, &catalogues, &Language::SIMPLIFIED_CHINESE);
    assert_eq!(english.title(), "Invalid key");
    assert_eq!(chinese.title(), "键无效");
    assert_eq!(
        chinese.detail(),
        "键无效：it is empty; a key has 1 to 512 characters。"
    );
    assert_eq!(chinese.language(), &Language::SIMPLIFIED_CHINESE);
    assert_eq!(english.code(), chinese.code());
    assert_eq!(english.message_key(), chinese.message_key());
    assert!(english.parameters().eq(chinese.parameters()));
}

#[test]
fn x2_an_unknown_key_shows_the_failures_own_text_under_its_categorys_title() {
    let catalogues = Catalogues::built_in();
    let failure = Failure::new("ORDERS_CONFLICT_001").with_detail("out of stock");
    let problem = Problem::of_failure(&failure, &catalogues, &Language::SIMPLIFIED_CHINESE);
    assert_eq!(
        (problem.title(), problem.detail()),
        ("冲突", "out of stock")
    );
    assert_eq!(problem.language(), &Language::ENGLISH);

    let silent = Failure::new("ORDERS_CONFLICT_001");
    let problem = Problem::of_failure(&silent, &catalogues, &Language::SIMPLIFIED_CHINESE);
    assert_eq!(problem.detail(), "请求与当前状态冲突。");
    assert_eq!(problem.language(), &Language::SIMPLIFIED_CHINESE);

    // A text whose parameter is missing is not used.
    let error = CachingError::new(ErrorCode::InvalidKey, "the key is odd");
    let problem = Problem::of_error(&error, &catalogues, &Language::ENGLISH);
    assert_eq!(problem.detail(), "the key is odd");
}

#[test]
fn x2_violations_are_translated_one_by_one() {
    let toml = "[orders.amount]\ndetail = \"数量必须在 1 到 {max} 之间。\"";
    let catalogues = Catalogues::built_in().with("zh-CN", toml).unwrap();
    let failure = Failure::new("ORDERS_VALIDATION_001")
        .with_violation(
            Violation::new("amount", "has to be 1 to 1000")
                .with_message_key("orders.amount")
                .with_parameter("max", "1000"),
        )
        .with_violation(Violation::new("name", "is empty"));
    let problem = Problem::of_failure(&failure, &catalogues, &Language::SIMPLIFIED_CHINESE);
    let json: Value = serde_json::from_slice(&problem.to_json()).unwrap();
    assert_eq!(
        json["violations"],
        json!([
            {
                "field": "amount",
                "detail": "数量必须在 1 到 1000 之间。",
                "messageKey": "orders.amount",
                "parameters": {"max": "1000"},
            },
            {"field": "name", "detail": "is empty"},
        ])
    );
}

#[test]
fn x3_an_internal_error_hides_its_text_and_its_cause() {
    let catalogues = Catalogues::built_in();
    let hidden = || {
        CachingError::internal("connecting with password=hunter2 failed")
            .with_operation("hunter2")
            .with_source(std::io::Error::other("token hunter2"))
    };
    for error in [hidden(), hidden().with_message_key("orders.unknown")] {
        for language in catalogues.languages() {
            let json = Problem::of_error(&error, &catalogues, language).to_json();
            let json = String::from_utf8(json).unwrap();
            assert!(!json.contains("hunter2"), "{json}");
        }
    }
}

#[test]
fn part6_a_text_that_is_no_code_is_a_500_without_a_type() {
    let json = failure_json(&Failure::new("out of stock"));
    assert_eq!(json["type"], "about:blank");
    assert_eq!(json["status"], 500);
    assert_eq!(json["code"], "out of stock");
}

/// Read once for all cases of a property.
fn shared_catalogues() -> &'static Catalogues {
    static CATALOGUES: LazyLock<Catalogues> = LazyLock::new(Catalogues::built_in);
    &CATALOGUES
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::collection::vec(any::<char>(), 0..12).prop_map(String::from_iter),
        "[{}\"\\\\\u{0}-\u{1f}a-c]{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn x1_a_problem_is_valid_json_whatever_its_texts_are(
        code in prop_oneof![Just("ORDERS_CONFLICT_001".to_owned()), any_text()],
        key in any_text(),
        detail in any_text(),
        instance in any_text(),
        parameters in proptest::collection::vec((any_text(), any_text()), 0..4),
        chinese in any::<bool>(),
    ) {
        let catalogues = shared_catalogues();
        let language = &catalogues.languages()[usize::from(chinese)];
        let mut failure = Failure::new(code.clone())
            .with_message_key(key.clone())
            .with_detail(detail.clone());
        let mut expected = serde_json::Map::new();
        for (name, value) in &parameters {
            failure = failure.with_parameter(name.clone(), value.clone());
            expected.entry(name.clone()).or_insert_with(|| value.clone().into());
        }
        let problem = Problem::of_failure(&failure, catalogues, language)
            .with_instance(instance.clone());
        let json: Value = serde_json::from_slice(&problem.to_json()).unwrap();
        prop_assert_eq!(&json["code"], &code);
        prop_assert_eq!(&json["messageKey"], &key);
        prop_assert_eq!(&json["detail"], &detail);
        prop_assert_eq!(&json["parameters"], &Value::Object(expected));
        prop_assert_eq!(json["instance"].as_str().unwrap_or_default(), instance);
    }

    #[test]
    fn x2_parameters_are_inserted_as_they_are(reason in any_text()) {
        let catalogues = shared_catalogues();
        let error = CachingError::invalid_key(reason.clone());
        let problem = Problem::of_error(&error, catalogues, &Language::SIMPLIFIED_CHINESE);
        prop_assert_eq!(problem.detail(), format!("键无效：{reason}。"));
    }
}
