//! How a view would be refreshed, and whether it is what it should be.

use tributary_gold_agg::{Audit, Explained};
use tributary_specs::{GoldSpec, TableName};

use crate::{Error, Lake, Pipeline};

impl Lake {
    /// How a view of a pipeline would be refreshed with its inputs as they are, and what would be read; none while a table that it
    /// reads is not there. Reads logs alone.
    ///
    /// # Errors
    /// [`Error::NoDataset`] when the pipeline has no such view; [`Error::Gold`] when its query cannot be planned.
    pub async fn explain(&self, pipeline: &Pipeline, table: &str) -> Result<Option<Explained>, Error> {
        let pipeline = &pipeline.with_functions_of(self).await?;
        let spec = view_of(pipeline, table, &self.inner().options().catalogue)?;
        Ok(tributary_gold_agg::explain(self.inner(), spec, &pipeline.gold_options(spec)).await?)
    }

    /// Computes some groups of a view again, chosen at random, from its inputs at the versions that it records, and compares them with
    /// its rows; none where it was not made yet, or from another definition. Writes nothing.
    ///
    /// # Errors
    /// As [`Lake::explain`]; [`tributary_gold_agg::Error::Differs`] where a row differs.
    pub async fn audit(&self, pipeline: &Pipeline, table: &str, groups: usize) -> Result<Option<Audit>, Error> {
        let pipeline = &pipeline.with_functions_of(self).await?;
        let spec = view_of(pipeline, table, &self.inner().options().catalogue)?;
        Ok(tributary_gold_agg::audit(self.inner(), spec, &pipeline.gold_options(spec), groups).await?)
    }
}

/// The view of a name, before which the catalogue of the lake may stand.
fn view_of<'a>(pipeline: &'a Pipeline, table: &str, catalogue: &str) -> Result<&'a GoldSpec, Error> {
    let views = &pipeline.spec().gold;
    let named = |wanted: &TableName| views.iter().find(|spec| spec.table.same_without_case(wanted));
    let below = |(first, rest): (&str, &str)| first.trim_matches('`').eq_ignore_ascii_case(catalogue).then(|| rest.parse().ok()).flatten();
    let wanted: Option<TableName> = table.parse().ok().or_else(|| table.split_once('.').and_then(below));
    let found = wanted.and_then(|wanted| named(&wanted));
    found.ok_or_else(|| match other_catalogue(table, catalogue) {
        Some(other) => Error::OtherCatalogue { table: table.to_owned(), other, catalogue: catalogue.to_owned() },
        None => Error::no_dataset(table, views.iter().map(|spec| &spec.table)),
    })
}

/// The catalogue before a name of three parts, where it is another than the lake's.
fn other_catalogue(table: &str, catalogue: &str) -> Option<String> {
    let (first, rest) = table.split_once('.')?;
    let first = first.trim_matches('`');
    (rest.parse::<TableName>().is_ok() && !first.eq_ignore_ascii_case(catalogue)).then(|| first.to_owned())
}
