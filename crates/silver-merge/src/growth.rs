//! How a table follows its query: the types that it comes to. Pure.

use tributary_specs::{Column, DataType, GrowthPolicy};

/// The type of a column that is to hold the table's values and the query's; none where the policy does not let the table become so.
///
/// A struct takes on new fields at its end. A number that the table's type holds whatever it is goes on being written as that.
pub(crate) fn grown(policy: GrowthPolicy, table: &DataType, query: &DataType) -> Option<DataType> {
    match (table, query) {
        (DataType::Struct(have), DataType::Struct(want)) => {
            let mut fields = have.clone();
            for field in want {
                match fields.iter_mut().find(|found| found.name == field.name) {
                    Some(found) => found.data_type = grown(policy, &found.data_type, &field.data_type)?,
                    None => fields.push(Column { nullable: true, ..field.clone() }),
                }
            }
            Some(DataType::Struct(fields))
        }
        (DataType::Array(have), DataType::Array(want)) => Some(DataType::Array(Box::new(grown(policy, have, want)?))),
        (DataType::Map(key, have), DataType::Map(other_key, want)) => {
            (key == other_key).then(|| grown(policy, have, want)).flatten().map(|value| DataType::Map(key.clone(), Box::new(value)))
        }
        (have, want) if have == want => Some(have.clone()),
        (have, want) if has_no_text(have) || has_no_text(want) => None,
        (have, want) => {
            let joined = have.joined(want);
            let is_held = joined == *have && joined != DataType::String;
            (is_held || policy == GrowthPolicy::Widen).then_some(joined)
        }
    }
}

/// As [`grown`], where values are compared with those that are there: as text they would compare otherwise.
pub(crate) fn ordered_alike(policy: GrowthPolicy, table: &DataType, query: &DataType) -> Option<DataType> {
    grown(policy, table, query).filter(|grown| !becomes_text(table, grown))
}

/// Whether a table whose rows are ordered by a sequence of one type goes on with one of another: all of them in one order.
pub fn sequence_goes_on(policy: GrowthPolicy, table: &DataType, query: &DataType) -> bool {
    ordered_alike(policy, table, query).is_some()
}

fn becomes_text(table: &DataType, grown: &DataType) -> bool {
    match (table, grown) {
        (DataType::Struct(have), DataType::Struct(after)) => {
            have.iter().zip(after).any(|(have, after)| becomes_text(&have.data_type, &after.data_type))
        }
        (have, after) => *after == DataType::String && *have != DataType::String,
    }
}

/// Whether values of a type have no one text that they could be kept as.
fn has_no_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(_) | DataType::Array(_) | DataType::Map(..) | DataType::Binary)
}

/// Whether values that are there must be written anew: a type that is not only longer by fields of structs.
pub(crate) fn is_retyped(table: &DataType, after: &DataType) -> bool {
    match (table, after) {
        (DataType::Struct(have), DataType::Struct(fields)) => {
            have.iter().zip(fields).any(|(have, after)| is_retyped(&have.data_type, &after.data_type))
        }
        (DataType::Array(have), DataType::Array(after)) | (DataType::Map(_, have), DataType::Map(_, after)) => is_retyped(have, after),
        (have, after) => have != after,
    }
}

/// Whether any column that is there must be written anew.
pub(crate) fn any_retyped(table: &[Column], after: &[Column]) -> bool {
    table.iter().zip(after).any(|(have, after)| is_retyped(&have.data_type, &after.data_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> DataType {
        text.parse().unwrap()
    }

    #[test]
    fn a_type_grows_as_the_policy_says() {
        for (table, query, add, widen) in [
            ("struct<a:long,b:string>", "struct<b:string,c:date>", "struct<a:long,b:string,c:date>", "struct<a:long,b:string,c:date>"),
            ("struct<a:long>", "struct<a:integer>", "struct<a:long>", "struct<a:long>"),
            ("array<struct<a:integer>>", "array<struct<a:long,b:date>>", "", "array<struct<a:long,b:date>>"),
            ("map<string,integer>", "map<string,long>", "", "map<string,long>"),
            ("map<string,integer>", "map<long,integer>", "", ""),
            ("integer", "long", "", "long"),
            ("long", "integer", "long", "long"),
            ("decimal(12,2)", "decimal(10,4)", "", "decimal(14,4)"),
            ("date", "timestamp_ntz", "", "timestamp_ntz"),
            ("date", "timestamp", "", "string"),
            ("string", "long", "", "string"),
            ("binary", "string", "", ""),
            ("struct<a:long>", "string", "", ""),
        ] {
            let expected = |text: &str| (!text.is_empty()).then(|| of(text));
            for policy in [GrowthPolicy::Add, GrowthPolicy::Freeze] {
                assert_eq!(grown(policy, &of(table), &of(query)), expected(add), "{table} and {query}");
            }
            assert_eq!(grown(GrowthPolicy::Widen, &of(table), &of(query)), expected(widen), "{table} and {query}, widen");
        }
    }

    #[test]
    fn new_fields_need_no_rewrite_and_other_types_do() {
        assert!(!is_retyped(&of("array<struct<a:long>>"), &of("array<struct<a:long,b:date>>")));
        assert!(is_retyped(&of("map<string,struct<a:integer>>"), &of("map<string,struct<a:long>>")));
        assert!(any_retyped(&[Column::new("a", DataType::Integer)], &[Column::new("a", DataType::Long), Column::new("b", DataType::Date)]));
    }
}
