//! Pipeline SQL from the outside.
