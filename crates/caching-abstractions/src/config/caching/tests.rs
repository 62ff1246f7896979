use std::path::PathBuf;

use super::*;
use crate::expiration::{milliseconds, seconds};

fn problems(toml: &str) -> Vec<String> {
    problems_of(&Configuration::from_toml(toml).unwrap())
}

fn problems_of(configuration: &Configuration) -> Vec<String> {
    match CachingSettings::from_configuration(configuration) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems().iter().map(ToString::to_string).collect(),
    }
}

/// The only problem, which has to hold every one of `parts`.
fn only(toml: &str, parts: &[&str]) {
    let problems = problems(toml);
    assert_eq!(problems.len(), 1, "{toml}: {problems:?}");
    for part in parts {
        assert!(problems[0].contains(part), "no {part} in {}", problems[0]);
    }
}

fn write(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("xihan-{name}-{}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn c1_nothing_configured_gives_every_default() {
    let settings = CachingSettings::from_configuration(&Configuration::empty()).unwrap();
    assert_eq!(settings, CachingSettings::default());
}

#[test]
fn c1_every_setting_of_the_table_is_read() {
    let configuration = Configuration::from_toml(
        "[XiHan.Caching]\nProvider = 'redis'\nDefaultTimeToLiveSeconds = 60\nKeyPrefix = 'shop'\n\
         [XiHan.Caching.Idempotency]\nTimeToLiveSeconds = 10\nInProgressTimeToLiveSeconds = 2\n\
         MaxExecutionSeconds = 5\nMaxRecordedResponseBytes = 7\nMaxRequestBytes = 8\n\
         ShutdownSeconds = 0\nAcceptIdempotencyKeyHeader = true\nFingerprint = true\n\
         MaxWaitSeconds = 1.5\n\
         [XiHan.Caching.InMemory]\nMaxCapacityBytes = 1\nMaxProtectedBytes = 2\n\
         [XiHan.Caching.Redis]\nUrl = 'redis://localhost'\nRequireNoEviction = true\n\
         OperationTimeoutMilliseconds = 100\n\
         [XiHan.Caching.Remote]\nEndpoint = 'grpcs://host:1'\nToken = 't'\n\
         OperationTimeoutMilliseconds = 200\nMaxMessageBytes = 9",
    )
    .unwrap();
    let settings = CachingSettings::from_configuration(&configuration).unwrap();
    assert_eq!(settings.provider.as_deref(), Some("redis"));
    let default = settings.default_time_to_live.unwrap();
    assert_eq!(default.as_duration(), seconds(60));
    assert_eq!(settings.key_prefix.unwrap().as_str(), "shop");
    let idempotency = settings.idempotency;
    assert_eq!(idempotency.time_to_live.as_millis(), 10_000);
    assert_eq!(idempotency.in_progress_time_to_live.as_millis(), 2000);
    assert_eq!(idempotency.max_execution, seconds(5));
    assert_eq!(idempotency.max_recorded_response_bytes, 7);
    assert_eq!(idempotency.max_request_bytes, 8);
    assert_eq!(idempotency.shutdown, seconds(0));
    assert!(idempotency.accept_idempotency_key_header && idempotency.fingerprint);
    assert_eq!(idempotency.max_wait, milliseconds(1500));
    assert_eq!(settings.in_memory.max_capacity_bytes, 1);
    assert_eq!(settings.in_memory.max_protected_bytes, 2);
    assert_eq!(settings.redis.url.unwrap().expose(), "redis://localhost");
    assert!(settings.redis.require_no_eviction);
    assert_eq!(settings.redis.operation_timeout, milliseconds(100));
    assert_eq!(settings.remote.endpoint.as_deref(), Some("grpcs://host:1"));
    assert_eq!(settings.remote.token.unwrap().expose(), "t");
    assert_eq!(settings.remote.operation_timeout, milliseconds(200));
    assert_eq!(settings.remote.max_message_bytes, 9);
}

#[test]
fn c1_the_environment_gives_numbers_and_truth_values_as_text() {
    let configuration = Configuration::empty().environment([
        ("XIHAN__CACHING__IDEMPOTENCY__TIMETOLIVESECONDS", "60"),
        ("XIHAN__CACHING__IDEMPOTENCY__FINGERPRINT", "True"),
        ("XIHAN__CACHING__INMEMORY__MAXCAPACITYBYTES", "1024"),
    ]);
    let settings = CachingSettings::from_configuration(&configuration).unwrap();
    assert_eq!(settings.idempotency.time_to_live.as_millis(), 60_000);
    assert!(settings.idempotency.fingerprint);
    assert_eq!(settings.in_memory.max_capacity_bytes, 1024);
}

#[test]
fn c1_a_value_of_a_wrong_type_names_key_line_value_and_rule() {
    only(
        "[XiHan.Caching.Idempotency]\nTimeToLiveSeconds = 'soon'",
        &[
            "XiHan:Caching:Idempotency:TimeToLiveSeconds (configuration, line 2)",
            "`soon` is no number",
            "seconds above 0",
            "default 86400",
        ],
    );
    only("[XiHan.Caching]\nProvider = 5", &["Provider", "no text"]);
    only("[XiHan.Caching]\nProvider = ''", &["Provider", "empty"]);
    only("[XiHan.Caching]\nProvider = ['a']", &["Provider", "a list"]);
    only(
        "[XiHan.Caching.Idempotency]\nFingerprint = 1",
        &["Fingerprint", "`1`", "true or false"],
    );
    only(
        "[XiHan.Caching.InMemory]\nMaxCapacityBytes = 1.5",
        &["MaxCapacityBytes", "`1.5` is no whole number"],
    );
    only("[XiHan.Caching]\nIdempotency = 5", &["is a section"]);
    only("[XiHan]\nCaching = 'redis'", &["is a section"]);
    only("XiHan = 1", &["is a section"]);
}

#[test]
fn c1_what_is_not_positive_is_refused() {
    for value in ["0", "-1", "0.0", "nan", "'-5'"] {
        for key in ["TimeToLiveSeconds", "InProgressTimeToLiveSeconds"] {
            let toml = format!("[XiHan.Caching.Idempotency]\n{key} = {value}");
            only(&toml, &[key, "is not positive"]);
        }
        let toml = format!("[XiHan.Caching]\nDefaultTimeToLiveSeconds = {value}");
        only(&toml, &["DefaultTimeToLiveSeconds", "is not positive"]);
    }
    only(
        "[XiHan.Caching.InMemory]\nMaxProtectedBytes = 0",
        &["MaxProtectedBytes", "not positive"],
    );
    only(
        "[XiHan.Caching.Redis]\nOperationTimeoutMilliseconds = 0",
        &["OperationTimeoutMilliseconds", "not positive"],
    );
}

#[test]
fn c1_what_may_be_zero_may_not_be_negative() {
    for key in ["ShutdownSeconds", "MaxWaitSeconds"] {
        let toml = |value: &str| format!("[XiHan.Caching.Idempotency]\n{key} = {value}");
        assert!(problems(&toml("0")).is_empty());
        only(&toml("-0.5"), &[key, "`-0.5` is negative"]);
    }
}

#[test]
fn e3_more_than_a_hundred_years_is_refused_and_decimals_round_up() {
    only(
        "[XiHan.Caching.Idempotency]\nTimeToLiveSeconds = 3155760001",
        &["more than 100 years"],
    );
    let configuration = Configuration::from_toml(
        "[XiHan.Caching]\nDefaultTimeToLiveSeconds = 0.0015\n\
         [XiHan.Caching.Redis]\nOperationTimeoutMilliseconds = 1.2",
    )
    .unwrap();
    let settings = CachingSettings::from_configuration(&configuration).unwrap();
    assert_eq!(settings.default_time_to_live.unwrap().as_millis(), 2);
    assert_eq!(settings.redis.operation_timeout, milliseconds(2));
}

#[test]
fn c1_an_unknown_key_is_refused_with_the_one_that_is_meant() {
    only(
        "[XiHan.Caching]\nProvder = 'redis'",
        &[
            "XiHan:Caching:Provder",
            "did you mean XiHan:Caching:Provider",
        ],
    );
    only(
        "[XiHan.Caching.Idempotensy]\nFingerprint = true",
        &["did you mean XiHan:Caching:Idempotency:Fingerprint"],
    );
    only(
        "[XiHan.Cachng]\nProvider = 'redis'",
        &["did you mean XiHan:Caching"],
    );
    only(
        "[XiHan.Caching]\nColour = 'red'",
        &["Colour", "no known setting"],
    );
    let environment = [("XIHAN__CACHING__PROVDER", "redis")];
    let problems = problems_of(&Configuration::empty().environment(environment));
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("environment variable XIHAN__CACHING__PROVDER"));
    assert!(problems[0].contains("did you mean XiHan:Caching:Provider"));
}

#[test]
fn c1_a_variable_is_named_beside_the_key() {
    let environment = [("XIHAN__CACHING__IDEMPOTENCY__TIMETOLIVESECONDS", "0")];
    let problems = problems_of(&Configuration::empty().environment(environment));
    assert_eq!(
        problems,
        [
            "XiHan:Caching:Idempotency:TimeToLiveSeconds (environment variable \
          XIHAN__CACHING__IDEMPOTENCY__TIMETOLIVESECONDS): `0` is not positive; \
          set it to a number of seconds above 0 (default 86400)"
        ]
    );
}

#[test]
fn c1_settings_of_a_provider_that_is_not_selected_are_known_and_its_files_stay_closed() {
    let toml = |provider: &str| {
        format!(
            "[XiHan.Caching]\n{provider}\n[XiHan.Caching.Redis]\nUrlFile = '/nowhere/url'\n\
             CaFile = '/nowhere/ca'\n[XiHan.Caching.Remote]\nTokenFile = '/nowhere/token'"
        )
    };
    assert!(problems(&toml("Provider = 'inmemory'")).is_empty());
    assert_eq!(problems(&toml("Provider = 'Redis'")).len(), 2);
    assert_eq!(problems(&toml("Provider = 'remote'")).len(), 1);
    assert_eq!(problems(&toml("")).len(), 3);
}

#[test]
fn c1_the_longest_execution_is_at_least_the_time_in_progress() {
    only(
        "[XiHan.Caching.Idempotency]\nMaxExecutionSeconds = 30",
        &[
            "MaxExecutionSeconds (configuration, line 2)",
            "30 s",
            "at least 60",
        ],
    );
    only(
        "[XiHan.Caching.Idempotency]\nInProgressTimeToLiveSeconds = 7200",
        &["MaxExecutionSeconds (not set)", "3600 s", "at least 7200"],
    );
    let same =
        "[XiHan.Caching.Idempotency]\nMaxExecutionSeconds = 5\nInProgressTimeToLiveSeconds = 5";
    assert!(problems(same).is_empty());
}

#[test]
fn c1_the_server_decides_the_default_of_the_provider_remote() {
    let toml = |provider: &str| {
        format!("[XiHan.Caching]\nProvider = '{provider}'\nDefaultTimeToLiveSeconds = 60")
    };
    only(&toml("remote"), &["DefaultTimeToLiveSeconds", "server"]);
    assert!(problems(&toml("redis")).is_empty());
    let unnamed =
        Configuration::from_toml("[XiHan.Caching]\nDefaultTimeToLiveSeconds = 60").unwrap();
    assert!(problems_of(&unnamed).is_empty());
    let (_, problems) = CachingSettings::read(&unnamed, Some("remote"));
    assert_eq!(problems.len(), 1);
}

#[test]
fn k4_a_bad_prefix_says_which_rule_it_breaks() {
    only(
        "[XiHan.Caching]\nKeyPrefix = 'a:b'",
        &["KeyPrefix", "`a:b`", "no `:`"],
    );
    only(
        "[XiHan.Caching]\nKeyPrefix = \"a\\nb\"",
        &["KeyPrefix", "white space"],
    );
    only("[XiHan.Caching]\nKeyPrefix = ''", &["KeyPrefix", "empty"]);
}

#[test]
fn c1_an_endpoint_names_one_of_four_schemes_and_shows_no_password() {
    only(
        "[XiHan.Caching.Remote]\nEndpoint = 'ftp://host'",
        &["Endpoint", "`ftp://host`", "grpcs://"],
    );
    only(
        "[XiHan.Caching.Remote]\nEndpoint = 'https://'",
        &["Endpoint"],
    );
    let text = problems("[XiHan.Caching.Remote]\nEndpoint = 'tcp://u:hunter2@host'").remove(0);
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn c2_a_secret_can_come_from_a_file() {
    let file = write("url", "redis://:hunter2@host\r\n");
    let configuration = Configuration::empty().with("XiHan:Caching:Redis:UrlFile", file.display());
    let settings = CachingSettings::from_configuration(&configuration).unwrap();
    let _ = std::fs::remove_file(&file);
    let debug = format!("{settings:?}");
    assert!(
        debug.contains("***") && !debug.contains("hunter2"),
        "{debug}"
    );
    assert_eq!(
        settings.redis.url.unwrap().expose(),
        "redis://:hunter2@host"
    );
}

#[test]
fn c2_a_secret_that_is_wrong_is_never_shown() {
    let empty = write("empty", "\n");
    let cases = [
        "Url = 'hunter2'\nUrlFile = '/nowhere'".to_owned(),
        "UrlFile = '/nowhere'".to_owned(),
        format!("UrlFile = '{}'", empty.display()),
        "Url = ''".to_owned(),
        "Url = ['hunter2']".to_owned(),
        "Ulr = 'hunter2'".to_owned(),
    ];
    for case in cases {
        let problems = problems(&format!("[XiHan.Caching.Redis]\n{case}"));
        assert_eq!(problems.len(), 1, "{case}: {problems:?}");
        assert!(
            problems[0].contains("XiHan:Caching:Redis:U"),
            "{problems:?}"
        );
        assert!(!problems[0].contains("hunter2"), "{problems:?}");
    }
    let _ = std::fs::remove_file(&empty);
}

#[test]
fn c1_all_problems_come_at_once() {
    let problems = problems(
        "[XiHan.Caching]\nProvder = 'redis'\nKeyPrefix = ' '\n\
         [XiHan.Caching.Idempotency]\nTimeToLiveSeconds = 0\nFingerprint = 'maybe'\n\
         [XiHan.Caching.Redis]\nUrl = 'x'\nUrlFile = 'y'",
    );
    assert_eq!(problems.len(), 5, "{problems:?}");
}
