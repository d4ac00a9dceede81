//! Each proof is run once more with its rule broken, and must fail.

use std::time::Duration;

use proptest::prelude::*;
use tributary_specs::MergePolicy;
use tributary_testkit::strategy::shuffle;
use tributary_testkit::{Control, Controls, CrashReport, KillPoints, Law};

use crate::crashes::proof;
use crate::model_laws::{Order, columns, compare, delivered, tables, with_before_images, with_unique_sequence};
use crate::races::{Rival, lose_a_race, races};
use crate::world::{SCD2, block_on};

const BUDGET: Duration = Duration::from_secs(120);

fn broken(control: Control) -> Controls {
    Controls::none().with(control)
}

fn fails(control: Control, law: Law, policy: MergePolicy, order: Order) -> String {
    law.within(BUDGET).is_broken(&delivered(tables(), shuffle()), |mut case, tried| {
        case.order = order;
        let model = case.model();
        tried.add("changes", case.history.changes.len());
        let expected = model.scd1(&case.events());
        let outcome = block_on(compare(broken(control), &case.dataset(policy.clone()), &case, &columns(&model, &[]), expected));
        outcome.map_err(|why| TestCaseError::fail(format!("{why:#}")))
    })
}

#[test]
fn law_of_delivery_fails_when_deletes_are_forgotten() {
    let failure = fails(Control::DeleteMemoryOff, Law::new("S4 with deletes forgotten"), MergePolicy::ScdType1, Order::Position);
    assert!(failure.contains("found ["), "a wrong table, not an error: {failure}");
}

#[test]
fn law_of_the_change_feed_fails_when_inserts_are_left_out() {
    let failure =
        fails(Control::InsertsLeftOutOfChangeFeed, Law::new("the feed with inserts left out"), MergePolicy::ScdType1, Order::Position);
    assert!(failure.contains("change feed of") || failure.contains("takes away a row that is not there"), "{failure}");
}

#[test]
fn law_of_the_change_feed_fails_when_any_before_image_stands_for_the_row() {
    let law = Law::new("before-images that nobody compares").within(BUDGET);
    let failure = law.is_broken(&with_before_images(shuffle()), |case, tried| {
        tried.add("changes", case.history.changes.len());
        let (model, dataset) = (case.model(), with_unique_sequence(case.dataset(MergePolicy::ScdType1)));
        let expected = model.scd1(&case.events());
        let outcome = block_on(compare(broken(Control::BeforeImagesUnchecked), &dataset, &case, &columns(&model, &[]), expected));
        outcome.map_err(|why| TestCaseError::fail(format!("{why:#}")))
    });
    assert!(failure.contains("takes away a row that is not there"), "{failure}");
}

#[test]
fn law_of_races_fails_when_a_lost_race_is_not_planned_again() {
    let law = Law::new("a rival compacts first, and nobody plans again").within(BUDGET);
    law.is_broken(&races(), |(case, _, n), tried| {
        tried.add("races", 1);
        let model = case.model();
        let expected = model.scd1(&case.events());
        let dataset = case.dataset(MergePolicy::ScdType1);
        let race = lose_a_race(
            broken(Control::NoReplanAfterConflict),
            &dataset,
            &case.batches(),
            Rival::Compaction,
            n,
            &columns(&model, &[]),
            expected,
        );
        race.map(|_| ()).map_err(|why| TestCaseError::fail(format!("{why:#}")))
    });
}

#[test]
fn law_of_appending_once_fails_without_fencing() {
    let law = Law::new("a rival appends first, and nobody is fenced").within(BUDGET);
    law.is_broken(&races(), |(case, _, n), tried| {
        tried.add("races", 1);
        let mut dataset = case.dataset(MergePolicy::Append);
        (dataset.keys, dataset.sequence_by) = (Vec::new(), Vec::new());
        let (model, expected) = (case.model(), case.model().append(&case.stream()));
        let race = lose_a_race(broken(Control::FencingOff), &dataset, &case.batches(), Rival::Run, n - 1, &columns(&model, &[]), expected);
        race.map(|_| ()).map_err(|why| TestCaseError::fail(format!("{why:#}")))
    });
}

fn crash_proof_fails(control: Control, policy: MergePolicy, order: Order) -> CrashReport {
    let report = block_on(proof(policy, order, true, broken(control), KillPoints::All)).unwrap();
    assert!(!report.differences.is_empty(), "{control:?} breaks nothing: {report}");
    println!("silver with {control:?}: {report}");
    report
}

#[test]
fn crash_proof_fails_when_positions_are_committed_apart() {
    crash_proof_fails(Control::PositionsOutsideCommit, MergePolicy::Append, Order::Position);
}

#[test]
fn crash_proof_fails_when_state_above_the_targets_position_counts() {
    // Rows of `_state` from an attempt whose target commit never came must not count in the next one.
    let differences: usize = [(MergePolicy::ScdType1, Order::Stamp), (SCD2, Order::Stamp), (MergePolicy::ScdType1, Order::Position)]
        .into_iter()
        .map(|(policy, order)| {
            block_on(proof(policy, order, true, broken(Control::StateAboveTargetPosition), KillPoints::All)).unwrap().differences.len()
        })
        .sum();
    assert!(differences > 0, "state above the target's position breaks nothing");
    println!("silver with StateAboveTargetPosition: {differences} differences");
}
