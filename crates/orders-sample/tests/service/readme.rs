//! The walk of the README: each command is run, and answered as the page says.

use futures_util::future::join_all;

use crate::support::{Answer, Request, Service, eventually};

const README: &str = include_str!("../../../../README.md");

#[tokio::test]
async fn every_command_of_the_readme_is_answered_as_it_says() {
    let service = Service::start().await;
    let (mut written, mut real) = (Names::default(), Names::default());
    let mut check = |step: &Step, output: &str| {
        let (expected, output) = (written.replace(&step.output), real.replace(output));
        assert_eq!(output, expected, "the output of `{}`", step.command);
    };
    let steps = steps(README);
    assert!(steps.len() >= 7, "{steps:?}");
    let mut steps = steps.iter();
    while let Some(step) = steps.next() {
        if step.is_on_two_terminals {
            let second = steps.next().expect("the second terminal");
            let (first, then) = tokio::join!(run(&service, step), async {
                until_report_runs(&service).await;
                run(&service, second).await
            });
            check(step, &first);
            check(second, &then);
        } else {
            check(step, &run(&service, step).await);
        }
    }
}

async fn until_report_runs(service: &Service) {
    let series = "xihan_caching_lock_acquisitions_total{outcome=\"acquired\"}";
    eventually("the report", async || {
        (service.metrics().await.value(series) > 0.0).then_some(())
    })
    .await;
}

/// A command line and what it prints.
#[derive(Debug)]
struct Step {
    command: String,
    output: String,
    is_on_two_terminals: bool,
}

/// The commands in the `console` blocks of a page.
fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut is_in_block, mut is_on_two_terminals) = (false, false);
    for line in page.lines() {
        if line == "```console" {
            is_in_block = true;
        } else if line == "```" {
            is_in_block = false;
        } else if let (true, Some(command)) = (is_in_block, line.strip_prefix("$ ")) {
            let command = command.to_owned();
            steps.push(Step {
                command,
                output: String::new(),
                is_on_two_terminals,
            });
        } else if is_in_block {
            let step = steps.last_mut().expect("a command first");
            step.output.push_str(line);
            step.output.push('\n');
        } else if !line.is_empty() {
            is_on_two_terminals = line.contains("on two terminals");
        }
    }
    steps
}

async fn run(service: &Service, step: &Step) -> String {
    let command = &*step.command;
    let Some(race) = command.strip_prefix("seq ") else {
        let curl = Curl::parse(command);
        return curl.output(&service.send(&curl.request).await);
    };
    let (count, race) = race.split_once(" | xargs -P ").unwrap();
    let curl = race.strip_prefix(&format!("{count} -I{{}} ")).unwrap();
    let curl = Curl::parse(curl.strip_suffix(" | sort | uniq -c").unwrap());
    let calls = (0..count.parse().unwrap()).map(|_| service.send(&curl.request));
    let answers = join_all(calls).await;
    let kept = answers
        .iter()
        .filter(|answer| answer.replayed() == Some(false))
        .count();
    assert_eq!(kept, 1, "one call of the race places the order");
    // How many of them come while the first is in progress is up to the machine.
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.in_progress();
    }
    format!("{count:>7} 201\n")
}

/// The few options of curl that the page uses.
struct Curl {
    request: Request,
    shows_head: bool,
}

impl Curl {
    fn parse(command: &str) -> Self {
        let mut words = words(command).into_iter();
        assert_eq!(words.next().as_deref(), Some("curl"), "{command}");
        let (mut method, mut path) = ("GET".to_owned(), None);
        let (mut headers, mut body) = (Vec::new(), None);
        let mut shows_head = false;
        while let Some(word) = words.next() {
            let mut value = || words.next().expect("a value");
            match &*word {
                "-i" => shows_head = true,
                "-s" => {}
                "-o" | "-w" => _ = value(),
                "-X" => method = value(),
                "-H" => headers.push(value()),
                "-d" => body = Some(value()),
                url => {
                    let rest = url.strip_prefix("localhost:5000");
                    path = Some(
                        rest.unwrap_or_else(|| panic!("{url}: {command}"))
                            .to_owned(),
                    );
                }
            }
        }
        let mut request = Request::new(&method, &path.expect("a URL"));
        for header in headers {
            let (name, value) = header.split_once(": ").expect("a header");
            request = request.header(name, value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        Self {
            request,
            shows_head,
        }
    }

    fn output(&self, answer: &Answer) -> String {
        let mut output = String::new();
        if self.shows_head {
            output.push_str(&answer.status_line);
            for (name, value) in &answer.headers {
                output.push_str(&format!("\n{name}: {value}"));
            }
            output.push_str("\n\n");
        }
        output + &answer.text() + "\n"
    }
}

/// The words of a command line with single quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![];
    for (index, part) in command.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Gives ids the names that they had before, so that two runs compare equal.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn replace(&mut self, text: &str) -> String {
        text.lines()
            .map(|line| self.replace_line(line) + "\n")
            .collect()
    }

    fn replace_line(&mut self, line: &str) -> String {
        if line.starts_with("date: ") {
            return "date: <now>".to_owned();
        }
        let is_of_id = |c: char| c.is_ascii_hexdigit() || c == '-';
        let mut output = String::new();
        for part in line.split_inclusive(|c| !is_of_id(c)) {
            let id = part.trim_end_matches(|c| !is_of_id(c));
            output.push_str(&self.name(id));
            output.push_str(&part[id.len()..]);
        }
        output
    }

    fn name(&mut self, id: &str) -> String {
        let is_uuid = id.len() == 36 && id.matches('-').count() == 4;
        let is_trace = id.len() == 32 && !id.contains('-');
        if is_trace {
            return "<trace>".to_owned();
        }
        if !is_uuid {
            return id.to_owned();
        }
        let known = self.0.iter().position(|other| other == id);
        let index = known.unwrap_or_else(|| {
            self.0.push(id.to_owned());
            self.0.len() - 1
        });
        format!("<order {index}>")
    }
}
