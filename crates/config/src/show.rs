//! What `--print-config` prints.

use crate::origin::Origin;
use crate::resolve::Loaded;
use crate::setting::{Reach, Setting};

impl Loaded {
    /// Every setting of the program as a line of `tributary.toml` with its origin behind it; what is not set is a comment.
    ///
    /// The text can be kept as a settings file. Secrets are hidden.
    pub fn print_config(&self) -> String {
        let lines: Vec<(String, Origin)> = self
            .program
            .settings()
            .filter(|setting| setting.reach != Reach::CommandLine)
            .map(|setting| (self.line(setting), self.origin(setting.name)))
            .collect();
        let width = lines.iter().map(|(line, _)| line.chars().count()).filter(|width| *width <= 60).max().unwrap_or(0);
        lines.into_iter().map(|(line, origin)| format!("{line:<width$}  # {origin}\n")).collect()
    }

    fn line(&self, setting: &Setting) -> String {
        let shown = self.settings.shown().into_iter().find(|(name, _)| *name == setting.name).and_then(|(_, value)| value);
        line(setting, shown)
    }
}

fn line(setting: &Setting, shown: Option<String>) -> String {
    // the values of a chosen target are in the lines already; its table would be missing from a kept copy
    let keepable = setting.reach == Reach::Everywhere && setting.name != "target";
    let comment = if keepable { "" } else { "# " };
    match shown {
        Some(_) if setting.secret => format!("# {} = \"***\"", setting.name),
        Some(value) => format!("{comment}{} = {value}", setting.name),
        None => format!("# {} is not set", setting.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Setting { name: "token", secret: true, ..Setting::BLANK };
        let line = line(&secret, Some("\"hunter2\"".into()));
        assert_eq!(line, "# token = \"***\"");
    }
}
