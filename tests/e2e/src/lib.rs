//! The chain against real services: a workload runs in real databases, Debezium and a broker carry it, the real binaries make
//! tables of it while things are paused, restarted and killed, and in the end everything is compared.
//!
//! ```text
//! workload ──▶ session (psql, mariadb) ──▶ databases ──▶ Debezium ──▶ broker ──▶ layers (child processes) ──▶ warehouse
//!                                             │                         │                                        │
//!                                             └──── source (SELECT) ────┴── records (offsets) ───────▶ check ◀───┘
//! ```
//!
//! What must hold: every record of the topics is in bronze once, in quarantine, or a tombstone; silver equals the databases;
//! gold equals its query over silver. The same seed makes the same statements in the same order.

pub mod check;
pub mod connect;
pub mod crew;
pub mod delivered;
pub mod fire;
pub mod http;
pub mod layers;
pub mod part;
pub mod program;
pub mod random;
pub mod records;
pub mod run;
pub mod services;
pub mod session;
pub mod soak;
pub mod source;
pub mod workload;
