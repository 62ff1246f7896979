use super::*;
use proptest::prelude::*;

fn created() -> Outcome {
    Outcome::from(Success {
        response: Some("{\"id\":7}".into()),
        status: SuccessStatus::Created,
        location: Some("/orders/7".into()),
    })
    .with_rendering(Some(Rendering {
        transport: "http".into(),
        status: 201,
        headers: vec![
            ("content-type".into(), "application/json".into()),
            ("location".into(), "/orders/7".into()),
        ],
        body: "{\"id\":7}".into(),
    }))
}

fn completed_call(bytes: &Bytes) -> CompletedCall {
    match decode(bytes) {
        IdempotencyRecord::Completed(call) => *call,
        other => panic!("expected a completed call, got {other:?}"),
    }
}

#[test]
fn p9_a_record_keeps_outcome_response_and_rendering() {
    let token = ExecutionToken::generate();
    let outcome = created();
    let bytes = completed(token, Some("orders.create"), None, &outcome, 1024);
    let call = completed_call(&bytes);
    assert_eq!(call.operation.as_deref(), Some("orders.create"));
    assert_eq!(call.result.unwrap().unwrap(), *outcome.result().unwrap());
    assert_eq!(call.rendering.as_ref(), outcome.rendering());
}

#[test]
fn p9_what_an_answer_repeats_of_the_outcome_is_kept_once() {
    let outcome = created();
    let bytes = completed(
        ExecutionToken::generate(),
        Some("a"),
        None,
        &outcome,
        u64::MAX,
    );
    for once in ["{\"id\":7}", "/orders/7"] {
        let found = bytes
            .windows(once.len())
            .filter(|part| *part == once.as_bytes());
        assert_eq!(found.count(), 1, "{once}");
    }
    let mut call = postcard::from_bytes::<Call<'_>>(&bytes[BARE..]).unwrap();
    assert!(bytes.len() - BARE <= call.room(), "written without growing");
    let Some(End::Success { location, .. }) = &mut call.result else {
        panic!("a success");
    };
    *location = None;
    assert!(call.into_owned(&bytes).is_none(), "a header of nothing");
}

#[test]
fn p9_a_failure_keeps_its_code_parameters_and_rendering() {
    let failure = Failure::new("ORDERS_CONFLICT_001").with_parameter("name", "Unobtainium");
    let bytes = completed(
        ExecutionToken::generate(),
        Some("a"),
        None,
        &failure.clone().into(),
        1024,
    );
    assert_eq!(completed_call(&bytes).result.unwrap().unwrap_err(), failure);
}

#[test]
fn p14_marker_and_opaque_record_have_the_same_length() {
    let token = ExecutionToken::generate();
    let marker = Bytes::copy_from_slice(&IdempotencyRecord::marker(token));
    let opaque = IdempotencyRecord::opaque(token);
    assert_eq!(marker.len(), opaque.len());
    assert_ne!(marker, opaque);
    assert!(matches!(decode(&marker), IdempotencyRecord::InProgress(found) if found == token));
    assert!(matches!(decode(&opaque), IdempotencyRecord::Opaque));
}

#[test]
fn p17_a_response_over_the_limit_is_left_out() {
    let bytes = completed(ExecutionToken::generate(), Some("a"), None, &created(), 7);
    let call = completed_call(&bytes);
    assert!(call.result.is_none() && call.rendering.is_none());
    let bytes = completed(ExecutionToken::generate(), Some("a"), None, &created(), 8);
    assert!(completed_call(&bytes).result.is_some());
}

#[test]
fn p11_a_record_of_an_unknown_format_is_opaque() {
    let bytes = completed(
        ExecutionToken::generate(),
        Some("a"),
        None,
        &created(),
        1024,
    );
    for (position, value) in [(0, b'Y'), (2, VERSION + 1), (3, b'Z')] {
        let mut changed = bytes.to_vec();
        changed[position] = value;
        assert!(matches!(decode(&changed.into()), IdempotencyRecord::Opaque));
    }
}

#[test]
fn p7_a_marker_of_a_newer_format_is_still_a_call_in_progress() {
    let mut marker = IdempotencyRecord::marker(ExecutionToken::generate()).to_vec();
    marker[2] = VERSION + 1;
    assert!(matches!(
        decode(&marker.into()),
        IdempotencyRecord::InProgress(_)
    ));
}

#[test]
fn p17_a_failure_over_the_limit_is_left_out() {
    let failure = Failure::new("ORDERS_CONFLICT_001").with_parameter("name", "x".repeat(100));
    let record = |limit| {
        let token = ExecutionToken::generate();
        completed(token, Some("a"), None, &failure.clone().into(), limit)
    };
    assert!(completed_call(&record(103)).result.is_none());
    assert!(completed_call(&record(104)).result.is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn p11_no_bytes_make_the_decoder_panic(tail in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = vec![b'X', b'I', VERSION, b'C'];
        bytes.extend([0; ExecutionToken::BYTES]);
        bytes.extend(&tail);
        decode(&bytes.into());
        decode(&tail.into());
    }

    #[test]
    fn p11_a_damaged_record_is_never_a_panic(position in 0_usize..80, value: u8) {
        let token = ExecutionToken([7; ExecutionToken::BYTES]);
        let mut bytes = completed(token, Some("orders.create"), None, &created(), 1024).to_vec();
        let position = position % bytes.len();
        bytes[position] = value;
        decode(&bytes.clone().into());
        bytes.truncate(position);
        decode(&bytes.into());
    }
}
