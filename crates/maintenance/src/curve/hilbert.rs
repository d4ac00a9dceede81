//! The Hilbert curve of any number of dimensions.
//!
//! In each of the halvings of the space, from the largest to the smallest, the curve enters and leaves a half turned and mirrored. Undoing
//! that, halving by halving, leaves coordinates in Gray code, whose bits taken in turn are the place on the curve (J. Skilling,
//! "Programming the Hilbert curve", 2004).

/// Turns the coordinates of a cell into those whose interleaved bits are its place.
pub(super) fn turn(cell: &mut [u32], bits: u32) {
    if cell.len() < 2 {
        return;
    }
    for at in (1..bits).rev() {
        undo(cell, 1 << at);
    }
    to_gray(cell, bits);
}

/// Undoes what the curve does below one halving: `half` is the bit of it.
fn undo(cell: &mut [u32], half: u32) {
    let below = half - 1;
    for axis in 0..cell.len() {
        if cell[axis] & half == 0 {
            let swapped = (cell[0] ^ cell[axis]) & below;
            cell[0] ^= swapped;
            cell[axis] ^= swapped;
        } else {
            cell[0] ^= below;
        }
    }
}

fn to_gray(cell: &mut [u32], bits: u32) {
    for axis in 1..cell.len() {
        cell[axis] ^= cell[axis - 1];
    }
    let last = cell[cell.len() - 1];
    let mirrored = (1..bits).filter(|at| last >> at & 1 == 1).fold(0, |mirrored, at| mirrored ^ ((1 << at) - 1));
    for coordinate in cell {
        *coordinate ^= mirrored;
    }
}
