//! Names of tables as people type them: `schema.table`, or `catalogue.schema.table` in a run of that catalogue.

use tributary::{ExitCode, Fault as _, TableName};

use crate::failure::Failure;

/// The name without the catalogue of the run, in any case; any other text as it is.
///
/// # Errors
/// The table is of another catalogue.
pub fn table(name: &str, catalogue: &str) -> Result<String, Failure> {
    let name = name.trim();
    let Err(error) = name.parse::<TableName>() else { return Ok(name.to_owned()) };
    let Some((first, rest)) = name.split_once('.').filter(|(_, rest)| rest.parse::<TableName>().is_ok()) else {
        return Ok(name.to_owned());
    };
    let of = first.trim_matches('`');
    match of.eq_ignore_ascii_case(catalogue) {
        true => Ok(rest.to_owned()),
        false => Err(Failure {
            exit_code: ExitCode::of(error.class()),
            code: error.code().to_string(),
            message: format!("`{name}` is a table of the catalogue `{of}`, and this command is about the catalogue `{catalogue}`"),
            next: Some(format!("tributary show tables --catalogue {first}")),
        }),
    }
}

/// The same of several.
///
/// # Errors
/// As [`table`].
pub fn tables(names: &[String], catalogue: &str) -> Result<Vec<String>, Failure> {
    names.iter().map(|name| table(name, catalogue)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_of_the_run_may_stand_before_a_name_and_another_may_not() {
        let typed = |name: &str| table(name, "prod").map_err(|failure| (failure.message, failure.next.unwrap_or_default()));
        for (name, said) in [
            ("prod.gold.sales", "gold.sales"),
            ("PROD.gold.Sales", "gold.Sales"),
            ("`prod`.gold.`a b`", "gold.`a b`"),
            ("gold.sales", "gold.sales"),
            ("`a.b`.c", "`a.b`.c"),
            (" sales ", "sales"),
            ("prod.gold", "prod.gold"),
            ("prod.a.b.c", "prod.a.b.c"),
        ] {
            assert_eq!(typed(name).as_deref(), Ok(said), "{name}");
        }
        let (message, next) = typed("dev.gold.sales").unwrap_err();
        assert!(message.contains("the catalogue `dev`") && message.contains("the catalogue `prod`"), "{message}");
        assert_eq!(next, "tributary show tables --catalogue dev");
    }
}
