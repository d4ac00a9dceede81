//! Properties run for a time, with a seed to replay them.
//!
//! A longer run changes a time budget, not code: `TRIBUTARY_LAW_SECONDS=600`. Every case has a seed of its own; a failure
//! prints it, and `TRIBUTARY_LAW_SEED=<seed>` starts with that very case. A law that tried nothing has failed.

use std::collections::BTreeMap;
use std::env;
use std::time::{Duration, Instant};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// A property and the time it is run for.
#[derive(Debug, Clone)]
pub struct Law {
    name: &'static str,
    budget: Duration,
    cases_min: u64,
    seed: u64,
}

/// What a law has tried so far, by what was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tried(BTreeMap<&'static str, u64>);

impl Tried {
    /// Counts `n` more of something.
    pub fn add(&mut self, what: &'static str, n: usize) {
        *self.0.entry(what).or_default() += n as u64;
    }

    /// How many of something there were.
    pub fn count(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }
}

impl std::fmt::Display for Tried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (what, n)) in self.0.iter().enumerate() {
            write!(f, "{}{n} {what}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl Law {
    /// A law of this name, run for two seconds from a random seed, unless the environment says otherwise.
    #[expect(clippy::disallowed_methods, reason = "each run tries other cases; what it prints repeats them")]
    pub fn new(name: &'static str) -> Self {
        let seed = number("TRIBUTARY_LAW_SEED").unwrap_or_else(rand::random);
        Self { name, budget: Duration::from_secs(2), cases_min: 1, seed }.within(Duration::from_secs(2))
    }

    /// The same law, starting from this seed.
    #[must_use]
    pub fn from_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The same law, run for this long unless the environment says otherwise; at least one case is always tried.
    #[must_use]
    pub fn within(mut self, budget: Duration) -> Self {
        self.budget = number("TRIBUTARY_LAW_SECONDS").map_or(budget, Duration::from_secs);
        self
    }

    /// The same law, run for no fewer cases than these however long they take.
    #[must_use]
    pub fn at_least(mut self, cases: u64) -> Self {
        self.cases_min = cases;
        self
    }

    /// So many laws of this name that together are this one: each tries its share of the cases, from a seed far off the others'.
    #[must_use]
    pub fn split(&self, parts: u64) -> Vec<Self> {
        let of =
            |part: u64| Self { cases_min: self.cases_min.div_ceil(parts.max(1)), seed: self.seed.wrapping_add(part << 32), ..self.clone() };
        (0..parts.max(1)).map(of).collect()
    }

    /// Runs the property on case after case until the time is over, prints how much was tried, and returns it. The property
    /// counts into [`Tried`] what makes its cases worth something (events, batches, rows).
    ///
    /// # Panics
    /// When the property fails: with the smallest failing case, its seed, and what had been tried before.
    #[track_caller]
    pub fn holds<S: Strategy>(&self, strategy: &S, property: impl Fn(S::Value, &mut Tried) -> Result<(), TestCaseError>) -> Tried {
        match self.first_failure(strategy, &property, &config()) {
            Ok(tried) => {
                println!("law {}: {tried}, seed {}", self.name, self.seed);
                tried
            }
            Err(failure) => panic!("law {} fails\n{failure}", self.name),
        }
    }

    /// For controls: the property must fail within the time. Prints after how much, and returns the failure's text. The case is
    /// not shrunk: nobody wants to understand it.
    ///
    /// # Panics
    /// When the property holds for every case.
    #[track_caller]
    pub fn is_broken<S: Strategy>(&self, strategy: &S, property: impl Fn(S::Value, &mut Tried) -> Result<(), TestCaseError>) -> String {
        match self.first_failure(strategy, &property, &Config { max_shrink_iters: 0, ..config() }) {
            Ok(tried) => panic!("law {} should fail and holds for {tried}, seed {}", self.name, self.seed),
            Err(failure) => {
                println!("law {}: broken as it should be: {}", self.name, failure.lines().next().unwrap_or_default());
                failure
            }
        }
    }

    fn first_failure<S: Strategy>(
        &self,
        strategy: &S,
        property: &impl Fn(S::Value, &mut Tried) -> Result<(), TestCaseError>,
        config: &Config,
    ) -> Result<Tried, String> {
        let started = Instant::now();
        let mut tried = Tried::default();
        let mut seed = self.seed;
        loop {
            let mut runner = TestRunner::new_with_rng(config.clone(), rng(seed));
            let tree = strategy.new_tree(&mut runner).unwrap_or_else(|why| panic!("law {}: no case: {why}", self.name));
            tried.add("cases", 1);
            // Shrinking repeats the property; only the first pass over a case counts.
            let counted = std::cell::RefCell::new(Some(&mut tried));
            let outcome = runner.run_one(tree, |case| match counted.borrow_mut().take() {
                Some(tried) => property(case, tried),
                None => property(case, &mut Tried::default()),
            });
            match outcome {
                Ok(_) => {}
                Err(TestError::Abort(why)) => return Err(format!("aborted: {why}")),
                Err(TestError::Fail(why, case)) => {
                    return Err(format!("after {tried}: {why}\nsmallest case: {case:#?}\nreplay: TRIBUTARY_LAW_SEED={seed}"));
                }
            }
            if started.elapsed() >= self.budget && tried.count("cases") >= self.cases_min {
                return Ok(tried);
            }
            seed = seed.wrapping_add(1);
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a whole number")))
}

fn config() -> Config {
    Config { failure_persistence: None, max_shrink_time: 60_000, ..Config::default() }
}

fn rng(seed: u64) -> TestRng {
    let mut bytes = [0; 32];
    for (at, chunk) in bytes.chunks_exact_mut(8).enumerate() {
        chunk.copy_from_slice(&seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(at as u32 * 16).to_le_bytes());
    }
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

/// One case of a strategy by its seed, for tests that want an example rather than a law.
pub fn example<S: Strategy>(strategy: &S, seed: u64) -> S::Value {
    let mut runner = TestRunner::new_with_rng(config(), rng(seed));
    strategy.new_tree(&mut runner).expect("a case").current()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_law_says_how_much_it_tried() {
        let law = Law::new("numbers are numbers").within(Duration::from_millis(20));
        let tried = law.holds(&(0..10u32), |_, tried| {
            tried.add("numbers", 2);
            Ok(())
        });
        assert!(tried.count("cases") > 0);
        assert_eq!(tried.count("numbers"), 2 * tried.count("cases"));
    }

    #[test]
    fn a_law_tries_as_many_cases_as_it_is_told_in_as_many_parts() {
        let parts = Law::new("numbers are numbers").within(Duration::ZERO).at_least(20).split(3);
        let cases = parts.iter().map(|part| part.holds(&(0..10u32), |_, _| Ok(())).count("cases")).sum::<u64>();
        assert!(cases >= 20 && parts.len() == 3, "{cases}");
    }

    #[test]
    fn a_failure_is_shrunk_and_its_seed_starts_with_the_same_case() {
        let property = |number: u32, _: &mut Tried| {
            prop_assert!(number < 500);
            Ok(())
        };
        let law = Law::new("numbers are small").within(Duration::from_secs(5));
        let shrunk = law.first_failure(&(0..100_000u32), &property, &config()).expect_err("a failure");
        assert!(shrunk.contains("smallest case: 500"), "{shrunk}");
        let failure = law.is_broken(&(0..100_000u32), property);
        let seed = failure.rsplit('=').next().and_then(|seed| seed.parse().ok()).expect("a seed");
        let again = law.from_seed(seed).is_broken(&(0..100_000u32), property);
        assert!(again.starts_with("after 1 cases"), "{again}");
    }

    #[test]
    #[should_panic(expected = "should fail and holds")]
    fn a_control_that_breaks_nothing_is_noticed() {
        Law::new("nothing").within(Duration::ZERO).is_broken(&(0..10u32), |_, _| Ok(()));
    }
}
