//! The services of `tests/services`: a stack of our own, or the one that `SERVICES_RUN_DIR` names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use tributary_cli::demo::Server;

use crate::session::Database;

/// A running stack.
#[derive(Debug)]
pub struct Services {
    scripts: PathBuf,
    /// The stack's folder.
    pub folder: PathBuf,
    environment: BTreeMap<String, String>,
    /// Whether the stack is stopped in the end.
    ours: bool,
    /// Whether its logs and data stay then.
    keep: bool,
}

impl Services {
    /// Takes the stack that is up, or starts one, which is stopped when the value is dropped.
    pub fn up() -> Result<Self> {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../services");
        let given = std::env::var_os("SERVICES_RUN_DIR").map(PathBuf::from).filter(|folder| folder.join("env").is_file());
        let ours = given.is_none();
        let folder = match given {
            Some(folder) => folder,
            None => {
                let output = Command::new(scripts.join("up.sh")).stderr(Stdio::inherit()).output().context("starting up.sh")?;
                ensure!(output.status.success(), "the services did not come up");
                PathBuf::from(String::from_utf8_lossy(&output.stdout).lines().last().unwrap_or_default().to_owned())
            }
        };
        let text = std::fs::read_to_string(folder.join("env")).context("reading the addresses of the services")?;
        let pairs = text.lines().filter_map(|line| line.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Self { scripts, folder, environment: pairs.collect(), ours, keep: false })
    }

    /// Leaves logs and data where they are when the stack is stopped, for whoever asks why; says where.
    pub fn keep(&mut self) {
        self.keep = true;
        eprintln!("logs are kept in {}", self.folder.display());
    }

    /// An address or a name out of the stack's `env`.
    pub fn get(&self, name: &str) -> Result<&str> {
        self.environment.get(name).map(String::as_str).with_context(|| format!("the services' env has no {name}"))
    }

    /// A verb of a service: `start`, `stop`, `restart`, `kill`, `pause`, `resume`, or one of its own.
    pub fn tell(&self, service: &str, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(self.scripts.join(format!("{service}.sh")));
        command.args(arguments).env("SERVICES_RUN_DIR", &self.folder).stdout(Stdio::null());
        let output = command.output().with_context(|| format!("starting {service}.sh"))?;
        ensure!(output.status.success(), "{service}.sh {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// The Postgres server, as its first database.
    pub fn postgres(&self) -> Result<Database> {
        self.database(Server::Postgres, ["PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE"])
    }

    /// The MariaDB server, as its first database.
    pub fn mariadb(&self) -> Result<Database> {
        self.database(Server::MariaDb, ["MYSQL_HOST", "MYSQL_PORT", "MYSQL_USER", "MYSQL_PASSWORD", "MYSQL_DATABASE"])
    }

    fn database(&self, server: Server, names: [&str; 5]) -> Result<Database> {
        let [host, port, user, password, name] = names.map(|name| self.get(name).map(str::to_owned));
        Ok(Database { server, host: host?, port: port?, user: user?, password: password?, name: name? })
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        if self.ours {
            let keep = self.keep.then_some("--keep");
            let _ = Command::new(self.scripts.join("down.sh")).args(keep).env("SERVICES_RUN_DIR", &self.folder).status();
        }
    }
}
