//! The one place that decides what happens to a call.

use std::collections::HashSet;
use std::fmt;

use futures::future::BoxFuture;
use object_store::path::Path;

use super::call::{Call, Counts, Rule, Verb};

/// How the process dies at a mutating call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// The call is not carried out.
    Before,
    /// The call is carried out and answered; the next one is refused.
    After,
    /// The call is carried out, its answer is lost.
    AnswerLost,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Before, Self::After, Self::AnswerLost];
}

/// A fault of one call; the store lives on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScriptedFault {
    /// The call is not carried out and fails as a briefly absent store would.
    NotDone,
    /// The call is carried out and fails all the same.
    AnswerLost,
    /// The call is not carried out: permission denied.
    Denied,
}

pub(super) type Hook = Box<dyn FnOnce(Call) -> BoxFuture<'static, ()> + Send>;

struct Placed<T> {
    rule: Rule,
    /// Matching calls still to pass, this one included.
    remaining: u64,
    what: T,
}

#[derive(Default)]
pub(super) struct Script {
    counts: Counts,
    calls: Vec<Call>,
    kill: Option<(u64, Mode)>,
    dead: bool,
    faults: Vec<Placed<ScriptedFault>>,
    hooks: Vec<Placed<Hook>>,
    fail_every_read_once: bool,
    reads_failed: HashSet<(Verb, Path)>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("counts", &self.counts).field("kill", &self.kill).field("dead", &self.dead).finish_non_exhaustive()
    }
}

/// What is done with a call.
pub(super) enum Verdict {
    /// Carry it out, or not; then answer, or not.
    Call { call: Call, carry_out: bool, answer: Answer, hooks: Vec<Hook> },
    /// The process is dead.
    Refused,
}

impl Verdict {
    pub(super) fn carries_out(&self) -> bool {
        matches!(self, Self::Call { carry_out: true, .. })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    True,
    Lost,
    Denied,
}

impl Script {
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.calls.clone()
    }

    pub(super) fn dead(&self) -> bool {
        self.dead
    }

    pub(super) fn kill_at(&mut self, n: u64, mode: Mode) {
        assert!(n > 0, "calls are counted from 1");
        self.kill = Some((self.counts.mutating + n, mode));
    }

    pub(super) fn fail(&mut self, rule: Rule, n: u64, fault: ScriptedFault) {
        assert!(n > 0, "calls are counted from 1");
        self.faults.push(Placed { rule, remaining: n, what: fault });
    }

    pub(super) fn before(&mut self, rule: Rule, n: u64, hook: Hook) {
        assert!(n > 0, "calls are counted from 1");
        self.hooks.push(Placed { rule, remaining: n, what: hook });
    }

    pub(super) fn fail_every_read_once(&mut self) {
        self.fail_every_read_once = true;
    }

    pub(super) fn add_bytes(&mut self, bytes: usize) {
        self.counts.bytes_put += bytes as u64;
    }

    /// Counts one call and decides about it.
    pub(super) fn decide(&mut self, verb: Verb, path: &Path) -> Verdict {
        if self.dead {
            self.counts.refused += 1;
            return Verdict::Refused;
        }
        let counter = if verb.mutates() { &mut self.counts.mutating } else { &mut self.counts.reads };
        *counter += 1;
        let call = Call { verb, path: path.clone(), number: *counter };
        self.calls.push(call.clone());

        let hooks = due(&mut self.hooks, &call);
        let fault = due(&mut self.faults, &call).into_iter().next();
        let (mut carry_out, mut answer) = match fault {
            None => (true, Answer::True),
            Some(ScriptedFault::NotDone) => (false, Answer::Lost),
            Some(ScriptedFault::AnswerLost) => (true, Answer::Lost),
            Some(ScriptedFault::Denied) => (false, Answer::Denied),
        };
        if self.fail_every_read_once && !verb.mutates() && self.reads_failed.insert((verb, path.clone())) {
            (carry_out, answer) = (false, Answer::Lost);
        }
        if verb.mutates()
            && let Some((n, mode)) = self.kill
            && n == call.number
        {
            self.dead = true;
            (carry_out, answer) = match mode {
                Mode::Before => (false, Answer::Lost),
                Mode::After => (true, Answer::True),
                Mode::AnswerLost => (true, Answer::Lost),
            };
        }
        Verdict::Call { call, carry_out, answer, hooks }
    }
}

/// Takes out what this call is the last one waited for.
fn due<T>(placed: &mut Vec<Placed<T>>, call: &Call) -> Vec<T> {
    placed.iter_mut().filter(|one| one.rule.matches(call)).for_each(|one| one.remaining -= 1);
    placed.extract_if(.., |one| one.remaining == 0).map(|one| one.what).collect()
}
