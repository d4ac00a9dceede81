//! Databases through their own command line clients: an open session for statements, one call a question.

use std::fmt;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use tributary_cli::demo::Server;

/// Where a database is and who asks.
#[derive(Debug, Clone)]
pub struct Database {
    /// Which client and which texts.
    pub server: Server,
    /// Its address.
    pub host: String,
    /// Its port.
    pub port: String,
    /// Who asks.
    pub user: String,
    /// With which password.
    pub password: String,
    /// The database's name.
    pub name: String,
}

impl Database {
    /// Makes another database on the same server.
    pub fn create(&self, name: &str) -> Result<Self> {
        let statement = match self.server {
            Server::Postgres => format!("create database {name}"),
            Server::MariaDb => format!("create database {name} character set utf8mb4"),
        };
        self.execute_all([statement.as_str()])?;
        Ok(Self { name: name.to_owned(), ..self.clone() })
    }

    fn client(&self) -> Command {
        let mut command = match self.server {
            Server::Postgres => {
                let mut command = Command::new("psql");
                command.args(["-X", "-q", "-v", "VERBOSITY=terse", "-v", "ON_ERROR_STOP=0"]);
                command.args(["-h", &self.host, "-p", &self.port, "-U", &self.user, "-d", &self.name]);
                command.env("PGPASSWORD", &self.password).env("PGOPTIONS", "-c timezone=UTC -c intervalstyle=iso_8601");
                command.env("PGCLIENTENCODING", "UTF8");
                command
            }
            Server::MariaDb => {
                let mut command = Command::new("mariadb");
                command.args(["--no-defaults", "--batch", "--skip-column-names", "--unbuffered", "--force", "--protocol=tcp"]);
                command.args(["--default-character-set=utf8mb4", "--init-command=set time_zone='+00:00'"]);
                command.args(["-h", &self.host, "-P", &self.port, "-u", &self.user, &self.name]);
                command.env("MYSQL_PWD", &self.password);
                command
            }
        };
        command.stdin(Stdio::piped());
        command
    }

    /// Rows of a query, each value in the server's own text; `None` = null. For Postgres the query goes through COPY.
    pub fn rows(&self, query: &str) -> Result<Vec<Vec<Option<String>>>> {
        let mut command = self.client();
        match self.server {
            Server::Postgres => command.args(["-v", "ON_ERROR_STOP=1", "-c", &format!("copy ({query}) to stdout")]),
            Server::MariaDb => command.args(["-e", query]),
        };
        let output = command.stdin(Stdio::null()).output().context("starting the database's client")?;
        ensure!(output.status.success() && output.stderr.is_empty(), "{query}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).with_context(|| format!("the answer to {query} is not UTF-8"))?;
        Ok(text.lines().map(|line| line.split('\t').map(|value| self.value(value)).collect()).collect())
    }

    /// Postgres writes null as `\N`; MariaDB's queries put `v` before values and `n` for null.
    fn value(&self, text: &str) -> Option<String> {
        match self.server {
            Server::Postgres => (text != "\\N").then(|| unescaped(text)),
            Server::MariaDb => text.strip_prefix('v').map(unescaped),
        }
    }

    /// Runs statements one after the other; the first that fails ends it.
    pub fn execute_all<'a>(&self, statements: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let mut session = Session::open(self)?;
        for statement in statements {
            session.execute(statement)?;
        }
        Ok(())
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('v') => out.push('\u{b}'),
            Some('0') => out.push('\0'),
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
}

/// A statement the server refused, or a server that went away.
#[derive(Debug)]
pub struct Refused {
    /// What the client said.
    pub message: String,
    /// Whether the session is over.
    pub gone: bool,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

/// An open session: its transactions span calls.
#[derive(Debug)]
pub struct Session {
    server: Server,
    child: Child,
    input: ChildStdin,
    output: BufReader<std::io::PipeReader>,
    statements: u64,
}

impl Session {
    /// Connects.
    pub fn open(database: &Database) -> Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        let mut command = database.client();
        command.stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn().context("starting the database's client")?;
        // the writing ends here go with the command, so that the client's end is the end of the output
        drop(command);
        let Some(input) = child.stdin.take() else { bail!("the client has no input") };
        let mut session = Self { server: database.server, child, input, output: BufReader::new(reader), statements: 0 };
        session.execute("select 1")?;
        Ok(session)
    }

    /// Runs one statement to its end.
    pub fn execute(&mut self, statement: &str) -> Result<(), Refused> {
        self.statements += 1;
        let marker = format!("--done-{}--", self.statements);
        let asked = match self.server {
            // on the standard error, which nothing holds back
            Server::Postgres => format!("{statement};\n\\warn {marker} :ERROR\n"),
            Server::MariaDb => format!("{statement};\nselect '{marker}';\n"),
        };
        let gone = |message: String| Refused { message, gone: true };
        self.input.write_all(asked.as_bytes()).map_err(|error| gone(format!("{statement}: {error}")))?;
        let mut said = String::new();
        loop {
            let mut line = String::new();
            match self.output.read_line(&mut line) {
                Ok(0) => return Err(gone(format!("{statement}: {said}the client ended"))),
                Ok(_) if line.starts_with(&marker) => {
                    let failed = match self.server {
                        Server::Postgres => line.trim_end().ends_with("true"),
                        Server::MariaDb => said.lines().any(|line| line.starts_with("ERROR ")),
                    };
                    return if failed {
                        let lost = ["terminating connection", "connection to server", "gone away", "Lost connection"];
                        let gone = lost.iter().any(|text| said.contains(text));
                        Err(Refused { message: format!("{statement}: {said}"), gone })
                    } else {
                        Ok(())
                    };
                }
                Ok(_) => said.push_str(&line),
                Err(error) => return Err(gone(format!("{statement}: {error}"))),
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_escapes_is_read_back() {
        assert_eq!(unescaped("a\\tb\\\\n\\n"), "a\tb\\n\n");
    }
}
