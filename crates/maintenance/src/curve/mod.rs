//! A number for each row, so that rows that are near each other in the space of some columns are near each other in a file.

mod hilbert;
mod ranks;

pub(crate) use ranks::{Ranks, SAMPLE_ROWS};

use tributary_lake::Curve;

/// The place of a cell on a curve. `bits` a coordinate, in all at most 64.
pub(crate) fn place(curve: Curve, mut cell: Vec<u32>, bits: u32) -> u64 {
    if curve == Curve::Hilbert {
        hilbert::turn(&mut cell, bits);
    }
    interleave(&cell, bits)
}

/// The bits of the coordinates in turn, highest first.
fn interleave(cell: &[u32], bits: u32) -> u64 {
    let bit = |place: u64, at: u32, coordinate: u32| place << 1 | u64::from(coordinate >> at & 1);
    (0..bits).rev().fold(0, |place, at| cell.iter().fold(place, |place, coordinate| bit(place, at, *coordinate)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of a space of so many dimensions, in the order of the curve.
    fn walk(curve: Curve, dimensions: u32, bits: u32) -> Vec<Vec<u32>> {
        let cell = |number: u32| (0..dimensions).map(|axis| number >> (axis * bits) & ((1 << bits) - 1)).collect::<Vec<u32>>();
        let mut cells: Vec<(u64, Vec<u32>)> =
            (0..1 << (dimensions * bits)).map(|number| (place(curve, cell(number), bits), cell(number))).collect();
        cells.sort_unstable();
        for (at, (place, _)) in cells.iter().enumerate() {
            assert_eq!(*place, at as u64, "each cell has a place of its own");
        }
        cells.into_iter().map(|(_, cell)| cell).collect()
    }

    #[test]
    fn a_step_on_the_hilbert_curve_is_one_step_in_space() {
        for (dimensions, bits) in [(1, 5), (2, 1), (2, 4), (3, 3), (4, 2)] {
            for pair in walk(Curve::Hilbert, dimensions, bits).windows(2) {
                let steps: u32 = pair[0].iter().zip(&pair[1]).map(|(one, other)| one.abs_diff(*other)).sum();
                assert_eq!(steps, 1, "{pair:?} of {dimensions} dimensions");
            }
        }
    }

    #[test]
    fn z_order_goes_through_every_cell_with_jumps() {
        let steps = |pair: &[Vec<u32>]| pair[0].iter().zip(&pair[1]).map(|(one, other)| one.abs_diff(*other)).sum::<u32>();
        assert!(walk(Curve::ZOrder, 2, 3).windows(2).any(|pair| steps(pair) > 1));
        assert_eq!(place(Curve::ZOrder, vec![0b10, 0b01], 2), 0b1001);
    }

    #[test]
    fn one_column_is_sorted_by_itself() {
        for curve in [Curve::Hilbert, Curve::ZOrder] {
            assert!((0..1000).all(|value| place(curve, vec![value], 10) == u64::from(value)));
        }
    }

    #[test]
    fn six_columns_still_fit() {
        assert_eq!(place(Curve::ZOrder, vec![1023; 6], 10), (1 << 60) - 1);
    }
}
