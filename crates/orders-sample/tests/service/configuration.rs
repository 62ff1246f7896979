//! Where the settings come from, and what is said about wrong ones.

use tokio::net::TcpListener;

use crate::support::{Launch, Request, Service, order};

/// How large a request may be is a setting that is easy to see from outside.
async fn assert_limit(service: &Service, limit: &str) {
    let request = order().json(&" ".repeat(4000));
    let problem = service
        .send(&request)
        .await
        .problem(413, "HTTP_TOOLARGE_001");
    assert_eq!(problem["parameters"]["limit"], limit);
}

fn toml(limit: u32) -> String {
    format!("[XiHan.Caching.Idempotency]\nMaxRequestBytes = {limit}\n")
}

#[tokio::test]
async fn c1_a_file_in_toml_or_json() {
    let json = r#"{"XiHan": {"Caching": {"Idempotency": {"MaxRequestBytes": 1002}}}}"#;
    let launch = || {
        Launch::new()
            .file("a.toml", &toml(1001))
            .file("b.json", json)
    };
    let service = launch().arguments(["--config", "a.toml"]).start().await;
    assert_limit(&service, "1001").await;
    let service = launch().arguments(["--config", "b.json"]).start().await;
    assert_limit(&service, "1002").await;
}

#[tokio::test]
async fn c1_argument_before_variable_before_working_directory() {
    let launch = || {
        let files = Launch::new().file("xihan.toml", &toml(1000));
        files
            .file("a.toml", &toml(1001))
            .file("b.toml", &toml(1002))
    };
    assert_limit(&launch().start().await, "1000").await;
    let variable = || launch().environment("XIHAN_CONFIG", "a.toml");
    assert_limit(&variable().start().await, "1001").await;
    let argument = variable().arguments(["--config", "b.toml"]);
    assert_limit(&argument.start().await, "1002").await;
}

#[tokio::test]
async fn c1_the_environment_wins_whatever_its_case() {
    for name in [
        "XIHAN__CACHING__IDEMPOTENCY__MAXREQUESTBYTES",
        "XiHan__Caching__Idempotency__MaxRequestBytes",
    ] {
        let launch = Launch::new().file("xihan.toml", &toml(1000));
        assert_limit(&launch.environment(name, "1001").start().await, "1001").await;
    }
}

#[tokio::test]
async fn the_services_own_settings() {
    let file = "[Orders]\nHttpPort = 0\nReportSeconds = 600\n";
    let service = Launch::without_port()
        .file("xihan.toml", file)
        .environment("ORDERS__REPORTSECONDS", "0.01")
        .start()
        .await;
    let report = Request::post("/reports/daily").by(crate::support::ALICE);
    assert_eq!(service.send(&report).await.status, 200);
}

/// Starts a service that must not start, and gives what it said.
async fn refused(launch: Launch) -> String {
    let (status, said) = launch.end().await;
    assert!(!status.success(), "{said}");
    assert!(status.code().is_some(), "{status}: {said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

#[track_caller]
fn assert_says(said: &str, texts: &[&str]) {
    for text in texts {
        assert!(said.contains(text), "{text}:\n{said}");
    }
}

#[tokio::test]
async fn c1_a_typo_a_bad_value_and_an_unknown_provider_are_one_error() {
    let file = "[XiHan.Caching]\nProvider = \"inmemroy\"\nDefaultTimeToLiveSeconds = -5\n\
                [XiHan.Caching.Idempotency]\nTimeToLiveSecond = 1\n\
                [Orders]\nReportSeconds = -1\n";
    let said = refused(Launch::new().file("xihan.toml", file)).await;
    assert_eq!(said.matches("ERROR").count(), 1, "{said}");
    assert_says(
        &said,
        &[
            "4 problems",
            "XiHan:Caching:Provider (xihan.toml, line 2): no provider `inmemroy` is registered",
            "did you mean `inmemory`",
            "XiHan:Caching:DefaultTimeToLiveSeconds (xihan.toml, line 3): `-5` is not positive",
            "set it to a number of seconds above 0",
            "XiHan:Caching:Idempotency:TimeToLiveSecond (xihan.toml, line 5): is no known setting",
            "did you mean XiHan:Caching:Idempotency:TimeToLiveSeconds",
            "Orders:ReportSeconds: `-1` is not valid",
        ],
    );
}

#[tokio::test]
async fn r2_a_selected_provider_without_its_address_names_the_setting() {
    for (provider, setting) in [("redis", "Redis:Url"), ("remote", "Remote:Endpoint")] {
        let launch = Launch::new().environment("XIHAN__CACHING__PROVIDER", provider);
        let said = refused(launch).await;
        assert_says(&said, &[&format!("XiHan:Caching:{setting}"), "is not set"]);
    }
}

#[tokio::test]
async fn c1_settings_of_a_provider_that_is_not_selected_are_known() {
    let file = "[XiHan.Caching.Redis]\nUrl = \"redis://:secret@localhost\"\n";
    let service = Launch::new().file("xihan.toml", file).start().await;
    assert!(!service.log().contains("secret"), "{}", service.log());
    service.stop().await;
}

#[tokio::test]
async fn the_services_own_settings_are_checked_too() {
    let file = "[Orders]\nHttpPort = 70000\nReportSeconds = \"soon\"\nOrderDelay = 1\n";
    let said = refused(Launch::without_port().file("xihan.toml", file)).await;
    assert_says(
        &said,
        &[
            "Orders:HttpPort",
            "Orders:ReportSeconds",
            "Orders:OrderDelay (",
            "3 problems",
        ],
    );
}

#[tokio::test]
async fn c1_a_file_that_cannot_be_read_is_named() {
    let said = refused(Launch::new().arguments(["--config", "nowhere.toml"])).await;
    assert_says(
        &said,
        &[
            "nowhere.toml",
            "cannot be read",
            "name a file that is there",
        ],
    );
    let said = refused(Launch::new().environment("XIHAN_CONFIG", "nowhere.json")).await;
    assert_says(&said, &["nowhere.json", "cannot be read"]);
    let said = refused(Launch::new().file("xihan.toml", "[XiHan\n")).await;
    assert_says(&said, &["xihan.toml, line 1", "not valid TOML"]);
}

#[tokio::test]
async fn an_error_is_said_whatever_is_logged_of_other_modules() {
    for filter in ["hyper=debug", "error", ",,=%"] {
        let launch = Launch::new().environment("RUST_LOG", filter);
        let said = refused(launch.arguments(["--config", "nowhere.toml"])).await;
        assert_says(&said, &["nowhere.toml"]);
    }
}

#[tokio::test]
async fn a_port_in_use_names_the_option_for_another() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = refused(Launch::without_port().arguments(["--http-port", &port])).await;
    assert_says(&said, &[&port, "--http-port", "in use"]);
}

#[tokio::test]
async fn the_command_line_explains_itself() {
    let (status, said) = Launch::new().arguments(["--help"]).end().await;
    assert!(status.success());
    let options = [
        "--config",
        "--http-port",
        "--order-delay-milliseconds",
        "--report-seconds",
    ];
    assert_says(&said, &options);
    let (status, said) = Launch::new().arguments(["--http-prot", "1"]).end().await;
    assert_eq!(status.code(), Some(2));
    assert_says(&said, &["--http-prot", "--http-port"]);
}
