//! HTTP/1 as clients really speak it, and as they should not.

use std::io::ErrorKind;

use crate::support::{ALICE, Answer, Request, Service, order};

/// Sends bytes on a connection of their own.
async fn raw(service: &Service, bytes: &[u8]) -> Answer {
    let mut connection = service.connect().await;
    connection.write(bytes).await;
    let answer = connection.answer().await;
    answer.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let service = Service::start().await;
    let mut connection = service.connect().await;
    for path in ["/orders", "/orders/1", "/healthz", "/metrics", "/nowhere"] {
        let get = connection.send(&Request::get(path).by(ALICE)).await;
        let head = connection.send(&Request::new("HEAD", path).by(ALICE)).await;
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(
            head.header("content-type"),
            get.header("content-type"),
            "{path}"
        );
        assert_eq!(
            head.header("content-length"),
            get.header("content-length"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_body_may_come_in_chunks() {
    let service = Service::start().await;
    for size in [1, 7, 1000] {
        raw(&service, &order().to_chunks(size)).await.placed();
    }
}

#[tokio::test]
async fn a_client_that_expects_100_is_told_to_go_on() {
    let service = Service::start().await;
    let request = order()
        .key("order-1")
        .header("expect", "100-continue")
        .to_bytes();
    let body = request
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap()
        + 4;
    let mut connection = service.connect().await;
    connection.write(&request[..body]).await;
    assert_eq!(
        connection.answer().await.unwrap().status_line,
        "HTTP/1.1 100 Continue"
    );
    connection.write(&request[body..]).await;
    connection.answer().await.unwrap().placed();
}

#[tokio::test]
async fn a_client_that_expects_100_is_refused_before_it_sends() {
    let service = Service::start().await;
    let request = order()
        .header("baggage", "xihan.idempotency-key=")
        .header("expect", "100-continue");
    let mut head = request.head();
    head.extend(b"content-length: 1000000\r\n\r\n");
    raw(&service, &head)
        .await
        .problem(400, "CACHING_VALIDATION_001");
}

#[tokio::test]
async fn http_1_0_is_answered_and_closed() {
    let service = Service::start().await;
    let mut connection = service.connect().await;
    connection.write(b"GET /healthz HTTP/1.0\r\n\r\n").await;
    let answer = connection.closed().await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("\r\n\r\nok"), "{answer}");

    let text = String::from_utf8(order().key("order-1").to_bytes()).unwrap();
    let answer = raw(&service, text.replace("HTTP/1.1", "HTTP/1.0").as_bytes()).await;
    answer.placed();
    assert_eq!(
        service.send(&order().key("order-1")).await.replayed(),
        Some(true)
    );
}

#[tokio::test]
async fn the_target_may_be_a_whole_uri() {
    let service = Service::start().await;
    let request = order().key("order-1").to_bytes();
    let text = String::from_utf8(request).unwrap();
    let target = format!("POST http://{}/orders ", service.address());
    let answer = raw(&service, text.replace("POST /orders ", &target).as_bytes()).await;
    answer.placed();
    let lost = Request::get("http://localhost/nowhere?x=1");
    let problem = service.send(&lost).await.problem(404, "HTTP_NOTFOUND_001");
    assert_eq!(problem["instance"], "/nowhere");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let service = Service::start().await;
    let mut bytes = Vec::new();
    for key in ["order-1", "order-2", "order-1"] {
        bytes.extend(order().key(key).to_bytes());
    }
    bytes.extend(b"\x16\x03\x01 no request at all\r\n\r\n");
    let mut connection = service.connect().await;
    connection.write(&bytes).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(connection.answer().await.unwrap());
    }
    let replayed: Vec<_> = answers.iter().map(Answer::replayed).collect();
    assert_eq!(replayed, [Some(false), Some(false), Some(true)]);
    assert_eq!(answers[0].placed(), answers[2].placed());
    connection.closed().await;
    assert_eq!(service.orders(ALICE).await.len(), 2);
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_the_service_lives_on() {
    let service = Service::start().await;
    let body = r#"{"name":"Keyboard","amount":1}"#;
    let head = |headers: &str| {
        format!(
            "POST /orders HTTP/1.1\r\nhost: localhost\r\nauthorization: ApiKey {ALICE}\r\n\
             content-type: application/json\r\n{headers}\r\n{body}"
        )
    };
    let cases: Vec<Vec<u8>> = vec![
        b"\0\0\0\0\0\0\0\0\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(),
        b"hello\r\n\r\n".to_vec(),
        b"GET /healthz HTTP/9.9\r\nhost: localhost\r\n\r\n".to_vec(),
        b"GET /heal thz HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec(),
        b"GET /healthz HTTP/1.1\r\nno header\r\n\r\n".to_vec(),
        b"GET /healthz HTTP/1.1\r\nna me: x\r\n\r\n".to_vec(),
        b"GET /healthz HTTP/1.1\r\nname: a\0b\r\n\r\n".to_vec(),
        // What two servers in a row would understand differently.
        head("content-length: 30\r\ncontent-length: 31\r\n").into_bytes(),
        head("content-length: x\r\n").into_bytes(),
        head("content-length: -1\r\n").into_bytes(),
        head("content-length: 99999999999999999999999\r\n").into_bytes(),
        head("transfer-encoding: gzip\r\n").into_bytes(),
        head("transfer-encoding: chunked, identity\r\n").into_bytes(),
    ];
    for bytes in cases {
        let answer = raw(&service, &bytes).await;
        assert_eq!(
            answer.status,
            400,
            "{:?}: {answer:?}",
            String::from_utf8_lossy(&bytes)
        );
        assert_eq!(service.send(&Request::get("/healthz")).await.status, 200);
    }
    assert_eq!(service.orders(ALICE).await.len(), 0);
}

#[tokio::test]
async fn http_2_is_not_spoken() {
    let service = Service::start().await;
    let mut connection = service.connect().await;
    connection.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert_eq!(connection.closed().await, b"");
    assert_eq!(service.send(&Request::get("/healthz")).await.status, 200);
}

#[tokio::test]
async fn chunks_that_are_none_end_the_call_without_an_order() {
    let service = Service::start().await;
    for chunks in [
        "zz\r\n",
        "1e\r\n{\"name\"\r\n0\r\n\r\n",
        "-1\r\n\r\n",
        "fffffffffffffffff\r\n",
    ] {
        let mut bytes = order().key("order-1").head();
        bytes.extend(format!("transfer-encoding: chunked\r\n\r\n{chunks}").bytes());
        let mut connection = service.connect().await;
        connection.write(&bytes).await;
        connection.finish().await;
        match connection.answer().await {
            Ok(answer) => assert_eq!(answer.status, 400, "{chunks:?}: {answer:?}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{chunks:?}"),
        }
    }
    assert_eq!(service.orders(ALICE).await.len(), 0);
    assert_eq!(
        service.send(&order().key("order-1")).await.replayed(),
        Some(false)
    );
}

#[tokio::test]
async fn too_much_head_is_refused() {
    let service = Service::start().await;
    let long = Request::get(&format!("/orders/{}", "a".repeat(70_000)));
    assert_eq!(service.send(&long).await.status, 414);
    let many = (0..200).fold(Request::get("/healthz"), |r, n| {
        r.header(&format!("x-{n}"), "x")
    });
    assert_eq!(service.send(&many).await.status, 431);

    let mut connection = service.connect().await;
    let large = Request::get("/healthz").header("x", "x".repeat(1_000_000));
    let _ = connection.try_write(&large.to_bytes()).await;
    if let Ok(answer) = connection.answer().await {
        assert_eq!(answer.status, 431);
    }
    assert_eq!(service.send(&Request::get("/healthz")).await.status, 200);
}

#[tokio::test]
async fn the_first_of_two_credentials_counts() {
    let service = Service::start().await;
    let request = order()
        .header("authorization", "ApiKey nobody")
        .key("order-1");
    service.send(&request).await.placed();
    let request = order()
        .without("authorization")
        .header("authorization", "ApiKey nobody");
    let request = request.header("authorization", format!("ApiKey {ALICE}"));
    service
        .send(&request)
        .await
        .problem(401, "HTTP_UNAUTHENTICATED_001");
}
