//! Numbers from a seed, the same on every machine.

/// Mixes numbers into one that looks like chance (splitmix64's finaliser after each).
pub(super) fn mixed(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0, |state: u64, number| {
        let mut bits = (state ^ number).wrapping_add(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    })
}

/// A sequence of such numbers.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn of(numbers: &[u64]) -> Self {
        Self(mixed(numbers))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = mixed(&[self.0]);
        self.0
    }

    /// A number from `from` to before `to`.
    pub(super) fn within(&mut self, from: i64, to: i64) -> i64 {
        let span = to.abs_diff(from).max(1);
        from.saturating_add_unsigned(self.next() % span)
    }

    /// One of a list that is not empty.
    pub(super) fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[(self.next() % list.len() as u64) as usize]
    }
}
