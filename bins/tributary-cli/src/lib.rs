//! What the binaries share: commands, output, the demo.

pub mod demo;
