//! Which files are sorted along a curve together.
//!
//! A cube is never sorted again for its own sake. What is new is sorted into a cube of its own, together with every cube that is no larger
//! than what is sorted anyway: so each cube is larger than all smaller ones together, their number grows with the logarithm of the
//! table, and a row is sorted again as often as that. A point of the space lies in one file a cube.

use std::collections::BTreeMap;

use tributary_lake::Curve;

use super::{Becomes, Bin, File, by_partition, runs_within};

/// By what rows are sorted and how many of them together.
#[derive(Debug, Clone)]
pub(crate) struct Along {
    pub columns: Vec<String>,
    pub curve: Curve,
    /// Bytes of a cube at most.
    pub cube_bytes: u64,
    /// Bytes of files that lie along former clustering columns and are sorted in one run at most.
    pub former_bytes: u64,
    /// As [`crate::Options::vector_share`].
    pub vector_share: f64,
}

/// The bins of a table's files.
pub(crate) fn cubes(files: &[File], along: &Along) -> Vec<Bin> {
    let mut former_left = along.former_bytes;
    by_partition(files).into_iter().flat_map(|files| of_partition(&files, along, &mut former_left)).collect()
}

fn of_partition(files: &[&File], along: &Along, former_left: &mut u64) -> Vec<Bin> {
    let mut chosen = Vec::new();
    let (mut current, mut former) = (BTreeMap::<&str, Vec<&File>>::new(), Vec::new());
    for file in files.iter().copied().filter(|file| !file.foreign) {
        match &file.cube {
            Some(cube) if cube.curve == along.curve && cube.columns == along.columns => current.entry(&cube.id).or_default().push(file),
            // By former columns of a clustered table: gradually. A person who asks for another order gets it.
            Some(cube) if cube.curve == Curve::Hilbert && along.curve == Curve::Hilbert => former.push(file),
            _ => chosen.push(file),
        }
    }
    former.sort_by_key(|file| file.cube.as_ref().map(|cube| cube.id.as_str()));
    for file in former {
        let is_first = chosen.is_empty() && *former_left == along.former_bytes;
        if file.bytes > *former_left && !is_first {
            break;
        }
        *former_left = former_left.saturating_sub(file.bytes);
        chosen.push(file);
    }
    let mut rest = smallest_first(current);
    let joins = |bytes: u64, cube: &[&File]| bytes_of(cube) <= bytes && bytes_of(cube) <= along.cube_bytes / 2;
    while !chosen.is_empty() && rest.first().is_some_and(|cube| joins(bytes_of(&chosen), cube)) {
        chosen.extend(rest.remove(0));
    }
    let sorted = runs_within(&chosen, along.cube_bytes).into_iter().map(|files| Bin {
        files: files.into_iter().cloned().collect(),
        becomes: Becomes::Cube { columns: along.columns.clone(), curve: along.curve },
    });
    let purged = rest.into_iter().flatten().filter(|file| file.is_purged_at(along.vector_share));
    sorted.chain(purged.map(|file| Bin { files: vec![file.clone()], becomes: Becomes::Purged })).collect()
}

fn smallest_first<'a>(cubes: BTreeMap<&str, Vec<&'a File>>) -> Vec<Vec<&'a File>> {
    let mut cubes: Vec<Vec<&File>> = cubes.into_values().collect();
    cubes.sort_by_key(|cube| bytes_of(cube));
    cubes
}

fn bytes_of(files: &[&File]) -> u64 {
    files.iter().map(|file| file.live_bytes()).sum()
}

#[cfg(test)]
mod tests {
    use tributary_lake::Cube;

    use super::*;

    fn along() -> Along {
        Along { columns: vec!["a".to_owned()], curve: Curve::Hilbert, cube_bytes: 1000, former_bytes: 100, vector_share: 0.1 }
    }

    /// Bytes of a file, and of which cube by which column it is.
    type Said<'a> = (u64, Option<(&'a str, &'a str)>);

    fn files(said: &[Said<'_>]) -> Vec<File> {
        let cube = |(id, column): (&str, &str)| Cube { id: id.to_owned(), columns: vec![column.to_owned()], curve: Curve::Hilbert };
        let file = |at: usize| File { at, bytes: said[at].0, rows: Some(10), cube: said[at].1.map(cube), ..File::default() };
        (0..said.len()).map(file).collect()
    }

    fn numbers(bins: &[Bin]) -> Vec<Vec<usize>> {
        bins.iter().map(|bin| bin.files.iter().map(|file| file.at).collect()).collect()
    }

    #[test]
    fn what_is_in_order_is_left_and_what_is_new_takes_smaller_cubes_along() {
        let (x, y, z) = (Some(("x", "a")), Some(("y", "a")), Some(("z", "a")));
        assert_eq!(cubes(&files(&[(5, x), (5, x), (1, y)]), &along()), []);
        assert_eq!(numbers(&cubes(&files(&[(50, x), (50, x), (9, y), (10, None)]), &along())), [[3, 2]]);
        assert_eq!(numbers(&cubes(&files(&[(50, x), (15, y), (9, z), (10, None)]), &along())), [[3, 2, 1]], "10 and 9 are more than 15");
        assert_eq!(numbers(&cubes(&files(&[(600, x), (700, None)]), &along())), [[1]], "a cube of half the bytes is sorted for good");
    }

    #[test]
    fn a_point_lies_in_as_many_cubes_as_the_logarithm_of_the_table_has() {
        let mut table: Vec<(u64, Option<String>)> = Vec::new();
        let along = Along { cube_bytes: 1 << 40, ..along() };
        let mut sorted = 0;
        for run in 0..1000_u64 {
            table.push((1, None));
            let said: Vec<_> = table.iter().map(|(bytes, id)| (*bytes, id.as_deref().map(|id| (id, "a")))).collect();
            let bin = cubes(&files(&said), &along).remove(0);
            let gone: Vec<usize> = bin.files.iter().map(|file| file.at).collect();
            sorted += bin.bytes();
            let rest = table.iter().enumerate().filter(|(at, _)| !gone.contains(at)).map(|(_, file)| file.clone());
            table = rest.chain([(bin.bytes(), Some(run.to_string()))]).collect();
        }
        assert_eq!(table.iter().map(|(bytes, _)| bytes).sum::<u64>(), 1000);
        assert!(table.len() <= 10, "{table:?}");
        assert!(sorted <= 10 * 1000, "{sorted} rows were sorted for 1000");
    }

    #[test]
    fn files_by_former_columns_are_sorted_little_by_little_and_by_another_order_at_once() {
        let (x, y) = (Some(("x", "b")), Some(("y", "b")));
        let former = files(&[(60, x), (70, y), (3, None)]);
        assert_eq!(numbers(&cubes(&former, &along())), [[2, 0]], "60 of 100");
        assert_eq!(numbers(&cubes(&files(&[(500, x)]), &along())), [[0]], "more than the limit alone");
        assert_eq!(numbers(&cubes(&files(&[(500, x), (1, None)]), &along())), [[1]]);
        let zorder = Along { curve: Curve::ZOrder, ..along() };
        assert_eq!(numbers(&cubes(&former, &zorder)), [[0, 1, 2]]);
    }

    #[test]
    fn what_somebody_else_clustered_is_left_and_marked_rows_go_in_place() {
        let x = Some(("x", "a"));
        let mut three = files(&[(5, x), (5, None), (5, x)]);
        three[1].foreign = true;
        three[2].marked = Some(1);
        let bins = cubes(&three, &along());
        assert_eq!((numbers(&bins), &bins[0].becomes), (vec![vec![2]], &Becomes::Purged));
    }
}
