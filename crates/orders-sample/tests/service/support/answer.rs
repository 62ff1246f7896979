use serde_json::Value;

/// An answer, read whole.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// `HTTP/1.1 201 Created`
    pub(crate) status_line: String,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The value of a header; several lines are a mistake.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(other, _)| other == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert_eq!(values.next(), None, "{name} twice: {self:?}");
        value
    }

    /// `true`, `false` or nothing: whether the answer is a replay.
    pub(crate) fn replayed(&self) -> Option<bool> {
        self.header("idempotency-replayed")
            .map(|value| value.parse().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The id of the order that was placed.
    #[track_caller]
    pub(crate) fn placed(&self) -> String {
        assert_eq!(self.status, 201, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        let id = self.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(self.header("location"), Some(&*format!("/orders/{id}")));
        id
    }

    /// Checks that this is a whole problem with this status and code (X1), and gives it.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{self:?}"
        );
        assert!(self.header("content-language").is_some(), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(
            problem["type"],
            format!("urn:xihan:problem:{code}"),
            "{problem}"
        );
        assert_eq!(problem["status"], status, "{problem}");
        for name in ["title", "detail", "instance", "messageKey"] {
            assert!(
                problem[name].as_str().is_some_and(|text| !text.is_empty()),
                "{problem}"
            );
        }
        assert!(problem["parameters"].is_object(), "{problem}");
        assert_eq!(problem["traceId"].as_str().unwrap().len(), 32, "{problem}");
        problem
    }

    /// Checks that a call with the same key is in progress, with a hint when to retry (P7, X1).
    #[track_caller]
    pub(crate) fn in_progress(&self) {
        let problem = self.problem(409, "CACHING_CONFLICT_002");
        assert_eq!(problem["messageKey"], "caching.idempotency.in_progress");
        let seconds: u64 = self.header("retry-after").unwrap().parse().unwrap();
        assert!(seconds >= 1, "{self:?}");
        assert_eq!(self.replayed(), None, "{self:?}");
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.status_line)?;
        for (name, value) in &self.headers {
            writeln!(f, "{name}: {value}")?;
        }
        write!(f, "\n{}", String::from_utf8_lossy(&self.body))
    }
}
