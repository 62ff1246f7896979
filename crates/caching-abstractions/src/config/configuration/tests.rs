use super::*;

fn text(configuration: &Configuration, section: &str, key: &str) -> Option<String> {
    configuration.section(section).text(key).unwrap()
}

/// A directory of its own that is gone with the test.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("xihan-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> std::path::PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const NOTHING: [(&str, &str); 0] = [];

#[test]
fn c1_toml_and_json_give_the_same_settings() {
    let toml = Configuration::from_toml(
        "[XiHan.Caching]\nProvider = 'redis'\n[XiHan.Caching.Idempotency]\nTimeToLiveSeconds = 1_000\n\
         MaxWaitSeconds = 1.5\nFingerprint = true\n[Orders]\nHosts = ['a', 'b']\nDay = 2026-10-31",
    )
    .unwrap();
    let json = Configuration::from_json(
        r#"{"XiHan": {"Caching": {"Provider": "redis", "KeyPrefix": null, "Idempotency":
            {"TimeToLiveSeconds": 1000, "MaxWaitSeconds": 1.5, "Fingerprint": true}}},
            "Orders": {"Hosts": ["a", "b"], "Day": "2026-10-31"}}"#,
    )
    .unwrap();
    for configuration in [toml, json] {
        let read = |key: &str| text(&configuration, "XiHan:Caching", key);
        assert_eq!(read("Provider").as_deref(), Some("redis"));
        assert_eq!(read("KeyPrefix"), None);
        assert_eq!(
            read("Idempotency:TimeToLiveSeconds").as_deref(),
            Some("1000")
        );
        assert_eq!(read("Idempotency:MaxWaitSeconds").as_deref(), Some("1.5"));
        assert_eq!(read("Idempotency:Fingerprint").as_deref(), Some("true"));
        let orders = |key: &str| text(&configuration, "Orders", key);
        assert_eq!(orders("Hosts:1").as_deref(), Some("b"));
        assert_eq!(orders("Day").as_deref(), Some("2026-10-31"));
    }
}

#[test]
fn c1_a_file_may_write_whole_keys_and_hexadecimal_numbers() {
    let configuration =
        Configuration::from_toml("'XiHan:Caching:Provider' = 'redis'\n[Orders]\nMask = 0xFF")
            .unwrap();
    assert_eq!(
        text(&configuration, "XiHan:Caching", "Provider").as_deref(),
        Some("redis")
    );
    let mask = configuration.section("Orders").parse::<u8>("Mask").unwrap();
    assert_eq!(mask, Some(255));
}

#[test]
fn c1_the_environment_wins_in_any_case() {
    for name in ["XIHAN__CACHING__PROVIDER", "XiHan__Caching__Provider"] {
        let configuration = Configuration::from_toml("[XiHan.Caching]\nProvider = 'inmemory'")
            .unwrap()
            .environment([(name, "redis")]);
        assert_eq!(
            text(&configuration, "xihan:caching", "PROVIDER").as_deref(),
            Some("redis")
        );
    }
}

#[test]
fn c1_code_wins_and_a_default_gives_way() {
    let configuration = Configuration::from_toml("[Orders]\nPort = 1")
        .unwrap()
        .with("Orders:Code", "code")
        .with_default("Orders:Port", 3)
        .with_default("Orders:Delay", 4)
        .environment([("ORDERS__CODE", "environment")]);
    let orders = configuration.section("Orders");
    assert_eq!(orders.parse::<u16>("Port").unwrap(), Some(1));
    assert_eq!(orders.parse::<u16>("Delay").unwrap(), Some(4));
    assert_eq!(orders.text("Code").unwrap().as_deref(), Some("code"));
}

#[test]
fn c1_variables_that_are_no_settings_are_passed_over() {
    let configuration = Configuration::empty().environment([
        ("PATH", "/bin"),
        ("__CF_USER_TEXT_ENCODING", "0"),
        ("A____B", "1"),
        ("XIHAN_CONFIG", "elsewhere.toml"),
    ]);
    assert_eq!(format!("{configuration:?}"), "{}");
    assert!(configuration.problems().is_empty());
}

#[test]
fn c1_single_underscores_are_noticed() {
    let configuration = Configuration::empty().environment([("XIHAN_CACHING_PROVIDER", "redis")]);
    let problems = configuration.problems();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].to_string().contains("two underscores"));
}

#[test]
fn c1_a_setting_given_twice_is_a_problem() {
    let toml = Configuration::from_toml("[A]\nPort = 1\nport = 2").unwrap_err();
    assert!(toml.to_string().contains("line 3"), "{toml}");
    let json = Configuration::from_json(r#"{"A": {"Port": 1, "Port": 2}}"#).unwrap_err();
    assert!(json.to_string().contains("A:Port"), "{json}");
    let environment = Configuration::empty().environment([("A__B", "1"), ("a__b", "2")]);
    assert_eq!(environment.problems().len(), 1);
}

#[test]
fn c1_the_named_file_is_read_else_the_one_in_the_directory_if_it_is_there() {
    let directory = Directory::new("load");
    let nothing = Configuration::load_in(&directory.0, NOTHING).unwrap();
    assert_eq!(format!("{nothing:?}"), "{}");

    directory.write("xihan.toml", "[Orders]\nFrom = 'default'");
    let default = Configuration::load_in(&directory.0, NOTHING).unwrap();
    assert_eq!(text(&default, "Orders", "From").as_deref(), Some("default"));

    let other = directory.write("other.json", r#"{"Orders": {"From": "named"}}"#);
    let other = other.to_str().unwrap();
    let named = Configuration::load_in(&directory.0, [("XIHAN_CONFIG", other)]).unwrap();
    assert_eq!(text(&named, "Orders", "From").as_deref(), Some("named"));

    let variables = [("XIHAN_CONFIG", other), ("ORDERS__FROM", "environment")];
    let both = Configuration::load_in(&directory.0, variables).unwrap();
    assert_eq!(
        text(&both, "Orders", "From").as_deref(),
        Some("environment")
    );
}

#[test]
fn c1_a_named_file_that_is_not_there_is_an_error_with_its_path() {
    let directory = Directory::new("missing");
    let missing = [("XIHAN_CONFIG", "nowhere.toml")];
    let error = Configuration::load_in(&directory.0, missing).unwrap_err();
    assert!(error.to_string().contains("nowhere.toml"), "{error}");
    let yaml = directory.write("settings.yaml", "");
    let error = Configuration::from_file(yaml).unwrap_err();
    assert!(error.to_string().contains("*.toml or *.json"), "{error}");
}

#[test]
fn c1_a_syntax_error_names_path_and_line_and_quotes_nothing() {
    let directory = Directory::new("syntax");
    let toml = directory.write("bad.toml", "[A]\nToken = 'hunter2\nB = 1");
    let json = directory.write("bad.json", "{\n  \"Token\": \"hunter2\"\n  \"B\": 1 }");
    for (path, line) in [(toml, "line 2"), (json, "line 3")] {
        let text = Configuration::from_file(&path).unwrap_err().to_string();
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        assert!(text.contains(line), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert!(Configuration::from_json("[1]").is_err());
}

#[test]
fn c1_a_byte_order_mark_is_no_error() {
    assert!(Configuration::from_json("\u{feff}{}").is_ok());
    assert!(Configuration::from_toml("\u{feff}[A]\nB = 1").is_ok());
}

#[test]
fn c1_a_program_that_names_its_sections_hears_of_others() {
    let configuration =
        Configuration::from_toml("[Ordres]\nPort = 1\nDelay = 2\n[XiHan.Other]\nA = 1")
            .unwrap()
            .environment([("K8S__NAME", "pod")]);
    assert!(configuration.problems().is_empty());
    let problems = configuration.owning(["Orders"]).problems();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].to_string().contains("did you mean Orders"));
}

#[test]
fn c1_an_application_reads_its_own_section() {
    let configuration =
        Configuration::from_toml("[Orders]\nPort = 'many'\nDely = 1\n[Orders.Deep]\nA = 1")
            .unwrap()
            .environment([("ORDERS__DEEP__B", "yes")]);
    let orders = configuration.section("Orders");
    let error = orders.parse::<u16>("Port").unwrap_err().to_string();
    for part in ["Orders:Port", "line 2", "many", "u16"] {
        assert!(error.contains(part), "{error}");
    }
    let deep = orders.section("Deep");
    assert_eq!(deep.text("b").unwrap().as_deref(), Some("yes"));
    let error = orders.text("Deep").unwrap_err().to_string();
    assert!(error.contains("section"), "{error}");
    let unknown = orders.unknown_keys(&["Port", "Delay", "Deep:A", "Deep:B"]);
    assert_eq!(unknown.len(), 1);
    assert!(unknown[0].remedy().contains("Orders:Delay"));
}

#[cfg(unix)]
#[test]
fn c1_a_value_that_is_no_unicode_is_a_problem_where_it_is_read() {
    use std::os::unix::ffi::OsStrExt;
    let configuration = Configuration::empty()
        .environment([(OsStr::new("ORDERS__NAME"), OsStr::from_bytes(b"\xff"))]);
    let error = configuration.section("Orders").text("Name").unwrap_err();
    assert!(error.to_string().contains("Unicode"), "{error}");
}

#[test]
fn c2_debug_prints_no_value() {
    let configuration = Configuration::empty().with("XiHan:Caching:Redis:Url", "hunter2");
    assert!(!format!("{configuration:?}").contains("hunter2"));
}
