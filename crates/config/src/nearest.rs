//! The name a person probably meant.

/// Of `known` the name nearest to `name`, when one is near enough to be meant. Case, dashes and underscores do not count.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let wanted = plain(name);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &plain(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(6) / 3)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_of_the_finger_finds_its_name() {
        let known = ["warehouse", "catalogue", "base_data_path"];
        assert_eq!(nearest("warehuose", known), Some("warehouse"));
        assert_eq!(nearest("catalog", known), Some("catalogue"));
        assert_eq!(nearest("BASE-DATA-PATHS", known), Some("base_data_path"));
    }

    #[test]
    fn a_word_from_elsewhere_has_no_nearest_name() {
        assert_eq!(nearest("frobnicate", ["warehouse", "catalogue", "only"]), None);
    }
}
