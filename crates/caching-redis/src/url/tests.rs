use super::*;

fn parse(url: &str) -> Target {
    Target::parse(url).unwrap_or_else(|problems| panic!("{url}: {problems:?}"))
}

fn at(host: &str, port: u16) -> Address {
    Address {
        host: host.to_owned(),
        port,
    }
}

/// The problems as one text.
fn refused(url: &str) -> String {
    match Target::parse(url) {
        Ok(target) => panic!("{url} is taken for {target:?}"),
        Err(problems) => {
            assert!(!problems.is_empty(), "{url}");
            problems
                .iter()
                .map(|problem| format!("{}; {}\n", problem.rule, problem.remedy))
                .collect()
        }
    }
}

#[test]
fn a_single_server_in_all_its_forms() {
    assert_eq!(parse("redis://h").topology, Topology::Single(at("h", 6379)));
    assert_eq!(
        parse("redis://h:7000/").topology,
        Topology::Single(at("h", 7000))
    );
    assert_eq!(
        parse("valkey://10.0.0.1").topology,
        Topology::Single(at("10.0.0.1", 6379))
    );
    assert!(parse("rediss://h").is_tls);
    assert!(parse("valkeys://h").is_tls);
    assert!(!parse("redis://h").is_tls);
}

#[test]
fn an_ipv6_address_stands_in_brackets() {
    let target = parse("redis://[::1]:7000/3");
    assert_eq!(target.topology, Topology::Single(at("::1", 7000)));
    assert_eq!(parse("redis://[fe80::1]").database, 0);
    assert_eq!(at("::1", 7).to_string(), "[::1]:7");
    let nodes = parse("redis-cluster://[::1]:1?node=[::2]:2").topology;
    assert_eq!(nodes, Topology::Cluster(vec![at("::1", 1), at("::2", 2)]));
    for url in [
        "redis://::1",
        "redis://[::1",
        "redis://[::1]7",
        "redis://[h]:1",
    ] {
        refused(url);
    }
    refused("redis://[fe80::1%25eth0]:1");
}

#[test]
fn a_database_is_0_to_255() {
    assert_eq!(parse("redis://h/0").database, 0);
    assert_eq!(parse("redis://h/255").database, 255);
    for path in ["256", "-1", "x", "01", "1/2", "0x1", "+1"] {
        assert!(refused(&format!("redis://h/{path}")).contains("/0 to /255"));
    }
    assert!(refused("redis-cluster://h/1").contains("would be ignored"));
    assert_eq!(parse("redis-cluster://h/0").database, 0);
    assert_eq!(
        parse("redis-sentinel://h/7?sentinelServiceName=s").database,
        7
    );
}

#[test]
fn user_and_password_are_percent_decoded() {
    let login = |url: &str| {
        let login = parse(url).login;
        (login.user, login.password.map(|p| p.expose().to_owned()))
    };
    let pair =
        |user: Option<&str>, password: &str| (user.map(str::to_owned), Some(password.to_owned()));
    assert_eq!(login("redis://h"), (None, None));
    assert_eq!(login("redis://:pw@h"), pair(None, "pw"));
    assert_eq!(login("redis://u:pw@h"), pair(Some("u"), "pw"));
    assert_eq!(
        login("redis://a%3Ab:p%40%2F%3F%23%25%20%C3%A9@h"),
        pair(Some("a:b"), "p@/?#% é")
    );
    assert!(refused("redis://pw@h").contains("without a password"));
    for url in [
        "redis://u:@h",
        "redis://u:a%@h",
        "redis://u:a%2@h",
        "redis://u:a%zz@h",
        "redis://u:%ff@h",
    ] {
        refused(url);
    }
}

#[test]
fn a_raw_character_in_a_password_is_refused_and_not_shown() {
    for url in [
        "redis://:se/cret@h",
        "redis://:se?cret@h",
        "redis://:se#cret@h",
        "redis://:se@cret@h",
        "redis://:se:cret@h",
        "redis://:se cret@h",
        "redis://:se%cret@h",
        "redis://:secret@h?timeout=secret@x",
    ] {
        let text = refused(url);
        assert!(!text.contains("cret"), "{url}: {text}");
    }
}

#[test]
fn what_would_be_ignored_is_named() {
    assert!(refused("redis://h?timeout=5").contains("`timeout` would be ignored"));
    assert!(refused("redis://h?node=a:1").contains("`node` would be ignored"));
    assert!(refused("redis://h?sentinelServiceName=s").contains("`sentinelServiceName`"));
    assert!(refused("redis-cluster://h?sentinelServiceName=s").contains("`sentinelServiceName`"));
    assert!(refused("redis://a,b").contains("several hosts"));
    assert!(
        refused("redis://h?db=1&protocol=3")
            .matches("ignored")
            .count()
            == 2
    );
    let alone = "redis-sentinel://h?sentinelServiceName=s&sentinelUsername=u";
    assert!(refused(alone).contains("`sentinelUsername`"));
    assert!(refused("redis-cluster://h?node=").contains("`node` is empty"));
}

#[test]
fn an_unknown_scheme_is_named_with_the_known_ones() {
    for url in ["redis+cluster://h", "http://h", "unix:///run/redis.sock"] {
        assert!(refused(url).contains("redis-cluster://"), "{url}");
    }
    assert!(refused("redis+cluster://h").contains("`redis+cluster://`"));
    refused("localhost:6379");
    refused("");
    assert!(!refused("user:secret@x://h").contains("secret"));
}

#[test]
fn a_cluster_names_several_nodes() {
    let expected = Topology::Cluster(vec![at("a", 1), at("b", 2), at("c", 6379)]);
    assert_eq!(
        parse("redis-cluster://a:1?node=b:2&node=c").topology,
        expected
    );
    assert_eq!(parse("redis-cluster://a:1,b:2,c").topology, expected);
    assert!(parse("rediss-cluster://a:1").is_tls);
}

#[test]
fn sentinels_have_a_service_and_a_login_of_their_own() {
    let target = parse(
        "redis-sentinel://u:pw@a,b:2/4?node=c:3&sentinelServiceName=main\
         &sentinelUsername=su&sentinelPassword=s%20p",
    );
    let Topology::Sentinel {
        sentinels,
        service,
        login,
    } = target.topology
    else {
        panic!("no sentinels");
    };
    assert_eq!(sentinels, [at("a", 26379), at("b", 2), at("c", 3)]);
    assert_eq!(service, "main");
    assert_eq!(login.user.as_deref(), Some("su"));
    assert_eq!(login.password.unwrap().expose(), "s p");
    assert_eq!(target.login.user.as_deref(), Some("u"));
    assert!(refused("redis-sentinel://a").contains("sentinelServiceName"));
    let twice = "redis-sentinel://a?sentinelServiceName=s&sentinelServiceName=t";
    assert!(refused(twice).contains("comes twice"));
}

#[test]
fn ports_and_hosts_are_checked_and_all_problems_are_told() {
    for url in [
        "redis://",
        "redis://:7",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:x",
    ] {
        refused(url);
    }
    refused("redis://h:");
    refused("redis://%68");
    let text = refused("redis://:@h:0/999?x=1");
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn x3_no_secret_is_printed() {
    let target = parse("redis-sentinel://u:pass1@a?sentinelServiceName=s&sentinelPassword=pass2");
    let text = format!("{target:?}");
    assert!(!text.contains("pass1") && !text.contains("pass2"), "{text}");
}
