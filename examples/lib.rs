//! The examples beside this file: `embed`, `custom_source`, `custom_dataset`.
