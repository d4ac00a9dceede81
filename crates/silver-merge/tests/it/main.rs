//! The silver layer against an object store in memory: worked histories, problems from the field, the oracle, crashes and
//! races. The last line of each proof says how much was tried.

mod anew;
mod before_images;
mod change_feed;
mod continuous;
mod controls;
mod crashes;
mod declarations;
mod field_apply_changes;
mod field_debezium;
mod field_merge;
mod first_read;
mod flows;
mod late;
mod lost;
mod model_laws;
mod queries;
mod races;
mod reads;
mod regression;
mod rules;
mod slices;
mod table_changes;
mod vectors;
mod widening;
mod worked_histories;
mod world;
