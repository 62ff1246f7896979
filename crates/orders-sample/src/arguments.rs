//! The command line, and the service's own section of the configuration.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use xihan_caching::AssemblyProblem;
use xihan_caching::prelude::*;

use crate::operations::Timing;

/// A small order service: place an order, retry it, and it is placed once.
///
/// Everything can also be set in the configuration file or the environment, for example
/// `Orders:HttpPort` or ORDERS__HTTPPORT; the command line wins.
#[derive(Clone, Debug, Default, Parser)]
#[command(name = "orders-sample", version)]
pub struct Arguments {
    /// The configuration file [default: XIHAN_CONFIG, else xihan.toml if it is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The port for HTTP on 127.0.0.1; 0 takes a free one [default: 5000]
    #[arg(long, value_name = "PORT")]
    pub http_port: Option<u16>,
    /// The time a payment takes while an order is placed [default: 0]
    #[arg(long, value_name = "MILLISECONDS")]
    pub order_delay_milliseconds: Option<u64>,
    /// The time a report takes [default: 3]
    #[arg(long, value_name = "SECONDS")]
    pub report_seconds: Option<f64>,
}

/// What the service runs with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The port for HTTP.
    pub http_port: u16,
    /// How long things take.
    pub timing: Timing,
}

/// The section of the configuration that is the service's own.
const SECTION: &str = "Orders";
const KEYS: [&str; 3] = ["HttpPort", "OrderDelayMilliseconds", "ReportSeconds"];

impl Arguments {
    /// Reads file and environment.
    ///
    /// # Errors
    /// A file that cannot be read or is malformed.
    pub fn configuration(&self) -> Result<Configuration, AssemblyError> {
        let configuration = match &self.config {
            Some(file) => Configuration::load_from(file)?,
            None => Configuration::load()?,
        };
        Ok(configuration
            .owning([SECTION])
            .with_default("XiHan:Caching:Provider", "inmemory"))
    }

    /// The settings: command line, else configuration, else default; and whatever is wrong with
    /// the service's own section.
    pub fn settings(&self, configuration: &Configuration) -> (Settings, Vec<AssemblyProblem>) {
        let section = configuration.section(SECTION);
        let mut problems = section.unknown_keys(&KEYS);
        let mut keep = |problem| problems.push(problem);
        let http_port = section
            .parse("HttpPort")
            .map_err(&mut keep)
            .unwrap_or_default();
        let delay = section
            .parse("OrderDelayMilliseconds")
            .map_err(&mut keep)
            .unwrap_or_default();
        let report = section
            .parse("ReportSeconds")
            .map_err(&mut keep)
            .unwrap_or_default();
        let report = self.report_seconds.or(report).unwrap_or(3.0);
        let report = Duration::try_from_secs_f64(report).unwrap_or_else(|error| {
            keep(AssemblyProblem::new(
                "Orders:ReportSeconds",
                format!("`{report}` is not valid: {error}"),
                "set it to a number of seconds, such as 3 or 0.5",
            ));
            Duration::ZERO
        });
        let settings = Settings {
            http_port: self.http_port.or(http_port).unwrap_or(5000),
            timing: Timing {
                order_delay: Duration::from_millis(
                    self.order_delay_milliseconds.or(delay).unwrap_or(0),
                ),
                report,
            },
        };
        (settings, problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(arguments: &[&str], toml: &str) -> (Settings, Vec<AssemblyProblem>) {
        let arguments =
            Arguments::parse_from(std::iter::once("orders-sample").chain(arguments.to_vec()));
        arguments.settings(&Configuration::from_toml(toml).unwrap())
    }

    #[test]
    fn the_command_line_wins_over_the_file_and_the_file_over_the_default() {
        let toml = "[Orders]\nHttpPort = 8080\nReportSeconds = 0.5";
        let (settings, problems) = settings(&["--http-port", "9090"], toml);
        assert_eq!(problems, []);
        assert_eq!(settings.http_port, 9090);
        assert_eq!(settings.timing.report, Duration::from_millis(500));
        assert_eq!(settings.timing.order_delay, Duration::ZERO);
    }

    #[test]
    fn c1_every_bad_value_is_reported_at_once() {
        let toml = "[Orders]\nHttpPort = 70000\nReportSeconds = -1\nReportSecond = 1";
        let error = AssemblyError::check(settings(&[], toml).1)
            .unwrap_err()
            .to_string();
        for key in ["HttpPort", "ReportSeconds", "ReportSecond"] {
            assert!(error.contains(&format!("Orders:{key}")), "{key}: {error}");
        }
    }
}
