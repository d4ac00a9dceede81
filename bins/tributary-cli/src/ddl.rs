//! `tributary ddl TABLE`.

use clap::ArgMatches;
use tributary::{Layer, TableName, sql};
use tributary_config::Loaded;

use crate::bundle::{Given, Opened};
use crate::failure::{Error, Failure, Outcome};
use crate::{bundle, opened, start, typed};

/// Prints the statements that make a table: as it is in the lake, else as the pipeline declares it.
pub fn ddl(loaded: &Loaded, matches: &ArgMatches, given: &Given) -> Outcome {
    let name = matches.get_one::<String>("table").cloned().unwrap_or_default();
    let text = start::block_on(statements(loaded, given, &name))?;
    start::print(&text)
}

async fn statements(loaded: &Loaded, given: &Given, name: &str) -> Result<String, Failure> {
    let settings = &loaded.settings;
    let name = &typed::table(name, settings.catalogue.as_str())?;
    let unknown = || Failure::from(Error::NoDefinition { table: name.to_owned() });
    // a declaration needs no lake
    let lake = match opened::existing_lake(settings) {
        Ok(lake) => lake,
        Err(_) => opened::empty_lake(settings)?,
    };
    match lake.table(name).await {
        Ok(table) => return Ok(sql::definition(&table)),
        Err(tributary::Error::NoTable { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let table: TableName = name.parse().map_err(|_| unknown())?;
    let Opened { settings, pipeline, .. } = match bundle::open(loaded, given) {
        Ok(opened) => opened,
        // nobody named the pipeline that could have told
        Err(failure) if failure.code == "CL0001" => return Err(unknown()),
        Err(failure) => return Err(failure),
    };
    if let Some(spec) = lake.declared(&pipeline, &table).await? {
        return Ok(sql::create_table(settings.catalogue.as_str(), &spec));
    }
    // what it reads is not there, but may be declared
    let empty = opened::empty_lake(&settings)?;
    empty.setup(&pipeline, &Layer::ALL, &[]).await?;
    match empty.table(name).await {
        Ok(table) => Ok(sql::definition(&table)),
        Err(tributary::Error::NoTable { .. }) => Err(unknown()),
        Err(error) => Err(error.into()),
    }
}
