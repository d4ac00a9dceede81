//! A working folder, an environment and a command line for one test.

use std::path::Path;

use tributary_config::{Inputs, Loaded, Program, Refusal, arguments, load, normalise};

/// Inputs that a test builds up.
pub struct Setup {
    folder: tempfile::TempDir,
    inputs: Inputs,
    program: Program,
}

impl Setup {
    /// An empty folder, no environment, no flags.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inputs = Inputs { arguments: vec!["tributary".into()], environment: Vec::new(), login: None, folder: folder.path().into() };
        Self { folder, inputs, program: Program::Run }
    }

    pub fn program(mut self, program: Program) -> Self {
        self.program = program;
        self
    }

    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.inputs.arguments.extend(arguments.iter().map(Into::into));
        self
    }

    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.inputs.environment.push((name.into(), value.into()));
        self
    }

    pub fn file(self, name: &str, text: &str) -> Self {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Runs in a folder below the one that files were written to.
    pub fn in_folder(mut self, name: &str) -> Self {
        self.inputs.folder = self.folder.path().join(name);
        std::fs::create_dir_all(&self.inputs.folder).unwrap();
        self
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn inputs(&mut self) -> &mut Inputs {
        &mut self.inputs
    }

    pub fn try_load(&self) -> Result<Loaded, Refusal> {
        let command = clap::Command::new("tributary").args(arguments(self.program));
        let matches = command.try_get_matches_from(normalise(&self.inputs.arguments)).unwrap();
        load(self.program, &matches, &self.inputs)
    }

    pub fn load(&self) -> Loaded {
        self.try_load().unwrap_or_else(|refusal| panic!("{refusal}"))
    }
}
