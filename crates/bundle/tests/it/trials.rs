//! Files of tests.

use serde_json::json;
use tributary_bundle::{TestRows, find_tests, load_tests};

use crate::folder::Folder;

const SOUND: &str = "
dataset: silver.orders
keys: [id]
columns: {made.elsewhere: {price: \"decimal(10,2)\"}}
tests:
  - name: the latest change wins
    given: {bronze.orders: [{id: 1, status: new}], made.elsewhere: rates.csv}
    expect: [{id: 1, status: new}]
    then:
      - given: {bronze.orders: [{id: 1, status: paid}]}
        expect: {silver.orders: [{id: 1, status: paid}], quarantine.orders: []}
  - name: no order without a key
    given: {bronze.orders: [{status: new}]}
    fails: SM0001
";

#[test]
fn a_file_of_tests_says_what_is_given_and_what_is_expected() {
    let folder =
        Folder::with(&[("sql/tests/orders.yml", SOUND), ("sql/tests/rates.csv", "price\n1.5\n"), ("sql/orders.yml", "not: tests\n")]);
    let (found, faults) = find_tests(folder.path());
    assert_eq!(faults, []);
    assert_eq!(found, [folder.path().join("sql/tests/orders.yml")]);
    let (file, faults) = load_tests(&found[0]);
    assert_eq!(faults, []);
    let file = file.unwrap();
    assert_eq!((file.dataset.as_str(), file.keys), ("silver.orders", vec!["id".to_owned()]));
    assert_eq!(file.columns["made.elsewhere"]["price"], "decimal(10,2)");
    let rows = |value: serde_json::Value| TestRows::Here(serde_json::from_value(value).unwrap());
    let [first, second] = file.tests.as_slice() else { panic!("{:?}", file.tests) };
    assert_eq!((first.name.as_str(), first.line, first.runs.len()), ("the latest change wins", 6, 2));
    assert_eq!(first.runs[0].given[0], ("bronze.orders".to_owned(), rows(json!([{"id": 1, "status": "new"}]))));
    assert!(matches!(&first.runs[0].given[1].1, TestRows::File(path) if path.ends_with("sql/tests/rates.csv")));
    assert_eq!(first.runs[1].expect[0], ("quarantine.orders".to_owned(), rows(json!([]))));
    assert_eq!(second.runs[0].fails.as_deref(), Some("SM0001"));
}

#[test]
fn every_mistake_of_a_file_of_tests_has_its_place() {
    let folder = Folder::with(&[(
        "tests/orders.yml",
        "dataset: silver.orders\ntest: []\ntests:\n  - given: {bronze.orders: [1]}\n    expect: {silver.orders: 3}\n  - name: b\n    given: {bronze.orders: nowhere.csv}\n    fails: SM0001\n  - name: c\n",
    )]);
    let (file, faults) = load_tests(&folder.path().join("tests/orders.yml"));
    assert!(file.is_none());
    let places: Vec<_> = faults.iter().map(|fault| (fault.line, fault.column, fault.code)).collect();
    assert_eq!(
        places,
        [(2, 1, "BU0008"), (4, 5, "BU0011"), (4, 29, "BU0006"), (5, 29, "BU0006"), (7, 28, "BU0028"), (9, 5, "BU0011")],
        "{faults:#?}"
    );
}

#[test]
fn a_lake_beside_the_tests_is_not_looked_through_and_a_folder_that_is_too_large_is_told() {
    let folder = Folder::with(&[("lake/silver/orders/_delta_log/0.json", "{}"), ("sql/tests/orders.yml", SOUND)]);
    let many = |below: &str| {
        std::fs::create_dir_all(folder.path().join(below)).unwrap();
        (0..20_001).for_each(|number| std::fs::write(folder.path().join(below).join(number.to_string()), "").unwrap());
    };
    many("lake/silver/orders");
    assert_eq!(find_tests(folder.path()), (vec![folder.path().join("sql/tests/orders.yml")], Vec::new()));
    many("raw");
    let (_, faults) = find_tests(folder.path());
    assert_eq!(faults.iter().map(|fault| fault.code).collect::<Vec<_>>(), ["BU0004"], "{faults:?}");
}
