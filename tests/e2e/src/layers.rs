//! The real binaries as child processes.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// How the binaries of one warehouse are called.
#[derive(Debug, Clone)]
pub struct Layers {
    /// The folder of the binaries.
    pub binaries: PathBuf,
    /// A layer whose program is `broken` instead of its own.
    pub broken: Option<&'static str>,
    /// The pipeline's file or folder.
    pub pipeline: PathBuf,
    /// The root of the tables.
    pub warehouse: PathBuf,
    /// Where logs and reports go.
    pub folder: PathBuf,
    /// The broker's address, where there is one.
    pub bootstrap: Option<String>,
    /// What else a layer is told.
    pub flags: BTreeMap<&'static str, Vec<String>>,
}

/// How long the group of continuous bronze processes waits for one that is silent.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(6);

/// The three layers, in the order of the data.
pub const LAYERS: [&str; 3] = ["bronze", "silver", "gold"];

impl Layers {
    /// The binaries that stand beside this one.
    pub fn new(folder: &Path, name: &str, pipeline: &Path, bootstrap: Option<&str>) -> Result<Self> {
        let program = std::env::current_exe().context("where this program is")?;
        let binaries = program.parent().context("this program lies in a folder")?.to_owned();
        Ok(Self {
            binaries,
            broken: None,
            pipeline: pipeline.to_owned(),
            warehouse: folder.join(name),
            folder: folder.to_owned(),
            bootstrap: bootstrap.map(str::to_owned),
            flags: BTreeMap::new(),
        })
    }

    /// The layer's program breaks this rule of the product, as `broken --without` names it.
    pub fn without(&mut self, layer: &'static str, rule: &str) {
        self.broken = Some(layer);
        self.flags.entry(layer).or_default().extend(["--layer", layer, "--without", rule].map(str::to_owned));
    }

    /// A program that stands beside this one.
    fn program(&self, name: &str) -> Result<Command> {
        let path = self.binaries.join(name);
        if !path.is_file() {
            bail!("{} is not built", path.display());
        }
        let mut command = Command::new(path);
        // settings of whoever runs this are not ours
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TRIBUTARY_")) {
            command.env_remove(name);
        }
        command.current_dir(&self.folder).stdin(Stdio::null());
        Ok(command)
    }

    fn located(&self, command: &mut Command) {
        command.arg("--pipeline").arg(&self.pipeline).arg("--warehouse").arg(&self.warehouse);
    }

    fn command(&self, layer: &str, log: &str) -> Result<Command> {
        let own = format!("tributary-{layer}");
        let mut command = self.program(if self.broken == Some(layer) { "broken" } else { &own })?;
        self.located(&mut command);
        command.args(["--log-format", "json", "--log-filter", "warn,buoyant_kernel=off,tributary_bronze=info", "--memory-limit", "256MiB"]);
        if let Some(bootstrap) = self.bootstrap.as_ref().filter(|_| layer == "bronze") {
            let (timeout, beat) = (SESSION_TIMEOUT.as_millis(), SESSION_TIMEOUT.as_millis() / 6);
            command.args(["--kafka-bootstrap", bootstrap, "--kafka-property", &format!("session.timeout.ms={timeout}")]);
            command.args(["--kafka-property", &format!("heartbeat.interval.ms={beat}")]);
        }
        command.args(self.flags.get(layer).into_iter().flatten());
        self.logged(&mut command, log)?;
        Ok(command)
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    fn logged(&self, command: &mut Command, name: &str) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.log(name)).context("a log file")?;
        command.stdout(log.try_clone()?).stderr(log);
        Ok(())
    }

    /// Runs `tributary doctor`; its exit code and its findings.
    pub fn doctor(&self, flags: &[&str]) -> Result<(i32, Vec<serde_json::Value>)> {
        let mut command = self.program("tributary")?;
        command.arg("doctor");
        self.located(&mut command);
        command.args(self.bootstrap.iter().flat_map(|bootstrap| ["--kafka-bootstrap", bootstrap])).args(["--output", "json"]).args(flags);
        let output = command.output().context("starting tributary")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let findings = text.lines().map(serde_json::from_str).collect::<Result<_, _>>();
        let findings = findings.with_context(|| format!("doctor says {text}{}", String::from_utf8_lossy(&output.stderr)))?;
        Ok((output.status.code().unwrap_or(-1), findings))
    }

    /// Runs one layer once; its exit code and its report.
    pub fn drain(&self, layer: &str) -> Result<(i32, serde_json::Value)> {
        let report = self.folder.join(format!("{layer}-report.json"));
        let _ = std::fs::remove_file(&report);
        let mut command = self.command(layer, &format!("drain-{layer}"))?;
        command.arg("--report").arg(&report).args(["--exit-code-if-nothing-new", "99"]);
        let status = command.status().with_context(|| format!("starting the {layer} binary"))?;
        let document = std::fs::read(&report).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok((status.code().unwrap_or(-1), document.unwrap_or_default()))
    }

    /// Starts one layer once, beside what runs already.
    pub fn drain_beside(&self, layer: &'static str, name: &str, flags: &[&str]) -> Result<Process> {
        let mut command = self.command(layer, name)?;
        command.args(["--exit-code-if-nothing-new", "99"]).args(flags);
        self.spawn(layer, name, command)
    }

    /// Starts one layer in continuous mode; `name` tells apart several of one layer.
    pub fn stream(&self, layer: &'static str, name: &str) -> Result<Process> {
        self.stream_with(layer, name, &[])
    }

    /// The same with more flags.
    pub fn stream_with(&self, layer: &'static str, name: &str, flags: &[&str]) -> Result<Process> {
        let mut command = self.command(layer, name)?;
        command.args(["--stream", "--processing-time", "1"]).args(flags);
        self.spawn(layer, name, command)
    }

    /// Starts another program that stands beside this one.
    pub fn other(&self, program: &'static str, name: &str, arguments: &[String]) -> Result<Process> {
        let mut command = self.program(program)?;
        command.args(arguments);
        self.logged(&mut command, name)?;
        self.spawn(program, name, command)
    }

    fn spawn(&self, role: &'static str, name: &str, mut command: Command) -> Result<Process> {
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        Ok(Process { role, name: name.to_owned(), child, log: self.log(name) })
    }
}

/// A running process.
#[derive(Debug)]
pub struct Process {
    /// Its layer, or its program.
    pub role: &'static str,
    /// What its log is called.
    pub name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Sends a signal by name, such as `STOP`.
    pub fn signal(&self, signal: &str) -> Result<()> {
        let status = Command::new("kill").args([&format!("-{signal}"), &self.child.id().to_string()]).status().context("starting kill")?;
        if status.success() { Ok(()) } else { bail!("{} could not be sent {signal}", self.name) }
    }

    /// Its exit, if it has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().context("asking after a child")
    }

    /// Kills it without a word.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill().context("killing a child")?;
        self.child.wait().context("waiting for a child")?;
        Ok(())
    }

    /// Asks it to end and waits; it must exit 0 within `limit`.
    pub fn terminate(&mut self, limit: Duration) -> Result<()> {
        self.signal("TERM")?;
        let begin = Instant::now();
        while begin.elapsed() < limit {
            if let Some(status) = self.ended()? {
                return if status.success() { Ok(()) } else { bail!("{} ended with {status}\n{}", self.name, self.last_words()) };
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("{} did not end within {} s of SIGTERM\n{}", self.name, limit.as_secs(), self.last_words())
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let begin = Instant::now();
        loop {
            match self.ended()? {
                Some(status) => return Ok(status),
                None if begin.elapsed() > limit => bail!("{} has not ended after {} s\n{}", self.name, limit.as_secs(), self.last_words()),
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Where it serves its metrics, as its log says.
    pub fn metrics_address(&self) -> Result<String> {
        let said = std::fs::read_to_string(&self.log).context("reading a log")?;
        let events = said.lines().rev().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let mut served = events.filter(|event| event["event"] == "metrics_served");
        let address = served.next().and_then(|event| event["address"].as_str().map(str::to_owned));
        address.with_context(|| format!("{} does not serve metrics yet", self.name))
    }

    /// The end of its log.
    pub fn last_words(&self) -> String {
        let text = std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
