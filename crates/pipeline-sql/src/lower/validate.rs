//! The rules of specs, told at the place of the SQL that breaks them.

use tributary_specs::{Error as SpecError, Problem};

use super::Lowering;
use crate::error::Error;
use crate::origin::Origin;

impl Lowering<'_> {
    /// Adds what the rules of specs find.
    pub(super) fn validate(&mut self) {
        "pipeline".clone_into(&mut self.out.pipeline.name);
        for Problem { error, path, .. } in self.out.pipeline.validate() {
            if is_of_sources(&error) {
                continue;
            }
            let origin = self.origins.of(&path);
            let (of, place) = match &origin {
                Some((origin, rest)) => (origin.of.clone(), origin.place(rest).clone()),
                None => ("the pipeline".to_owned(), Origin::default().place),
            };
            self.report.fault(&place, &Error::Spec { of, problem: error });
        }
    }
}

/// Who reads whom has been checked by name, over the datasets that have other mistakes too.
pub(super) fn is_of_sources(error: &SpecError) -> bool {
    matches!(error, SpecError::SourceUnknown { .. } | SpecError::StreamFromView { .. } | SpecError::Cycle { .. })
}
