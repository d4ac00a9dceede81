//! Tells of most values, from their hashes alone, that they are not in a set.

/// Bits for each value of the set.
const BITS: usize = 16;

/// The filter stays in the caches of a processor.
const BITS_MAX: usize = 1 << 25;

/// Three bits of one word for each hash: of a hundred other values less than one passes by chance, until the filter is at its largest.
#[derive(Debug)]
pub(super) struct Filter {
    words: Vec<u64>,
    shift: u32,
}

impl Filter {
    /// Of so many hashes.
    pub fn new(hashes: impl ExactSizeIterator<Item = u64>) -> Self {
        let bits = hashes.len().saturating_mul(BITS).clamp(1024, BITS_MAX).next_power_of_two();
        let mut filter = Self { words: vec![0; bits / 64], shift: 64 - (bits / 64).trailing_zeros() };
        for hash in hashes {
            let (word, bits) = filter.bits(hash);
            filter.words[word] |= bits;
        }
        filter
    }

    fn bits(&self, hash: u64) -> (usize, u64) {
        // Fibonacci hashing: the upper bits of the product depend on every bit of the hash; what is far apart is brought together before.
        let hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let bit = |at: u32| 1 << ((hash >> (self.shift - 6 * at)) % 64);
        ((hash >> self.shift) as usize, bit(1) | bit(2) | bit(3))
    }

    /// False for no hash of the set.
    pub fn may_contain(&self, hash: u64) -> bool {
        let (word, bits) = self.bits(hash);
        self.words[word] & bits == bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_passes_and_few_others_do() {
        for step in [1, 2, 1 << 20, 1 << 40] {
            let value = |at: u32| u64::from(at) * step;
            let filter = Filter::new((0..10_000).map(value));
            assert!((0..10_000).all(|at| filter.may_contain(value(at))));
            let passed = (10_000..110_000).filter(|at| filter.may_contain(value(*at))).count();
            assert!(passed < 1_000, "{passed} of 100000 pass, a step of {step}");
        }
    }
}
