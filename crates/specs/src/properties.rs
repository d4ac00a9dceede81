//! Table properties of ours, and Delta's that we must refuse.

/// `true`: a sequence of text type is compared as text, though its values may vary in length.
pub const SEQUENCE_TEXT: &str = "tributary.sequence.text";
/// `true`: no two images of a row have one sequence (a version number, a clock that no two changes of a row share), so that what a
/// change event says a row was before can be told to be the table's row.
pub const SEQUENCE_UNIQUE: &str = "tributary.sequence.unique";
/// `false`: deletes of a change feed are applied only where `apply_as_delete_when` says so, as on the platform.
pub const IMPLICIT_DELETES: &str = "tributary.cdc.implicitDeletes";
/// Seconds a delete is remembered; without it for ever.
pub const DELETE_MEMORY_SECONDS: &str = "pipelines.cdc.tombstoneGCThresholdInSeconds";

/// `false`: the dataset is never refreshed in full.
pub const RESET_ALLOWED: &str = "pipelines.reset.allowed";

/// Of a feed: what a source position does that is smaller than one before though its change is later.
pub(crate) const POSITIONS_BACKWARDS: &str = "tributary.cdc.positionsBackwards";
/// Of a feed: the text that the source sends for a value it leaves out.
pub(crate) const UNAVAILABLE_VALUE_PLACEHOLDER: &str = "tributary.cdc.unavailableValuePlaceholder";

/// Our own properties and the values each may have; none listed = any.
pub(crate) const OURS: &[(&str, &[&str])] = &[
    (SEQUENCE_TEXT, &["true", "false"]),
    (SEQUENCE_UNIQUE, &["true", "false"]),
    (IMPLICIT_DELETES, &["true", "false"]),
    (POSITIONS_BACKWARDS, &["stop", "newEpoch", "accept"]),
    (UNAVAILABLE_VALUE_PLACEHOLDER, &[]),
];

/// Whether commits tell what they did to rows.
pub(crate) const CHANGE_FEED_ON: &str = "delta.enableChangeDataFeed";

/// Delta's properties that break a promise of ours: name, values refused (none = all), reason.
pub(crate) const REFUSED: &[(&str, Option<&str>, &str)] = &[
    ("delta.setTransactionRetentionDuration", None, "the table would forget the positions it has consumed"),
    (CHANGE_FEED_ON, Some("false"), "every table of ours whose rows are only added carries its change feed"),
    ("delta.columnMapping.mode", Some("name"), "tables of ours use no column mapping"),
    ("delta.columnMapping.mode", Some("id"), "tables of ours use no column mapping"),
    ("delta.enableTypeWidening", Some("true"), "a wider type rewrites the table; delta-rs cannot read the feature"),
];
