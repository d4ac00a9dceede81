//! What a bundle means and what is said of one that is broken.

mod broken;
mod folder;
mod handed;
mod hostile;
mod repository;
mod sql;
mod targets;
mod trials;
