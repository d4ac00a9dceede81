//! This machine: room for what spills, and for tables that are here.

use std::path::{Path, PathBuf};
use std::process::Command;

use tributary_config::Settings;

use super::finding::Finding;
use crate::failure::Error;
use crate::opened;

/// Room where queries spill: at least as much as they may hold in memory.
pub fn disk(settings: &Settings) -> Finding {
    let folder = opened::spill_folder(settings).unwrap_or_else(std::env::temp_dir);
    let subject = folder.display().to_string();
    let wanted = settings.memory_limit.bytes();
    match free_bytes(&existing(&folder)) {
        Some(free) if free < wanted => Finding::failed("disk", &subject, Error::Disk { folder, free, wanted }),
        Some(free) => Finding::ok("disk", &subject, format!("{} MiB free for what spills", free >> 20)),
        None => Finding::ok("disk", &subject, "how much is free could not be told: there is no `df`".to_owned()),
    }
}

/// Room where tables grow, where they are on this machine.
pub fn warehouse(settings: &Settings) -> Option<Finding> {
    let folder = opened::folder(&settings.warehouse)?;
    let free = free_bytes(&existing(&folder))?;
    Some(Finding::ok("disk", &folder.display().to_string(), format!("{} MiB free for tables", free >> 20)))
}

/// The folder, or the nearest above it that is there.
fn existing(folder: &Path) -> PathBuf {
    let found = folder.ancestors().find(|folder| folder.is_dir());
    found.filter(|folder| *folder != Path::new("")).map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// What `df` says is available, for no library at hand asks the file system.
fn free_bytes(folder: &Path) -> Option<u64> {
    let output = Command::new("df").arg("-Pk").arg(folder).env("LC_ALL", "C").output().ok()?;
    available(&String::from_utf8_lossy(&output.stdout))
}

/// The fourth column of the last line, in kibibytes.
fn available(text: &str) -> Option<u64> {
    let last = text.lines().filter(|line| !line.is_empty()).nth(1)?;
    last.split_whitespace().nth(3)?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_bytes_are_read_from_the_portable_format() {
        let text =
            "Filesystem     1024-blocks     Used Available Capacity Mounted on\noverlay           61252420 30000000  28120132      52% /\n";
        assert_eq!(available(text), Some(28_120_132 * 1024));
        assert_eq!(available("df: nowhere: No such file or directory\n"), None);
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_on_the_disk_of_the_one_above() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(existing(&folder.path().join("a/b")), folder.path());
    }
}
