//! An error and its causes, as one line.

use std::error::Error;

/// The message of an error, then those of its causes, each after a colon. Many libraries repeat their cause in their own message: a
/// message that has been said already is not said again.
///
/// ```
/// #[derive(Debug)]
/// struct Outer(std::io::Error);
/// impl std::fmt::Display for Outer {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         write!(f, "reading the list failed")
///     }
/// }
/// impl std::error::Error for Outer {
///     fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
///         Some(&self.0)
///     }
/// }
/// let error = Outer(std::io::Error::other("the disk is gone"));
/// assert_eq!(tributary_fault::chain(&error), "reading the list failed: the disk is gone");
/// ```
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        if !said.is_empty() && !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    /// A message and what is below it.
    #[derive(Debug)]
    struct Said(&'static str, Option<Box<Said>>);

    impl fmt::Display for Said {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Said {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[test]
    fn a_cause_that_its_library_repeats_is_said_once() {
        let io = Said("permission denied (os error 13)", None);
        let path = Said("unable to open `a`: permission denied (os error 13)", Some(Box::new(io)));
        let store = Said("local error: unable to open `a`: permission denied (os error 13)", Some(Box::new(path)));
        let ours = Said("reading `a` failed", Some(Box::new(store)));
        assert_eq!(chain(&ours), "reading `a` failed: local error: unable to open `a`: permission denied (os error 13)");
        assert_eq!(chain(&Said("alone", None)), "alone");
    }
}
