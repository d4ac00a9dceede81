//! Tables of every kind that we write.

mod changed;
mod grown;
mod marked;
mod partitioned;
mod plain;

pub use changed::changes;

use anyhow::Result;

use crate::world::{Kind, World};

/// Writes them all.
pub async fn write(world: &World) -> Result<Vec<Kind>> {
    let mut kinds = plain::write(world).await?;
    kinds.extend(partitioned::write(world).await?);
    kinds.extend(changed::write(world).await?);
    kinds.extend(grown::write(world).await?);
    kinds.extend(marked::write(world).await?);
    Ok(kinds)
}
