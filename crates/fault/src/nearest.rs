//! The name a person probably meant.

/// Of `known` the name nearest to `name`, where one is near enough to be meant. Case, dashes and underscores do not count.
///
/// ```
/// use tributary_fault::nearest;
/// assert_eq!(nearest("BASE-DATA-PATHS", ["warehouse", "base_data_path"]), Some("base_data_path"));
/// ```
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let wanted = plain(name);
    known
        .into_iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&wanted, &plain(candidate)), candidate))
        .filter(|(likeness, _)| *likeness >= 0.5)
        .max_by(|(a, name_a), (b, name_b)| a.total_cmp(b).then_with(|| name_b.cmp(name_a)))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_of_the_finger_finds_its_name() {
        let known = ["warehouse", "catalogue", "base_data_path", "keys", "sequence_by"];
        assert_eq!(nearest("warehuose", known), Some("warehouse"));
        assert_eq!(nearest("catalog", known), Some("catalogue"));
        assert_eq!(nearest("seqence_by", known), Some("sequence_by"));
        assert_eq!(nearest("Keys", known), Some("keys"));
    }

    #[test]
    fn a_word_from_elsewhere_has_no_nearest_name() {
        assert_eq!(nearest("frobnicate", ["warehouse", "catalogue", "only"]), None);
        assert_eq!(nearest("zzz", ["keys", "select"]), None);
    }
}
