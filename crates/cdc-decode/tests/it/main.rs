//! The decoder against recorded events, types, bad input and delivery.

mod canon;
mod capture;
mod captures;
mod feeds;
mod replay;
