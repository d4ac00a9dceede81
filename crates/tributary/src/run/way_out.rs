//! What a person may type next for a dataset that failed, where the error alone does not know the dataset. Pure.

use tributary_fault::Fault;
use tributary_specs::TableName;

/// The next command of an error of a dataset. One that a full refresh would mend, and that is `protected` from it
/// (`pipelines.reset.allowed` = `false`), is told another way: the first would only lead to a refusal, and that back here.
pub(super) fn next_command<E: Fault>(error: &E, table: &TableName, protected: bool) -> Option<String> {
    let next = error.next_command()?;
    if !protected || !next.starts_with("tributary run --full-refresh") {
        return Some(next);
    }
    Some(match error.code().to_string().as_str() {
        // its stream goes on behind the commits that stopped it
        "SM0023" => format!("tributary run --only {table} --skip-change-commits"),
        // what is otherwise in the definition than in the table
        _ => format!("tributary plan --only {table}"),
    })
}
