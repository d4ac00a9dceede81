//! Which files are due, what of a file is new to a table, when a batch is full.

use tributary_specs::{Decode, Source, SourceFeed};

use crate::files::{Identity, Listed};
use crate::ledger::{ContentId, Ledger};
use crate::options::Options;
use crate::{Error, Result};

/// What a file is to one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Seen as it is: nothing to do.
    Seen,
    /// Its content is in the table, under another name or time: only that is noted.
    Known,
    /// Records that end behind `from` bytes of the content are new. What comes before was taken as the content `grown_from`.
    Take { from: u64, grown_from: Option<ContentId> },
}

/// Whether the content of a file must be read to decide.
pub(crate) fn due(ledger: &Ledger, file: &Listed) -> bool {
    !ledger.seen(file.path_mark(), file.quick())
}

/// Whether a table that mirrors its folder must be built anew: a file that it was made of has changed, or gone. What is merely new is
/// added to it.
pub(crate) fn differs(ledger: &Ledger, files: &[Listed]) -> bool {
    let there: Vec<&Listed> = files.iter().filter(|file| file.size > 0).collect();
    let changed = there.iter().any(|file| due(ledger, file) && ledger.knows_path(file.path_mark()));
    changed || ledger.paths_besides(&there.iter().map(|file| file.path_mark()).collect()) > 0
}

/// What a file whose content is known is to a table.
pub(crate) fn decide(ledger: &Ledger, file: &Listed, identity: &Identity) -> Decision {
    if !due(ledger, file) {
        return Decision::Seen;
    }
    if ledger.holds(&identity.id) {
        return Decision::Known;
    }
    let taken = identity.prefixes.iter().rev().find(|(_, id)| ledger.holds(id)).filter(|_| ledger.knows_path(file.path_mark()));
    Decision::Take { from: taken.map_or(0, |(size, _)| *size), grown_from: taken.map(|(_, id)| *id) }
}

/// A CSV file without any declared column is of another kind, or its fields are parted otherwise.
pub(crate) fn check_header(feed: &SourceFeed, file: &str, header: &[String]) -> Result<()> {
    let Source::Files(source) = &feed.source else { return Ok(()) };
    let names_one = || feed.columns.iter().any(|column| header.contains(&column.name));
    if feed.decode != Decode::Csv || feed.columns.is_empty() || names_one() {
        return Ok(());
    }
    let declared: Vec<&str> = feed.columns.iter().map(|column| column.name.as_str()).collect();
    let reason = format!(
        "it names none of the columns that feed {} declares ({}); its fields are taken to be parted by `{}` (csv: delimiter)",
        feed.name,
        declared.join(", "),
        source.csv.delimiter.escape_default(),
    );
    Err(Error::Header { path: file.to_owned(), reason })
}

/// How full a batch is.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Fill {
    pub files: usize,
    pub bytes: u64,
    pub records: u64,
}

impl Fill {
    /// Whether a file of `size` bytes still goes into the batch. The first always does.
    pub(crate) fn has_room(&self, size: u64, options: &Options) -> bool {
        self.files == 0
            || self.files < options.max_files_per_trigger.max(1)
                && options.max_bytes_per_trigger.is_none_or(|most| self.bytes.saturating_add(size) <= most)
                && options.max_records_per_trigger.is_none_or(|most| self.records < most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_its_first_file_whatever_its_size_and_then_keeps_its_bounds() {
        let mut options = Options::new(crate::DataRoot::local("data").unwrap());
        options.max_files_per_trigger = 3;
        options.max_bytes_per_trigger = Some(100);
        options.max_records_per_trigger = Some(10);
        assert!(Fill::default().has_room(1_000, &options));
        assert!(Fill { files: 1, bytes: 50, records: 9 }.has_room(50, &options));
        assert!(!Fill { files: 1, bytes: 50, records: 9 }.has_room(51, &options));
        assert!(!Fill { files: 1, bytes: 50, records: 10 }.has_room(1, &options));
        assert!(!Fill { files: 3, bytes: 3, records: 3 }.has_room(1, &options));
    }
}
