//! Which table it is, as a number.

/// Tells tables apart by the id of their metadata: FNV-1a of its text, without the sign. It is kept in logs, so it never changes.
pub(crate) fn of(id: &str) -> i64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let hash = id.bytes().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    (hash & i64::MAX as u64) as i64
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn an_identity_follows_from_the_id_alone_and_stays_what_it_was() {
        // The hash's published values, without their highest bit.
        assert_eq!(of(""), 0x4bf2_9ce4_8422_2325);
        assert_eq!(of("foobar"), 0x0594_4171_f739_67e8);
        assert_ne!(of("6f1c1a52-31a8-4a3a-a6d5-4bdb4f25f9a1"), of("6f1c1a52-31a8-4a3a-a6d5-4bdb4f25f9a2"));
    }
}
