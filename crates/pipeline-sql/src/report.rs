//! What is collected while files are read.

use std::collections::BTreeMap;

use tributary_fault::nearest;
use tributary_specs::Place;

use crate::error::Error;
use crate::fault::Fault;
use crate::parsed::{NotApplied, Notice};
use crate::portability::{Construct, PortabilityRule};
use crate::woven::Woven;

/// Mistakes told at most; what comes after them is seldom news.
const FAULTS_MAX: usize = 1000;
/// Expressions of a dataset at most that are looked through for one.
const EXPRESSIONS_MAX: usize = 100;
/// Comparisons of names at most.
const COMPARISONS_MAX: usize = 20_000;

/// What is collected while files are read.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) faults: Vec<Fault>,
    pub(crate) not_applied: Vec<NotApplied>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) constructs: Vec<Construct>,
    /// Expressions, by where they begin.
    pub(crate) expressions: BTreeMap<Place, Woven>,
    /// The statement has a mistake below the grammar: what the grammar finds wrong with it comes from that.
    pub(crate) muted: bool,
    /// Comparisons of names that are left for finding nearest ones.
    comparisons: usize,
}

impl Default for Report {
    fn default() -> Self {
        let (faults, not_applied, notices, constructs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let expressions = BTreeMap::new();
        Self { faults, not_applied, notices, constructs, expressions, muted: false, comparisons: COMPARISONS_MAX }
    }
}

impl Report {
    /// The known name nearest to one; none once too many have been looked for.
    pub(crate) fn nearest(&mut self, name: &str, known: impl Iterator<Item = String>) -> Option<String> {
        let known: Vec<String> = known.take(self.comparisons).collect();
        self.comparisons -= known.len();
        nearest(name, known.iter().map(String::as_str)).map(str::to_owned)
    }

    /// Keeps where an expression stands.
    pub(crate) fn expression(&mut self, place: Place, woven: Woven) {
        self.expressions.insert(place, woven);
    }

    /// The first expression of a text that begins at a place or behind it.
    pub(crate) fn expression_of(&self, from: Option<&Place>, text: &str) -> Option<&Woven> {
        let from = from?;
        let behind = self.expressions.range(from..).take_while(|(place, _)| place.file == from.file);
        behind.take(EXPRESSIONS_MAX).map(|(_, woven)| woven).find(|woven| woven.text == text)
    }

    pub(crate) fn fault(&mut self, place: &Place, error: &Error) {
        if !self.muted && self.faults.len() < FAULTS_MAX {
            self.faults.push(Fault::new(place, error));
        }
    }

    pub(crate) fn not_applied(&mut self, place: Place, clause: &str, dataset: Option<&str>, reason: &str) {
        let dataset = dataset.map(str::to_owned);
        self.not_applied.push(NotApplied { clause: clause.to_owned(), dataset, reason: reason.to_owned(), protects: false, place });
    }

    /// A clause that hides data from people.
    pub(crate) fn unprotected(&mut self, place: Place, clause: &str, dataset: Option<&str>) {
        let dataset = dataset.map(str::to_owned);
        let reason = "it is not enforced by this release; a run needs --accept-unprotected".to_owned();
        self.not_applied.push(NotApplied { clause: clause.to_owned(), dataset, reason, protects: true, place });
    }

    /// Something that is not the same on every platform.
    pub(crate) fn uses(&mut self, place: Place, rule: &'static PortabilityRule, dataset: Option<&str>) {
        self.constructs.push(Construct { rule, dataset: dataset.map(str::to_owned), which: None, place });
    }

    /// As [`Self::uses`], of a rule for several options or properties.
    pub(crate) fn uses_one(&mut self, place: Place, rule: &'static PortabilityRule, dataset: Option<&str>, which: &str) {
        self.constructs.push(Construct { rule, dataset: dataset.map(str::to_owned), which: Some(which.to_owned()), place });
    }

    pub(crate) fn notice(&mut self, place: Place, kind: &'static str, message: String) {
        self.notices.push(Notice { kind, message, place });
    }
}
