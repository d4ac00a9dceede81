//! The nearest of several names, for messages about a mistyped one.

/// The candidate nearest to `name` without regard to case, where one is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= 0.5)
        .max_by(|(a, name_a), (b, name_b)| a.total_cmp(b).then_with(|| name_b.cmp(name_a)))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_found_and_a_far_one_is_not() {
        assert_eq!(nearest("seqence_by", ["keys", "sequence_by", "select"]), Some("sequence_by"));
        assert_eq!(nearest("Keys", ["keys"]), Some("keys"));
        assert_eq!(nearest("zzz", ["keys", "select"]), None);
    }
}
