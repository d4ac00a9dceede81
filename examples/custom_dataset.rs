//! Datasets that SQL cannot say, built in Rust: a scalar function used in a gold query, and a silver table built from a data frame.

use std::error::Error;
use std::sync::Arc;

use tributary::arrow::array::{ArrayRef, AsArray, StringArray};
use tributary::arrow::datatypes::DataType;
use tributary::datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use tributary::datafusion::prelude::{col, lit};
use tributary::{
    BuildWith, Decode, FileFormat, FileSource, GoldSpec, Lake, MergePolicy, OpenOptions, Pipeline, RunOptions, SilverSpec, SourceFeed,
    Status,
};

/// `site(url)`: the part between `//` and the next `/`.
fn site() -> ScalarUDF {
    let body = |arguments: &[ColumnarValue]| {
        let urls = ColumnarValue::values_to_arrays(arguments)?.remove(0);
        let sites = urls.as_string::<i32>().iter().map(|url| url.and_then(|url| url.split('/').nth(2).map(str::to_owned)));
        Ok(ColumnarValue::Array(Arc::new(sites.collect::<StringArray>()) as ArrayRef))
    };
    create_udf("site", vec![DataType::Utf8], DataType::Utf8, Volatility::Immutable, Arc::new(body))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::create_dir(folder.path().join("visits"))?;
    let lines = [
        r#"{"id": 1, "url": "https://shop.example/basket", "seconds": 12}"#,
        r#"{"id": 2, "url": "https://blog.example/", "seconds": 0}"#,
        r#"{"id": 3, "url": "https://shop.example/", "seconds": 30}"#,
    ];
    std::fs::write(folder.path().join("visits/1.jsonl"), lines.join("\n") + "\n")?;

    let feed = SourceFeed::new("visits", "bronze.visits".parse()?, FileSource::new("visits", FileFormat::Jsonl)).with_decode(Decode::Json);
    let visits = SilverSpec::new("silver.visits".parse()?, ["bronze.visits".parse()?])
        .with_policy(MergePolicy::Append)
        .build_with(|_context, inputs| async move { inputs["bronze.visits"].clone().filter(col("seconds").gt(lit(0))) });
    let by_site = GoldSpec::new(
        "gold.seconds_by_site".parse()?,
        "select site(url) as site, sum(seconds) as seconds from silver.visits group by site(url)",
    );
    let pipeline = Pipeline::builder("web").feed(feed).silver(visits).gold(by_site).function(site()).build()?;

    let lake = Lake::open("memory://", OpenOptions::default())?;
    let report = lake.run(&pipeline, RunOptions { base_data_path: folder.path().to_owned(), ..RunOptions::default() }).await?;
    assert!(report.datasets.iter().all(|dataset| dataset.status == Status::Committed), "{report:#?}");

    let rows = lake.session().await?.sql("select site, seconds from gold.seconds_by_site").await?;
    println!("{}", rows.to_string().await?);
    Ok(())
}
