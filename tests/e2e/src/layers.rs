//! The real binaries as child processes.

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
    /// Which program is bronze: `tributary-bronze`, or one that breaks a rule.
    pub bronze: String,
    /// The pipeline file.
    pub pipeline: PathBuf,
    /// The root of the tables.
    pub warehouse: PathBuf,
    /// Where logs and reports go.
    pub folder: PathBuf,
    /// The broker's address.
    pub bootstrap: String,
    /// What else bronze is told.
    pub flags: Vec<String>,
}

/// How long the group of continuous bronze processes waits for one that is silent.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(6);

/// The three layers, in the order of the data.
pub const LAYERS: [&str; 3] = ["bronze", "silver", "gold"];

impl Layers {
    /// The binaries that stand beside this one.
    pub fn new(folder: &Path, name: &str, pipeline: &Path, bootstrap: &str) -> Result<Self> {
        let program = std::env::current_exe().context("where this program is")?;
        let binaries = program.parent().context("this program lies in a folder")?.to_owned();
        Ok(Self {
            binaries,
            bronze: "tributary-bronze".to_owned(),
            pipeline: pipeline.to_owned(),
            warehouse: folder.join(name),
            folder: folder.to_owned(),
            bootstrap: bootstrap.to_owned(),
            flags: Vec::new(),
        })
    }

    /// A program that stands beside this one, on the pipeline and the warehouse.
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
        let bronze = layer == "bronze";
        let mut command = self.program(&if bronze { self.bronze.clone() } else { format!("tributary-{layer}") })?;
        self.located(&mut command);
        command.args(["--log-format", "json", "--log-filter", "warn,buoyant_kernel=off,tributary_bronze=info", "--memory-limit", "256MiB"]);
        if bronze {
            let (timeout, beat) = (SESSION_TIMEOUT.as_millis(), SESSION_TIMEOUT.as_millis() / 6);
            command.args(["--kafka-bootstrap", &self.bootstrap, "--kafka-property", &format!("session.timeout.ms={timeout}")]);
            command.args(["--kafka-property", &format!("heartbeat.interval.ms={beat}")]).args(&self.flags);
        }
        let log = File::options().create(true).append(true).open(self.folder.join(format!("{log}.log"))).context("a log file")?;
        command.stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }

    /// Runs `tributary doctor`; its exit code and its findings.
    pub fn doctor(&self, flags: &[&str]) -> Result<(i32, Vec<serde_json::Value>)> {
        let mut command = self.program("tributary")?;
        command.arg("doctor");
        self.located(&mut command);
        command.args(["--kafka-bootstrap", &self.bootstrap, "--output", "json"]).args(flags);
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
    pub fn drain_beside(&self, layer: &str) -> Result<Child> {
        let mut command = self.command(layer, &format!("beside-{layer}"))?;
        command.args(["--exit-code-if-nothing-new", "99"]).spawn().with_context(|| format!("starting the {layer} binary"))
    }

    /// Starts one layer in continuous mode; `name` tells apart several of one layer.
    pub fn stream(&self, layer: &'static str, name: &str) -> Result<Process> {
        self.stream_with(layer, name, &[])
    }

    /// The same with more flags.
    pub fn stream_with(&self, layer: &'static str, name: &str, flags: &[&str]) -> Result<Process> {
        let mut command = self.command(layer, name)?;
        command.args(["--stream", "--processing-time", "1"]).args(flags);
        let child = command.spawn().with_context(|| format!("starting the {layer} binary"))?;
        Ok(Process { layer, name: name.to_owned(), child, log: self.folder.join(format!("{name}.log")) })
    }
}

/// A continuous process.
#[derive(Debug)]
pub struct Process {
    /// Its layer.
    pub layer: &'static str,
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
