//! Comparisons of condition tasks, and inputs of for_each tasks.

use std::cmp::Ordering;

use serde_json::Value as Json;

/// Whether a comparison holds: texts for equality, numbers for order; none where an order is asked of something that is no number,
/// or the comparison is not known.
///
/// ```
/// use tributary_bundle::compare;
/// assert_eq!(compare("EQUAL_TO", "1.0", "1"), Some(false));
/// assert_eq!(compare("GREATER_THAN", "10", "9.5"), Some(true));
/// assert_eq!(compare("LESS_THAN", "ten", "9"), None);
/// ```
pub fn compare(op: &str, left: &str, right: &str) -> Option<bool> {
    let order = || -> Option<Ordering> {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        number(left)?.partial_cmp(&number(right)?)
    };
    match op {
        "EQUAL_TO" => Some(left == right),
        "NOT_EQUAL" => Some(left != right),
        "GREATER_THAN" => order().map(Ordering::is_gt),
        "GREATER_THAN_OR_EQUAL" => order().map(Ordering::is_ge),
        "LESS_THAN" => order().map(Ordering::is_lt),
        "LESS_THAN_OR_EQUAL" => order().map(Ordering::is_le),
        _ => None,
    }
}

/// The elements of a for_each task, each as `{{input}}` stands for it: texts bare, anything else as JSON. None where the text is
/// no JSON list.
///
/// ```
/// use tributary_bundle::inputs;
/// assert_eq!(inputs(r#"["eu", 2, {"day": "mon"}]"#).unwrap(), ["eu", "2", r#"{"day":"mon"}"#]);
/// assert_eq!(inputs("eu"), None);
/// ```
pub fn inputs(text: &str) -> Option<Vec<String>> {
    let Ok(Json::Array(items)) = serde_json::from_str(text) else { return None };
    Some(items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect())
}
