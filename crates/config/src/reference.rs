//! The generated faces of the registry: reference page, commented settings file, commented `.env`.

use crate::registry::REGISTRY;
use crate::setting::{Group, Program, Reach, Setting};
use crate::value::{Kind, quoted};

const SETTINGS_INTRODUCTION: &str = include_str!("reference/introduction.md");

fn in_group(group: Group) -> impl Iterator<Item = &'static Setting> {
    REGISTRY.iter().filter(move |setting| setting.group == group)
}

/// `docs/reference/settings.md`.
pub fn settings_page() -> String {
    let mut page = SETTINGS_INTRODUCTION.to_owned();
    for group in Group::ALL {
        page.push_str(&format!("\n## {}\n\n", group.heading()));
        page.push_str("| flag | variable | default | what it is |\n|---|---|---|---|\n");
        for setting in in_group(group) {
            let short_help = setting.paragraphs().into_iter().next().unwrap_or_default();
            page.push_str(&format!("| {} | {} | {} | {} |\n", flags(setting), variable(setting), default(setting), cell(&short_help)));
        }
        for setting in in_group(group) {
            page.push_str(&entry(setting));
        }
    }
    page.push_str("\n## Defaults that differ from the wearable pipeline's design\n\n");
    page.push_str("The names are the design's; these defaults are not, on purpose. Its `.env.example` gives the design's values back.\n\n");
    page.push_str("| setting | design | here | why |\n|---|---|---|---|\n");
    for setting in REGISTRY {
        if let Some((design, why)) = setting.differs {
            page.push_str(&format!("| `--{}` | {design} | {} | {} |\n", setting.flag(), default(setting), cell(why)));
        }
    }
    page
}

fn flags(setting: &Setting) -> String {
    let aliases = setting.aliases.iter().map(|alias| format!(", `--{alias}`"));
    let short = setting.short.map(|letter| format!(", `-{letter}`"));
    format!("`--{}`", setting.flag()) + &aliases.chain(short).collect::<String>()
}

fn variable(setting: &Setting) -> String {
    if setting.reach == Reach::CommandLine { "–".into() } else { format!("`{}`", setting.variables().join("`, `")) }
}

fn default(setting: &Setting) -> String {
    match (setting.kind, setting.default) {
        (Kind::Switch, Some("false")) => "off".into(),
        (_, Some(default)) => format!("`{default}`"),
        (_, None) => "none".into(),
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn entry(setting: &Setting) -> String {
    let mut text = format!("\n### `{}`\n\n{}\n\n", setting.name, setting.paragraphs().join("\n\n"));
    text.push_str(&format!("- Takes {}.\n", setting.kind.expected()));
    match setting.reach {
        Reach::Everywhere => {}
        Reach::BeforeFile => text.push_str("- Not in the settings file: it names that file.\n"),
        Reach::BeforeDotenv => text.push_str("- Neither in a `.env` nor in the settings file: it names the first of them.\n"),
        Reach::CommandLine => text.push_str("- On the command line only.\n"),
    }
    if setting.secret {
        text.push_str("- A secret: it is never shown.\n");
    }
    let programs: Vec<String> = setting.programs.iter().map(|program| format!("`{}`", program.command())).collect();
    if setting.programs == Program::ALL {
        text.push_str("- In every program.\n");
    } else {
        text.push_str(&format!("- In {}.\n", programs.join(", ")));
    }
    text
}

/// `tributary.example.toml`: every setting of the file with its words, each line a comment that holds the default or an example.
pub fn toml_example() -> String {
    let mut text = String::from(
        "# Settings of Tributary. Copy to tributary.toml and remove the # of what you change.\n\
         # Command line, environment and .env stand above this file, setting by setting. See docs/reference/settings.md.\n",
    );
    for group in Group::ALL {
        for (position, setting) in in_group(group).filter(|setting| setting.reach == Reach::Everywhere).enumerate() {
            if position == 0 {
                text.push_str(&format!("\n## {}\n", group.heading()));
            }
            text.push_str(&commented(setting));
            text.push_str(&format!("#{} = {}\n", setting.name, toml_value(setting)));
        }
    }
    text.push_str(
        "\n## Targets\n\n\
         # What stands in the chosen target's table stands above the entries before.\n\
         #[targets.dev]\n#warehouse = \"data/dev\"\n",
    );
    text
}

/// `.env.example`: every setting that a variable can give, each line a comment that holds the default or an example.
pub fn env_example() -> String {
    let mut text = String::from(
        "# Settings of Tributary as variables. Copy to .env and remove the # of what you change; keep .env out of version control.\n\
         # Command line and environment stand above this file, setting by setting. See docs/reference/settings.md for its rules.\n",
    );
    for group in Group::ALL {
        let reachable = |setting: &&Setting| matches!(setting.reach, Reach::Everywhere | Reach::BeforeFile);
        for (position, setting) in in_group(group).filter(reachable).enumerate() {
            if position == 0 {
                text.push_str(&format!("\n## {}\n", group.heading()));
            }
            text.push_str(&commented(setting));
            text.push_str(&format!("#{}={}\n", setting.variable(), setting.default.unwrap_or(setting.example)));
        }
    }
    text
}

/// The words of a setting as comment lines, with a note where the line holds an example.
fn commented(setting: &Setting) -> String {
    let mut text = String::from("\n");
    for paragraph in setting.paragraphs() {
        text.push_str(&format!("# {paragraph}\n"));
    }
    let kind = setting.kind.expected();
    let note = if setting.default.is_some() { "default" } else { "not set by default, for example" };
    text.push_str(&format!("# ({kind}; {note}:)\n"));
    text
}

fn toml_value(setting: &Setting) -> String {
    let text = setting.default.unwrap_or(setting.example);
    match setting.kind {
        Kind::Switch | Kind::Count { .. } => text.to_owned(),
        Kind::List(_) => format!("[{}]", quoted(text)),
        Kind::Text
        | Kind::Name
        | Kind::Path
        | Kind::Location
        | Kind::Size
        | Kind::Duration
        | Kind::Instant
        | Kind::Listen
        | Kind::Property
        | Kind::Offset
        | Kind::Choice(_) => quoted(text),
    }
}
