//! What keys a bundle has, and what belongs under each.

pub(crate) mod job;
pub(crate) mod pipeline;
pub(crate) mod trials;

use Kind::{Any, Choice, Flag, List, Map, Object as Of, Text, Whole};

/// What belongs under a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Anything at all.
    Any,
    Text,
    Flag,
    Whole,
    /// One of these words.
    Choice(&'static [&'static str]),
    List(&'static Kind),
    /// Keys of the author's choice.
    Map(&'static Kind),
    /// Keys of a resource kind: each is a resource.
    Resources(&'static Kind),
    Object(&'static Object),
}

/// A mapping with known keys.
#[derive(Debug)]
pub(crate) struct Object {
    pub fields: &'static [(&'static str, Kind)],
    /// Keys that must be there.
    pub needed: &'static [&'static str],
}

impl Object {
    pub fn field(&self, key: &str) -> Option<Kind> {
        self.fields.iter().find(|(name, _)| *name == key).map(|(_, kind)| *kind)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|(name, _)| *name)
    }
}

const fn object(fields: &'static [(&'static str, Kind)]) -> Object {
    Object { fields, needed: &[] }
}

const TEXTS: Kind = List(&Text);
const WORDS: Kind = Map(&Text);
const ANYS: Kind = Map(&Any);
const LIST_OF_ANY: Kind = List(&Any);

/// What a root file holds.
pub(crate) static ROOT: Object = object(&[
    ("artifacts", ANYS),
    ("bundle", Of(&BUNDLE)),
    ("environments", Map(&Of(&TARGET))),
    ("experimental", ANYS),
    ("feeds", LIST_OF_ANY),
    ("include", TEXTS),
    ("permissions", List(&Of(&PERMISSION))),
    ("presets", Of(&PRESETS)),
    ("python", ANYS),
    ("resources", Of(&RESOURCES)),
    ("run_as", Of(&RUN_AS)),
    ("scripts", ANYS),
    ("sync", Of(&SYNC)),
    ("targets", Map(&Of(&TARGET))),
    ("variables", Map(&Of(&VARIABLE))),
    ("workspace", Of(&WORKSPACE)),
]);

/// What a target holds.
static TARGET: Object = object(&[
    ("artifacts", ANYS),
    ("bundle", Of(&BUNDLE)),
    ("cluster_id", Text),
    ("compute_id", Text),
    ("default", Flag),
    ("git", Of(&GIT)),
    ("mode", Choice(&["development", "production"])),
    ("permissions", List(&Of(&PERMISSION))),
    ("presets", Of(&PRESETS)),
    ("resources", Of(&RESOURCES)),
    ("run_as", Of(&RUN_AS)),
    ("sync", Of(&SYNC)),
    ("variables", ANYS),
    ("workspace", Of(&WORKSPACE)),
]);

pub(crate) static BUNDLE: Object = object(&[
    ("cluster_id", Text),
    ("compute_id", Text),
    ("databricks_cli_version", Text),
    ("deployment", Of(&DEPLOYMENT)),
    ("engine", Text),
    ("environment", Text),
    ("git", Of(&GIT)),
    ("mode", Choice(&["development", "production"])),
    ("name", Text),
    ("target", Text),
    ("uuid", Text),
]);

static DEPLOYMENT: Object = object(&[("fail_on_active_runs", Flag), ("lock", Of(&object(&[("enabled", Flag), ("force", Flag)])))]);

pub(crate) static GIT: Object = object(&[
    ("actual_branch", Text),
    ("branch", Text),
    ("bundle_root_path", Text),
    ("commit", Text),
    ("inferred", Flag),
    ("origin_url", Text),
]);

static PRESETS: Object = object(&[
    ("artifacts_dynamic_version", Flag),
    ("jobs_max_concurrent_runs", Whole),
    ("name_prefix", Text),
    ("pipelines_development", Flag),
    ("source_linked_deployment", Flag),
    ("tags", WORDS),
    ("trigger_pause_status", Choice(&["PAUSED", "UNPAUSED"])),
]);

static RUN_AS: Object = object(&[("group_name", Text), ("service_principal_name", Text), ("user_name", Text)]);
static SYNC: Object = object(&[("exclude", TEXTS), ("include", TEXTS), ("paths", TEXTS)]);

static PERMISSION: Object = Object {
    fields: &[
        ("group_name", Text),
        ("level", Choice(&["CAN_MANAGE", "CAN_RUN", "CAN_VIEW"])),
        ("service_principal_name", Text),
        ("user_name", Text),
    ],
    needed: &["level"],
};

static VARIABLE: Object = object(&[
    ("default", Any),
    ("description", Text),
    ("lookup", Of(&LOOKUP)),
    ("tags", ANYS),
    ("type", Choice(&["complex"])),
    ("value", Any),
]);

/// What a variable can be looked up as.
pub(crate) static LOOKUP: Object = object(&[
    ("alert", Text),
    ("cluster", Text),
    ("cluster_policy", Text),
    ("dashboard", Text),
    ("instance_pool", Text),
    ("job", Text),
    ("metastore", Text),
    ("notification_destination", Text),
    ("pipeline", Text),
    ("query", Text),
    ("service_principal", Text),
    ("warehouse", Text),
]);

/// Keys of a workspace; `AUTHENTICATION` are those that nothing may be filled into.
pub(crate) static WORKSPACE: Object = object(&[
    ("account_id", Text),
    ("artifact_path", Text),
    ("auth_type", Text),
    ("azure_client_id", Text),
    ("azure_environment", Text),
    ("azure_login_app_id", Text),
    ("azure_tenant_id", Text),
    ("azure_use_msi", Flag),
    ("azure_workspace_resource_id", Text),
    ("client_id", Text),
    ("current_user", ANYS),
    ("experimental_is_unified_host", Flag),
    ("file_path", Text),
    ("google_service_account", Text),
    ("host", Text),
    ("profile", Text),
    ("resource_path", Text),
    ("root_path", Text),
    ("state_path", Text),
    ("workspace_id", Text),
]);

/// Settings that say where and as whom; they must be known before anything else.
pub(crate) const AUTHENTICATION: &[&str] = &[
    "account_id",
    "auth_type",
    "azure_client_id",
    "azure_environment",
    "azure_login_app_id",
    "azure_tenant_id",
    "azure_workspace_resource_id",
    "client_id",
    "google_service_account",
    "host",
    "profile",
    "workspace_id",
];

static SCHEMA: Object = Object {
    fields: &[
        ("catalog_name", Text),
        ("comment", Text),
        ("grants", LIST_OF_ANY),
        ("lifecycle", ANYS),
        ("name", Text),
        ("properties", WORDS),
        ("storage_root", Text),
    ],
    needed: &["catalog_name", "name"],
};

static VOLUME: Object = Object {
    fields: &[
        ("catalog_name", Text),
        ("comment", Text),
        ("grants", LIST_OF_ANY),
        ("lifecycle", ANYS),
        ("name", Text),
        ("schema_name", Text),
        ("storage_location", Text),
        ("volume_type", Choice(&["EXTERNAL", "MANAGED"])),
    ],
    needed: &["catalog_name", "name", "schema_name"],
};

const KEPT: Kind = Kind::Resources(&Any);

/// Kinds of resources; those that are not run here are kept as they are.
pub(crate) static RESOURCES: Object = object(&[
    ("alerts", KEPT),
    ("apps", KEPT),
    ("catalogs", KEPT),
    ("clusters", KEPT),
    ("dashboards", KEPT),
    ("database_catalogs", KEPT),
    ("database_instances", KEPT),
    ("experiments", KEPT),
    ("external_locations", KEPT),
    ("jobs", Kind::Resources(&Of(&job::JOB))),
    ("model_serving_endpoints", KEPT),
    ("models", KEPT),
    ("pipelines", Kind::Resources(&Of(&pipeline::PIPELINE))),
    ("postgres_branches", KEPT),
    ("postgres_endpoints", KEPT),
    ("postgres_projects", KEPT),
    ("quality_monitors", KEPT),
    ("registered_models", KEPT),
    ("schemas", Kind::Resources(&Of(&SCHEMA))),
    ("secret_scopes", KEPT),
    ("sql_warehouses", KEPT),
    ("synced_database_tables", KEPT),
    ("volumes", Kind::Resources(&Of(&VOLUME))),
]);
