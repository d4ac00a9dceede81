//! What is written down about one setting.

use crate::value::Kind;

/// The prefix of every variable that is a setting.
pub(crate) const PREFIX: &str = "TRIBUTARY_";

/// One setting: the only place where its name, type, default and words stand.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Lower case with underscores: the key in `tributary.toml`. Flag and variable follow from it.
    pub name: &'static str,
    /// Its type in words and rules.
    pub kind: Kind,
    /// What holds when nobody gives it, written as a person would; none = not set.
    pub default: Option<&'static str>,
    /// A plausible value for the example files, where there is no default.
    pub example: &'static str,
    /// What stands for the value in help.
    pub value_name: &'static str,
    /// Further flag names, with dashes.
    pub aliases: &'static [&'static str],
    /// Variables of a standard that mean the same; ours stands above them.
    pub standard_variables: &'static [&'static str],
    /// A one-letter flag.
    pub short: Option<char>,
    /// The value is never shown.
    pub secret: bool,
    /// Where it may be given.
    pub reach: Reach,
    /// The heading it stands under.
    pub group: Group,
    /// The programs that have it.
    pub programs: &'static [Program],
    /// The default in the wearable pipeline's design and why ours differs.
    pub differs: Option<(&'static str, &'static str)>,
    /// Lines of documentation; the first paragraph is the short help.
    pub doc: &'static [&'static str],
}

impl Setting {
    /// What a setting is when nothing else is said.
    pub(crate) const BLANK: Self = Self {
        name: "",
        kind: Kind::Text,
        default: None,
        example: "",
        value_name: "VALUE",
        aliases: &[],
        standard_variables: &[],
        short: None,
        secret: false,
        reach: Reach::Everywhere,
        group: Group::Sources,
        programs: Program::ALL,
        differs: None,
        doc: &[],
    };

    /// The flag without its dashes: `base-data-path`.
    pub fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// The environment variable: `TRIBUTARY_BASE_DATA_PATH`.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_uppercase())
    }

    /// Every environment variable that gives it, the one that stands above the others first.
    pub fn variables(&self) -> Vec<String> {
        std::iter::once(self.variable()).chain(self.standard_variables.iter().map(|name| (*name).to_owned())).collect()
    }

    /// Paragraphs of the documentation, each one line of text.
    pub fn paragraphs(&self) -> Vec<String> {
        let mut paragraphs = vec![String::new()];
        for line in self.doc.iter().map(|line| line.trim()) {
            match paragraphs.last_mut() {
                Some(last) if line.is_empty() && !last.is_empty() => paragraphs.push(String::new()),
                Some(last) if last.is_empty() => last.push_str(line),
                Some(last) => {
                    last.push(' ');
                    last.push_str(line);
                }
                None => {}
            }
        }
        paragraphs.retain(|paragraph| !paragraph.is_empty());
        paragraphs
    }
}

/// Where a setting may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// On the command line, in the environment, in `.env` and in the file.
    Everywhere,
    /// Not in the file: it says which file to read.
    BeforeFile,
    /// Not in `.env` nor the file: it says which `.env` to read.
    BeforeDotenv,
    /// On the command line alone: it says what to do now.
    CommandLine,
}

/// The heading a setting stands under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Where tables, data and pipelines are.
    Places,
    /// Which datasets run.
    Selection,
    /// How much at once.
    Amount,
    /// When, from where, how often.
    Time,
    /// What is said and written about a run.
    Output,
    /// Where settings come from.
    Sources,
}

impl Group {
    /// Every group in the order of help and reference page.
    pub const ALL: [Self; 6] = [Self::Places, Self::Selection, Self::Amount, Self::Time, Self::Output, Self::Sources];

    /// The heading.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Places => "Where things are",
            Self::Selection => "What runs",
            Self::Amount => "How much at once",
            Self::Time => "When and from where",
            Self::Output => "What is printed",
            Self::Sources => "The settings themselves",
        }
    }
}

/// A command line that takes settings: a command of the umbrella `tributary`, or a layer's own binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// `tributary run`
    Run,
    /// `tributary job run`
    Job,
    /// `tributary plan`
    Plan,
    /// `tributary graph`
    Graph,
    /// `tributary explain`
    Explain,
    /// `tributary setup`
    Setup,
    /// `tributary ddl`
    Ddl,
    /// `tributary validate`
    Validate,
    /// `tributary init`
    Init,
    /// `tributary test`
    Test,
    /// `tributary doctor`
    Doctor,
    /// `tributary show`
    Show,
    /// `tributary quarantine`
    Quarantine,
    /// `tributary quarantine requeue`
    Requeue,
    /// `tributary schema infer`
    Infer,
    /// `tributary sql`
    Sql,
    /// `tributary maintain`, and `tributary-maintain`
    Maintain,
    /// `tributary-bronze`
    Bronze,
    /// `tributary-silver`
    Silver,
    /// `tributary-gold`
    Gold,
}

impl Program {
    /// Every program.
    pub const ALL: &'static [Self] = &[
        Self::Run,
        Self::Job,
        Self::Plan,
        Self::Graph,
        Self::Explain,
        Self::Setup,
        Self::Ddl,
        Self::Validate,
        Self::Init,
        Self::Test,
        Self::Doctor,
        Self::Show,
        Self::Quarantine,
        Self::Requeue,
        Self::Infer,
        Self::Sql,
        Self::Maintain,
        Self::Bronze,
        Self::Silver,
        Self::Gold,
    ];
    /// Those that write a report of what they did.
    pub(crate) const REPORTS: &'static [Self] = &[Self::Run, Self::Maintain, Self::Bronze, Self::Silver, Self::Gold];
    /// Those that run one pipeline.
    pub(crate) const RUNS: &'static [Self] = &[Self::Run, Self::Bronze, Self::Silver, Self::Gold];
    /// Those that move data, and tell of its lineage.
    pub(crate) const MOVES: &'static [Self] = &[Self::Run, Self::Job, Self::Bronze, Self::Silver, Self::Gold];
    /// Those that run feeds.
    pub(crate) const FEEDS: &'static [Self] = &[Self::Run, Self::Job, Self::Bronze];
    /// Those that run silver or gold datasets.
    pub(crate) const DATASETS: &'static [Self] = &[Self::Run, Self::Job, Self::Plan, Self::Silver, Self::Gold];
    /// Those that can be told to leave datasets out.
    pub(crate) const CHOOSES: &'static [Self] = &[Self::Run, Self::Plan, Self::Setup, Self::Bronze, Self::Silver, Self::Gold];
    /// Those that reach for sources.
    pub(crate) const SOURCES: &'static [Self] = &[Self::Run, Self::Job, Self::Doctor, Self::Requeue, Self::Bronze];
    /// Those that reach for brokers and registries.
    pub(crate) const TOPICS: &'static [Self] = &[Self::Run, Self::Job, Self::Doctor, Self::Requeue, Self::Infer, Self::Init, Self::Bronze];
    /// Those that read pipeline files.
    pub(crate) const PIPELINES: &'static [Self] = &[
        Self::Run,
        Self::Plan,
        Self::Graph,
        Self::Explain,
        Self::Setup,
        Self::Ddl,
        Self::Validate,
        Self::Doctor,
        Self::Requeue,
        Self::Bronze,
        Self::Silver,
        Self::Gold,
    ];
    /// Those that know where data is.
    pub(crate) const DATA: &'static [Self] = &[
        Self::Run,
        Self::Job,
        Self::Plan,
        Self::Graph,
        Self::Explain,
        Self::Setup,
        Self::Ddl,
        Self::Validate,
        Self::Doctor,
        Self::Requeue,
        Self::Bronze,
        Self::Silver,
        Self::Gold,
    ];
    /// Those that print rows.
    pub(crate) const PRINTS: &'static [Self] = &[
        Self::Plan,
        Self::Explain,
        Self::Setup,
        Self::Validate,
        Self::Test,
        Self::Doctor,
        Self::Show,
        Self::Quarantine,
        Self::Requeue,
        Self::Sql,
        Self::Maintain,
    ];

    /// What a person types.
    pub const fn command(self) -> &'static str {
        match self {
            Self::Run => "tributary run",
            Self::Job => "tributary job run",
            Self::Plan => "tributary plan",
            Self::Graph => "tributary graph",
            Self::Explain => "tributary explain",
            Self::Setup => "tributary setup",
            Self::Ddl => "tributary ddl",
            Self::Validate => "tributary validate",
            Self::Init => "tributary init",
            Self::Test => "tributary test",
            Self::Doctor => "tributary doctor",
            Self::Show => "tributary show",
            Self::Quarantine => "tributary quarantine",
            Self::Requeue => "tributary quarantine requeue",
            Self::Infer => "tributary schema infer",
            Self::Sql => "tributary sql",
            Self::Maintain => "tributary maintain",
            Self::Bronze => "tributary-bronze",
            Self::Silver => "tributary-silver",
            Self::Gold => "tributary-gold",
        }
    }

    /// Whether it moves data, and so speaks in the form of `--log-format`.
    pub fn moves_data(self) -> bool {
        Self::MOVES.contains(&self)
    }

    /// The settings this program has, in the order they are declared.
    pub fn settings(self) -> impl Iterator<Item = &'static Setting> {
        crate::registry::REGISTRY.iter().filter(move |setting| setting.programs.contains(&self))
    }
}
