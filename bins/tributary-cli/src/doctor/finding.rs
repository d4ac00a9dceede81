//! What was found of one thing.

use clap::ArgMatches;
use tributary::arrow::array::RecordBatch;
use tributary_config::Output;

use crate::failure::{Failure, Outcome};
use crate::output::{self, batch, text};
use crate::{next, start};

/// Next commands that say no more than to try again.
const AGAIN: [&str; 2] = ["tributary run --layer bronze", "tributary doctor"];

/// What was found of one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    check: &'static str,
    subject: String,
    outcome: Result<String, Failure>,
}

impl Finding {
    /// It is as it should be.
    pub fn ok(check: &'static str, subject: &str, detail: String) -> Self {
        Self { check, subject: subject.to_owned(), outcome: Ok(detail) }
    }

    /// A run would fail over it, or harm something. That a run be tried again, or this asked again, is no way out of it.
    pub fn failed(check: &'static str, subject: &str, failure: impl Into<Failure>) -> Self {
        let mut failure = failure.into();
        let page = format!("tributary help {}", failure.code);
        failure.next = Some(failure.next.filter(|next| !AGAIN.contains(&next.as_str())).unwrap_or(page));
        Self { check, subject: subject.to_owned(), outcome: Err(failure) }
    }

    /// Either.
    pub fn of(check: &'static str, subject: &str, outcome: Result<String, impl Into<Failure>>) -> Self {
        match outcome {
            Ok(detail) => Self::ok(check, subject, detail),
            Err(failure) => Self::failed(check, subject, failure),
        }
    }

    /// The same with its next command at the places that `matches` name.
    pub fn at(mut self, matches: &ArgMatches) -> Self {
        if let Err(Failure { next: Some(next), .. }) = &mut self.outcome {
            *next = next::at_the_same_places(next, &next::Places::of(matches));
        }
        self
    }

    /// Whether something is wrong.
    pub fn is_failure(&self) -> bool {
        self.outcome.is_err()
    }

    fn line(&self) -> String {
        let subject = if self.subject.is_empty() { String::new() } else { format!("{}: ", self.subject) };
        match &self.outcome {
            Ok(detail) => format!("ok      {:<10} {subject}{detail}\n", self.check),
            Err(Failure { code, message, next, .. }) => {
                let next = next.as_ref().map(|next| format!("; next: {next}")).unwrap_or_default();
                format!("failed  {:<10} {subject}error[{code}]: {}{next}\n", self.check, message.replace('\n', " | "))
            }
        }
    }
}

/// Prints what was found: lines, or rows for programs.
pub fn print(output: Output, findings: &[Finding]) -> Outcome {
    match output {
        Output::Table => start::print(&findings.iter().map(Finding::line).collect::<String>()),
        Output::Json | Output::Csv => output::rows(output, &rows(findings)?),
    }
}

fn rows(findings: &[Finding]) -> Result<RecordBatch, Failure> {
    let failure = |finding: &Finding| finding.outcome.as_ref().err().cloned();
    batch(vec![
        ("check", text(findings.iter().map(|finding| Some(finding.check)))),
        ("subject", text(findings.iter().map(|finding| Some(finding.subject.clone()).filter(|subject| !subject.is_empty())))),
        ("outcome", text(findings.iter().map(|finding| Some(if finding.is_failure() { "failed" } else { "ok" })))),
        ("detail", text(findings.iter().map(|finding| Some(finding.outcome.clone().unwrap_or_else(|failure| failure.message))))),
        ("code", text(findings.iter().map(|finding| failure(finding).map(|failure| failure.code)))),
        ("next", text(findings.iter().map(|finding| failure(finding).and_then(|failure| failure.next)))),
    ])
}

#[cfg(test)]
mod tests {
    use tributary::ExitCode;

    use super::*;

    #[test]
    fn a_finding_is_one_line_whatever_its_error_says() {
        assert_eq!(Finding::ok("clock", "", "2 ms apart".into()).line(), "ok      clock      2 ms apart\n");
        let failure = Failure { exit_code: ExitCode::BadInput, code: "SP0011".into(), message: "a\nb".into(), next: Some("do it".into()) };
        let finding = Finding::failed("pipeline", "shop.yml", failure);
        assert_eq!(finding.line(), "failed  pipeline   shop.yml: error[SP0011]: a | b; next: do it\n");
        assert!(finding.is_failure());
    }

    #[test]
    fn what_doctor_says_next_is_a_way_out_at_the_same_places() {
        let matches = crate::command::umbrella().try_get_matches_from(["tributary", "doctor", "-p", "shop.yml"]).unwrap();
        let matches = matches.subcommand_matches("doctor").unwrap();
        let found = |next: &str| {
            let failure =
                Failure { exit_code: ExitCode::Failed, code: "BR0023".into(), message: "no answer".into(), next: Some(next.into()) };
            Finding::failed("kafka", "broker a:1", failure).at(matches).outcome.unwrap_err().next.unwrap()
        };
        assert_eq!(found("tributary run --layer bronze"), "tributary help BR0023");
        assert_eq!(found("tributary doctor"), "tributary help BR0023");
        assert_eq!(found("tributary validate"), "tributary validate --pipeline shop.yml");
    }
}
