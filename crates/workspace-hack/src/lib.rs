//! Holds the features of shared dependencies equal, whichever package is built. Nothing of it is used.
