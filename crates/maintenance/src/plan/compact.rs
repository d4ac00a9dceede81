//! Bin packing of small files, and purge of rows that are marked as deleted.

use super::{Becomes, Bin, File, by_partition, runs_within};

/// From where on files are written anew.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Bytes that a file is to have.
    pub file_bytes: u64,
    /// Bytes that are read for one bin at most.
    pub bin_bytes: u64,
    /// As [`crate::Options::vector_share`].
    pub vector_share: f64,
    /// Small files are left until what came since is worth their bytes.
    pub waits: bool,
}

/// Bytes that are always worth writing anew, to have one file less.
const CHEAP_BYTES: u64 = 4 << 20;

/// The bins of a table's files. What they become needs none again: a partition keeps one small file at most, and one that was closed as
/// full counts as large whatever compression made of it.
pub(crate) fn compact(files: &[File], rules: &Rules) -> Vec<Bin> {
    by_partition(files).into_iter().flat_map(|files| of_partition(&files, rules)).collect()
}

fn of_partition(files: &[&File], rules: &Rules) -> Vec<Bin> {
    let is_purged = |file: &File| file.is_purged_at(rules.vector_share);
    let ours = files.iter().copied().filter(|file| !file.foreign);
    let (small, others): (Vec<&File>, Vec<&File>) = ours.partition(|file| is_small(file, rules));
    let small = if rules.waits { worth_it(&small, rules) } else { small };
    let runs = runs_within(&small, rules.bin_bytes).into_iter().filter(|run| run.len() > 1 || run.iter().any(|file| is_purged(file)));
    let few = runs.map(|run| bin(&run, Becomes::Few));
    few.chain(others.iter().filter(|file| is_purged(file)).map(|file| bin(&[file], Becomes::Purged))).collect()
}

fn bin(files: &[&File], becomes: Becomes) -> Bin {
    Bin { files: files.iter().map(|file| (*file).clone()).collect(), becomes }
}

/// Whether a file is to be one with others. Rows of a cube lie where they are to lie.
fn is_small(file: &File, rules: &Rules) -> bool {
    let is_full = file.full_at.is_some_and(|bytes| bytes >= rules.file_bytes);
    let is_purged = file.is_purged_at(rules.vector_share);
    let left = if is_purged { file.live_bytes() } else { file.bytes };
    file.cube.is_none() && left < rules.file_bytes / 2 && (is_purged || !is_full)
}

/// The small files without those that are larger than all smaller ones together: a file that gets a little more every minute is not
/// written anew every minute, but each time it doubles.
fn worth_it<'a>(small: &[&'a File], rules: &Rules) -> Vec<&'a File> {
    let is_purged = |file: &File| file.is_purged_at(rules.vector_share);
    let mut by_size = small.to_vec();
    by_size.sort_by_key(|file| (!is_purged(file), file.bytes));
    let mut bytes = 0;
    let worth = by_size.into_iter().take_while(|file| {
        let is_worth_it = is_purged(file) || file.bytes <= CHEAP_BYTES.max(bytes);
        bytes += file.bytes;
        is_worth_it
    });
    let mut worth: Vec<&File> = worth.collect();
    worth.sort_by_key(|file| (file.modified_ms, file.at));
    worth
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use tributary_lake::{Cube, Curve};

    const MIB: u64 = 1 << 20;
    const RULES: Rules = Rules { file_bytes: 32 * MIB, bin_bytes: 1 << 30, vector_share: 0.1, waits: false };

    fn files(mebibytes: &[u64]) -> Vec<File> {
        let file = |(at, bytes): (usize, &u64)| File { at, bytes: bytes * MIB, rows: Some(100), modified_ms: at as i64, ..File::default() };
        mebibytes.iter().enumerate().map(file).collect()
    }

    fn numbers(bins: &[Bin]) -> Vec<Vec<usize>> {
        bins.iter().map(|bin| bin.files.iter().map(|file| file.at).collect()).collect()
    }

    #[test]
    fn small_files_of_a_partition_become_one_bin_in_the_order_they_came() {
        assert_eq!(numbers(&compact(&files(&[1, 40, 15, 2]), &RULES)), [[0, 2, 3]]);
        assert_eq!(numbers(&compact(&files(&[1, 40]), &RULES)), [[0; 0]; 0], "one small file stays");
        let mut two = files(&[1, 1, 1, 1]);
        for file in &mut two[..2] {
            file.partition = BTreeMap::from([("day".to_owned(), None)]);
        }
        assert_eq!(numbers(&compact(&two, &RULES)), [[2, 3], [0, 1]], "partitions are apart");
    }

    #[test]
    fn a_bin_has_its_bytes_and_the_rest_makes_another() {
        let rules = Rules { bin_bytes: 3 * MIB, ..RULES };
        assert_eq!(numbers(&compact(&files(&[1, 1, 1, 1, 1, 2]), &rules)), [vec![0, 1, 2], vec![3, 4]]);
    }

    #[test]
    fn what_was_closed_as_full_and_what_lies_in_a_cube_is_left() {
        let mut three = files(&[1, 1, 1]);
        three[0].full_at = Some(32 * MIB);
        three[1].cube = Some(Cube { id: "c".to_owned(), columns: vec!["a".to_owned()], curve: Curve::ZOrder });
        assert_eq!(compact(&three, &RULES), []);
        three[0].full_at = Some(16 * MIB);
        three[1].cube = None;
        three[2].foreign = true;
        assert_eq!(numbers(&compact(&three, &RULES)), [[0, 1]], "full for a smaller size is small");
    }

    #[test]
    fn rows_marked_as_deleted_go_from_their_share_on() {
        let mut two = files(&[20, 20]);
        two[0].marked = Some(10);
        two[1].marked = Some(9);
        let bins = compact(&two, &RULES);
        assert_eq!(numbers(&bins), [[0]]);
        assert_eq!(bins[0].becomes, Becomes::Purged);
        two[0].marked = Some(90);
        assert_eq!(compact(&two, &RULES)[0].becomes, Becomes::Few, "what is left of it is small");
        two[0].rows = None;
        assert_eq!(numbers(&compact(&two, &RULES)), [[0]], "where nobody counted it may be any share");
    }

    #[test]
    fn a_file_that_grows_is_written_anew_when_it_doubles() {
        let rules = Rules { waits: true, ..RULES };
        assert_eq!(numbers(&compact(&files(&[1, 1, 3, 14]), &rules)), [[0, 1, 2]], "14 are more than 5");
        assert_eq!(numbers(&compact(&files(&[14, 4, 4, 4, 3]), &rules)), [[0, 1, 2, 3, 4]]);
        assert_eq!(numbers(&compact(&files(&[14, 1]), &rules)), [[0; 0]; 0]);
        assert_eq!(numbers(&compact(&files(&[3, 1]), &rules)), [[0, 1]], "cheap");
    }
}
