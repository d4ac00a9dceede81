//! `tributary doctor`: what a run needs, looked at before the first byte, a line a thing.

mod finding;
mod machine;
mod sources;
mod store;

use clap::ArgMatches;
use tributary::ExitCode;
use tributary_config::{Loaded, Origin, Reach};

use crate::bundle::{Given, Opened};
use crate::failure::{Failure, Outcome};
use crate::{bundle, opened, run, start};

pub use finding::Finding;

/// Looks at everything and prints a line each; exit 2 when anything is wrong.
pub fn doctor(loaded: &Loaded, matches: &ArgMatches, given: &Given) -> Outcome {
    let mut findings = vec![Finding::ok("settings", "", said(loaded))];
    let (settings, pipeline) = match bundle::open(loaded, given) {
        Ok(Opened { settings, pipeline, .. }) => {
            findings.push(Finding::ok("pipeline", &pipeline.spec().name, format!("valid: {}", opened::contents(&pipeline))));
            (settings, Some(pipeline))
        }
        Err(failure) => {
            findings.push(Finding::failed("pipeline", "", failure));
            (loaded.settings.clone(), None)
        }
    };
    let settings = &settings;
    let findings = start::block_on(async {
        store::check(settings, pipeline.as_ref(), &mut findings).await;
        findings.extend(machine::warehouse(settings));
        findings.push(machine::disk(settings));
        if let Some(pipeline) = &pipeline {
            match run::options(loaded.program, settings, pipeline) {
                Ok(options) => sources::check(settings, pipeline, &options, &mut findings).await,
                Err(failure) => findings.push(Finding::failed("sources", "", failure)),
            }
        } else if settings.kafka_bootstrap.is_some() {
            findings.extend(sources::broker(loaded.program, settings).await);
        }
        Ok::<_, Failure>(findings)
    })?;
    let findings: Vec<Finding> = findings.into_iter().map(|finding| finding.at(matches)).collect();
    finding::print(settings.output, &findings)?;
    let failed = findings.iter().any(Finding::is_failure);
    Ok(if failed { ExitCode::BadInput.code() } else { ExitCode::Done.code() })
}

/// Which settings someone gave, and where.
fn said(loaded: &Loaded) -> String {
    let given: Vec<String> = loaded
        .program
        .settings()
        .filter(|setting| setting.reach != Reach::CommandLine)
        .filter_map(|setting| match loaded.origin(setting.name) {
            Origin::Default => None,
            origin => Some(format!("{} ({origin})", setting.name)),
        })
        .collect();
    if given.is_empty() { "all as by default".to_owned() } else { format!("given: {}", given.join(", ")) }
}
