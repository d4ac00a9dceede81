//! Keys of pipelines.

use super::Kind::{Any, Choice, Flag, List, Object as Of, Text, Whole};
use super::{ANYS, LIST_OF_ANY, Object, RUN_AS, TEXTS, WORDS, object};

pub(crate) static PIPELINE: Object = object(&[
    ("allow_duplicate_names", Flag),
    ("budget_policy_id", Text),
    ("catalog", Text),
    ("channel", Choice(&["CURRENT", "PREVIEW"])),
    ("clusters", List(&Of(&CLUSTER))),
    ("configuration", WORDS),
    ("continuous", Flag),
    ("deployment", ANYS),
    ("development", Flag),
    ("dry_run", Flag),
    ("edition", Choice(&["ADVANCED", "CORE", "PRO"])),
    ("environment", Of(&object(&[("dependencies", TEXTS), ("environment_version", Text)]))),
    ("event_log", Of(&object(&[("catalog", Text), ("name", Text), ("schema", Text)]))),
    ("filters", Of(&object(&[("exclude", TEXTS), ("include", TEXTS)]))),
    ("gateway_definition", ANYS),
    ("grants", LIST_OF_ANY),
    ("id", Text),
    ("ingestion_definition", ANYS),
    ("libraries", List(&Of(&LIBRARY))),
    ("lifecycle", ANYS),
    ("name", Text),
    ("notifications", List(&Of(&NOTIFICATION))),
    ("parameters", WORDS),
    ("permissions", List(&Of(&PERMISSION))),
    ("photon", Flag),
    ("restart_window", ANYS),
    ("root_path", Text),
    ("run_as", Of(&RUN_AS)),
    ("schema", Text),
    ("serverless", Flag),
    ("storage", Text),
    ("tags", WORDS),
    ("target", Text),
    ("trigger", ANYS),
    ("usage_policy_id", Text),
]);

static CLUSTER: Object = object(&[
    ("apply_policy_default_values", Flag),
    (
        "autoscale",
        Of(&Object {
            fields: &[("max_workers", Whole), ("min_workers", Whole), ("mode", Choice(&["ENHANCED", "LEGACY"]))],
            needed: &["max_workers", "min_workers"],
        }),
    ),
    ("aws_attributes", ANYS),
    ("azure_attributes", ANYS),
    ("cluster_log_conf", ANYS),
    ("custom_tags", WORDS),
    ("driver_instance_pool_id", Text),
    ("driver_node_type_id", Text),
    ("enable_local_disk_encryption", Flag),
    ("gcp_attributes", ANYS),
    ("init_scripts", LIST_OF_ANY),
    ("instance_pool_id", Text),
    ("label", Text),
    ("node_type_id", Text),
    ("num_workers", Whole),
    ("policy_id", Text),
    ("spark_conf", WORDS),
    ("spark_env_vars", WORDS),
    ("ssh_public_keys", TEXTS),
]);

static LIBRARY: Object = object(&[
    ("file", Of(&Object { fields: &[("path", Text)], needed: &["path"] })),
    ("glob", Of(&Object { fields: &[("include", Text)], needed: &["include"] })),
    ("jar", Text),
    ("maven", Any),
    ("notebook", Of(&Object { fields: &[("path", Text)], needed: &["path"] })),
    ("whl", Text),
]);

/// What a library is, exactly one of them.
pub(crate) const LIBRARY_KINDS: &[&str] = &["file", "glob", "jar", "maven", "notebook", "whl"];

static NOTIFICATION: Object = object(&[
    ("alerts", List(&Choice(&["on-flow-failure", "on-update-failure", "on-update-fatal-failure", "on-update-success"]))),
    ("email_recipients", TEXTS),
]);

static PERMISSION: Object = Object {
    fields: &[
        ("group_name", Text),
        ("level", Choice(&["CAN_MANAGE", "CAN_RUN", "CAN_VIEW", "IS_OWNER"])),
        ("service_principal_name", Text),
        ("user_name", Text),
    ],
    needed: &["level"],
};
