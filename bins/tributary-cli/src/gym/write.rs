//! Records as the files of the pipeline.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use chrono::{Datelike as _, Days, NaiveDate};

use super::calendar::LookupDay;
use super::lines::TOPICS;
use super::records::Gym;

/// The file of days.
const LOOKUP: &str = "6-date-lookup.json";

impl Gym {
    /// Writes every file below a folder, which is made where it is not there. Gives the names, in order.
    ///
    /// # Errors
    /// When a file cannot be written, or is there.
    pub fn write(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = vec![self.write_lookup(folder)?];
        for file in 1..=self.options.files {
            names.extend(self.write_files(folder, file)?);
        }
        names.sort();
        Ok(names)
    }

    /// Writes the days of each year that the records are in.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_lookup(&self, folder: &Path) -> io::Result<String> {
        written(folder, LOOKUP.to_owned(), 0, &mut |out| {
            self.days().try_for_each(|day| {
                serde_json::to_writer(&mut *out, &LookupDay::of(day))?;
                out.write_all(b"\n")
            })
        })
    }

    /// The days of the lookup.
    pub(super) fn days(&self) -> impl Iterator<Item = NaiveDate> {
        let last = self.options.first_day + Days::new(u64::from(self.options.days));
        let begin = NaiveDate::from_ymd_opt(self.options.first_day.year(), 1, 1).unwrap_or(self.options.first_day);
        let end = NaiveDate::from_ymd_opt(last.year(), 12, 31).unwrap_or(last);
        begin.iter_days().take_while(move |day| *day <= end)
    }

    /// Writes the files of each kind that have this number, from 1 on.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_files(&self, folder: &Path, file: u32) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        names.push(written(folder, format!("1-registered_users_{file}.csv"), file, &mut |out| {
            out.write_all(b"user_id,device_id,mac_address,registration_timestamp\n")?;
            self.registrations
                .iter()
                .filter(|it| it.file == file)
                .map(|it| &it.record)
                .try_for_each(|it| writeln!(out, "{},{},{},{:?}", it.user_id, it.device_id, it.mac_address, it.registration_timestamp))
        })?);
        for (topic, name) in TOPICS {
            names.push(written(folder, format!("{name}_{file}.json"), file, &mut |out| {
                self.lines(topic, file, &mut |line| {
                    serde_json::to_writer(&mut *out, &line)?;
                    out.write_all(b"\n")
                })
            })?);
        }
        names.push(written(folder, format!("5-gym_logins_{file}.csv"), file + 1, &mut |out| {
            out.write_all(b"mac_address,gym,login,logout\n")?;
            self.logins
                .iter()
                .filter(|it| it.file == file)
                .map(|it| &it.record)
                .try_for_each(|it| writeln!(out, "{},{},{:?},{:?}", it.mac_address, it.gym, it.login as f64, it.logout as f64))
        })?);
        Ok(names)
    }
}

/// A file that was not there before, by its name. It ends with blank lines, without a line break, or as files do, by turns.
fn written(folder: &Path, name: String, turn: u32, write: &mut dyn FnMut(&mut Ending) -> io::Result<()>) -> io::Result<String> {
    fs::create_dir_all(folder)?;
    let file = fs::OpenOptions::new().write(true).create_new(true).open(folder.join(&name))?;
    let mut out = Ending { out: BufWriter::new(file), held: false };
    write(&mut out)?;
    let mut out = match turn % 3 {
        1 => out.whole(b"\n\n")?,
        2 => out.out,
        _ => out.whole(b"")?,
    };
    out.flush()?;
    Ok(name)
}

/// Holds the last line break back.
struct Ending {
    out: BufWriter<fs::File>,
    held: bool,
}

impl Ending {
    fn whole(mut self, more: &[u8]) -> io::Result<BufWriter<fs::File>> {
        self.write_all(more)?;
        if self.held {
            self.out.write_all(b"\n")?;
        }
        Ok(self.out)
    }
}

impl Write for Ending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.held {
            self.out.write_all(b"\n")?;
        }
        let kept = bytes.strip_suffix(b"\n");
        self.held = kept.is_some();
        self.out.write_all(kept.unwrap_or(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
