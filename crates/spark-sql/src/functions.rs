//! The allow list of functions, and why others are not on it.

/// What a function of the dialect is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning<'n> {
    /// The engine's function of this name does the same with so many arguments.
    Same { name: &'n str, least: usize, most: usize },
    /// Another way to say it, made by `calls.rs`.
    Rewritten(Rewrite),
    /// Not executed by this release: what the engine would do, or what to say instead.
    Refused(&'static str),
    /// Not known.
    Unknown,
}

/// How a call is said to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// `year(x)` and its kin.
    Extract(&'static str),
    /// `mod(a, b)`.
    Remainder,
    /// `if(condition, a, b)`.
    If,
    /// `count_if(condition)`.
    CountIf,
    /// `to_date(text)` with one argument.
    ToDate,
    /// `isnull(x)`.
    IsNull,
    /// `isnotnull(x)`.
    IsNotNull,
    /// `substring(text, from[, length])`.
    Substring,
    /// `concat(a, b, …)`, null when one is.
    Concat,
    /// `round(x[, digits])` with literal digits that are not negative.
    Round,
    /// `left(text, n)`, `right(text, n)` with a literal n that is not negative.
    Side(&'static str),
}

use Meaning::{Refused, Rewritten};

const ANY: usize = usize::MAX;

const fn same(name: &'static str, least: usize, most: usize) -> Meaning<'static> {
    Meaning::Same { name, least, most }
}

/// Every function of the dialect that is known, by its names.
const FUNCTIONS: &[(&[&str], Meaning<'static>)] = &[
    // aggregates
    (&["count"], same("count", 1, 1)),
    (&["sum"], same("sum", 1, 1)),
    (&["min"], same("min", 1, 1)),
    (&["max"], same("max", 1, 1)),
    (&["avg", "mean"], same("avg", 1, 1)),
    (&["bool_and", "every"], same("bool_and", 1, 1)),
    (&["bool_or", "some", "any"], same("bool_or", 1, 1)),
    (&["stddev", "stddev_samp", "std"], same("stddev", 1, 1)),
    (&["stddev_pop"], same("stddev_pop", 1, 1)),
    (&["variance", "var_samp"], same("var_samp", 1, 1)),
    (&["var_pop"], same("var_pop", 1, 1)),
    (&["covar_pop"], same("covar_pop", 2, 2)),
    (&["covar_samp"], same("covar_samp", 2, 2)),
    (&["corr"], same("corr", 2, 2)),
    (&["count_if"], Rewritten(Rewrite::CountIf)),
    // windows
    (&["row_number"], same("row_number", 0, 0)),
    (&["rank"], same("rank", 0, 0)),
    (&["dense_rank"], same("dense_rank", 0, 0)),
    (&["percent_rank"], same("percent_rank", 0, 0)),
    (&["cume_dist"], same("cume_dist", 0, 0)),
    (&["ntile"], same("ntile", 1, 1)),
    (&["lag"], same("lag", 1, 3)),
    (&["lead"], same("lead", 1, 3)),
    (&["first_value"], same("first_value", 1, 1)),
    (&["last_value"], same("last_value", 1, 1)),
    (&["nth_value"], same("nth_value", 2, 2)),
    // conditions
    (&["coalesce"], same("coalesce", 1, ANY)),
    (&["nvl", "ifnull"], same("coalesce", 2, 2)),
    (&["nvl2"], same("nvl2", 3, 3)),
    (&["nullif"], same("nullif", 2, 2)),
    (&["greatest"], same("greatest", 2, ANY)),
    (&["least"], same("least", 2, ANY)),
    (&["if", "iff"], Rewritten(Rewrite::If)),
    (&["isnull"], Rewritten(Rewrite::IsNull)),
    (&["isnotnull"], Rewritten(Rewrite::IsNotNull)),
    // texts
    (&["lower", "lcase"], same("lower", 1, 1)),
    (&["upper", "ucase"], same("upper", 1, 1)),
    (&["trim"], same("btrim", 1, 1)),
    (&["ltrim"], same("ltrim", 1, 1)),
    (&["rtrim"], same("rtrim", 1, 1)),
    (&["length", "len", "char_length", "character_length"], same("character_length", 1, 1)),
    (&["octet_length"], same("octet_length", 1, 1)),
    (&["replace"], same("replace", 3, 3)),
    (&["repeat"], same("repeat", 2, 2)),
    (&["reverse"], same("reverse", 1, 1)),
    (&["concat"], Rewritten(Rewrite::Concat)),
    (&["concat_ws"], same("concat_ws", 2, ANY)),
    (&["startswith"], same("starts_with", 2, 2)),
    (&["endswith"], same("ends_with", 2, 2)),
    (&["contains"], same("contains", 2, 2)),
    (&["instr"], same("strpos", 2, 2)),
    (&["lpad"], same("lpad", 3, 3)),
    (&["rpad"], same("rpad", 3, 3)),
    (&["md5"], same("md5", 1, 1)),
    (&["regexp_like"], same("regexp_like", 2, 2)),
    (&["substring", "substr"], Rewritten(Rewrite::Substring)),
    (&["left"], Rewritten(Rewrite::Side("left"))),
    (&["right"], Rewritten(Rewrite::Side("right"))),
    // numbers
    (&["abs"], same("abs", 1, 1)),
    (&["sign", "signum"], same("signum", 1, 1)),
    (&["sqrt"], same("sqrt", 1, 1)),
    (&["cbrt"], same("cbrt", 1, 1)),
    (&["exp"], same("exp", 1, 1)),
    (&["pi"], same("pi", 0, 0)),
    (&["degrees"], same("degrees", 1, 1)),
    (&["radians"], same("radians", 1, 1)),
    (&["sin"], same("sin", 1, 1)),
    (&["cos"], same("cos", 1, 1)),
    (&["tan"], same("tan", 1, 1)),
    (&["asin"], same("asin", 1, 1)),
    (&["acos"], same("acos", 1, 1)),
    (&["atan"], same("atan", 1, 1)),
    (&["atan2"], same("atan2", 2, 2)),
    (&["mod"], Rewritten(Rewrite::Remainder)),
    (&["round"], Rewritten(Rewrite::Round)),
    // times
    (&["current_date", "curdate"], same("current_date", 0, 0)),
    (&["current_timestamp", "now"], same("now", 0, 0)),
    (&["date_trunc"], same("date_trunc", 2, 2)),
    (&["to_date"], Rewritten(Rewrite::ToDate)),
    (&["year"], Rewritten(Rewrite::Extract("YEAR"))),
    (&["quarter"], Rewritten(Rewrite::Extract("QUARTER"))),
    (&["month"], Rewritten(Rewrite::Extract("MONTH"))),
    (&["weekofyear"], Rewritten(Rewrite::Extract("WEEK"))),
    (&["day", "dayofmonth"], Rewritten(Rewrite::Extract("DAY"))),
    (&["hour"], Rewritten(Rewrite::Extract("HOUR"))),
    (&["minute"], Rewritten(Rewrite::Extract("MINUTE"))),
    // the same name, another meaning
    (&["date_format"], Refused("the engine reads the pattern as another language; use date_trunc, extract, or cast to string")),
    (&["to_timestamp"], Refused("the engine reads numbers and patterns otherwise; cast a text to timestamp instead")),
    (&["from_unixtime", "unix_timestamp", "to_unix_timestamp"], Refused("the engine reads patterns and zones otherwise")),
    (&["date_part", "datepart"], Refused("days of the week are counted otherwise; use extract(year from …) and its kin")),
    (&["element_at"], Refused("the engine gives a list for a map and counts otherwise")),
    (&["size", "cardinality"], Refused("null is counted otherwise")),
    (&["array_contains", "array_position"], Refused("null is compared otherwise")),
    (&["array_agg", "collect_list", "collect_set"], Refused("the engine keeps nulls, the dialect drops them")),
    (&["initcap"], Refused("the engine takes every sign for a word's end, the dialect only blanks")),
    (&["ln", "log", "log10", "log2"], Refused("of zero and below the dialect gives null, the engine does not")),
    (&["pow", "power"], Refused("of whole numbers the dialect gives a double, the engine a whole number")),
    (&["bround"], Refused("halves go to the even neighbour in the dialect only")),
    (
        &["percentile", "percentile_approx", "approx_percentile", "approx_count_distinct", "median"],
        Refused("the engine's estimate or type is another"),
    ),
    (&["regexp_replace"], Refused("the engine replaces the first match only")),
    (&["regexp_extract"], Refused("the engine has no such function")),
    (&["split", "split_part"], Refused("patterns and ends are treated otherwise")),
    (&["translate", "ascii", "chr", "char"], Refused("signs beyond the first 256 are treated otherwise")),
    (&["sha2", "sha1", "sha", "hash", "xxhash64", "crc32"], Refused("the engine has no such function, or another result")),
    (&["named_struct"], same("named_struct", 2, ANY)),
    (
        &["struct", "map", "array", "explode", "posexplode", "inline", "unnest"],
        Refused("nested values cannot be made or unfolded in this release"),
    ),
    (&["from_json", "to_json", "get_json_object", "schema_of_json"], Refused("JSON texts cannot be read in this release")),
    (&["date_add", "dateadd", "date_sub", "add_months"], Refused("use x + interval '1' day")),
    (&["datediff", "date_diff", "months_between", "timestampdiff"], Refused("differences of days cannot be made in this release")),
    (&["rand", "random", "uuid", "monotonically_increasing_id"], Refused("two runs would answer differently")),
    (&["grouping", "grouping_id"], Refused("groups of ROLLUP and CUBE are numbered otherwise")),
    (&["ceil", "ceiling", "floor"], Refused("with one argument only")),
];

/// What the function of this name, in lower case, is here.
pub(crate) fn meaning(name: &str) -> Meaning<'static> {
    FUNCTIONS.iter().find(|(names, _)| names.contains(&name)).map_or(Meaning::Unknown, |(_, meaning)| *meaning)
}

/// Names that are executed.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().filter(|(_, meaning)| !matches!(meaning, Refused(_))).flat_map(|(names, _)| names.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_known_once() {
        let mut names: Vec<&str> = FUNCTIONS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
