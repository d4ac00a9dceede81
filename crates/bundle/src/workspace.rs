//! What is known of the workspace and the person without asking either, and where the bundle stands in git.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::error::Error;
use crate::fault::Faults;
use crate::folder::Folder;
use crate::model::AUTHENTICATION;
use crate::reference::has_reference;
use crate::yaml::{Node, Value};

/// Letters and digits in lower case, anything else as `_`.
pub(crate) fn normal(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

/// The part of a user's name before the `@`.
pub(crate) fn short_name(user: &str) -> String {
    normal(user.split('@').next().unwrap_or(user))
}

/// Fills in what the bundle does not say of its workspace, its paths and its commit.
pub(crate) fn fill_in(root: &mut Node, user: &str, folder: &Folder, faults: &mut Faults) {
    let at = root.at;
    if root.find(&["bundle", "name"]).is_none() {
        let at = root.entry("bundle").map_or(at, |entry| entry.key_at);
        faults.warning(at, Error::Missing { parent: "`bundle`".to_owned(), key: "name" });
    }
    if let Some(bundle) = root.map_at("bundle") {
        let of_folder = folder.real().file_name().map(|name| name.to_string_lossy().into_owned());
        bundle.set_default("name", Node::text(at, of_folder.unwrap_or_default()));
        if let Some(name) = bundle.get("name").filter(|name| name.scalar().is_some_and(has_reference)) {
            faults.warning(name.at, Error::ReferenceRefused { path: "bundle.name".to_owned() });
        }
        let commit = Commit::of(folder.real());
        if let (Some(commit), Some(git)) = (commit, bundle.map_at("git")) {
            git.set("actual_branch", Node::text(at, commit.branch.clone().unwrap_or_default()));
            if let Some(branch) = commit.branch {
                git.set_default("branch", Node::text(at, branch));
            }
            if let Some(id) = commit.id {
                git.set_default("commit", Node::text(at, id));
            }
        }
    }
    if let Some(workspace) = root.map_at("workspace") {
        for key in AUTHENTICATION {
            if let Some(node) = workspace.get(key).filter(|node| node.scalar().is_some_and(has_reference)) {
                faults.error(node.at, Error::ReferenceRefused { path: format!("workspace.{key}") });
            }
        }
        if let Some(person) = workspace.map_at("current_user") {
            person.set_default("userName", Node::text(at, user));
            person.set_default("short_name", Node::text(at, short_name(user)));
            person.set_default("domain_friendly_name", Node::text(at, short_name(user).replace('_', "-")));
        }
        workspace.set_default("root_path", Node::text(at, "~/.bundle/${bundle.name}/${bundle.target}"));
        if let Some(Node { value: Value::Text(path), .. }) = workspace.get_mut("root_path")
            && let Some(rest) = path.strip_prefix("~/")
        {
            *path = format!("/Workspace/Users/${{workspace.current_user.userName}}/{rest}");
        }
        for (key, below) in
            [("file_path", "files"), ("artifact_path", "artifacts"), ("state_path", "state"), ("resource_path", "resources")]
        {
            workspace.set_default(key, Node::text(at, format!("${{workspace.root_path}}/{below}")));
        }
    }
}

/// What is checked out.
struct Commit {
    branch: Option<String>,
    id: Option<String>,
}

impl Commit {
    /// Read from the `.git` folder of the bundle or of a folder around it.
    fn of(folder: &Path) -> Option<Self> {
        let git = folder.ancestors().map(|folder| folder.join(".git")).find(|git| git.is_dir())?;
        let head = line(&git.join("HEAD"))?;
        let Some(reference) = head.strip_prefix("ref: ") else { return Some(Self { branch: None, id: Some(head) }) };
        let inside = !reference.split('/').any(|part| part == "..") && !reference.starts_with('/');
        let id = inside.then(|| line(&git.join(reference))).flatten();
        Some(Self { branch: reference.strip_prefix("refs/heads/").map(str::to_owned), id })
    }
}

/// The first line of a small file.
fn line(path: &Path) -> Option<String> {
    let mut text = String::new();
    fs::File::open(path).ok()?.take(4096).read_to_string(&mut text).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}
