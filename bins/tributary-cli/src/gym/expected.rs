//! Every table of the gym pipeline, from the records alone and in the simplest way there is.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use chrono::NaiveDate;

use super::calendar::{self, age_group, day_of};
use super::lines::{Beat, TOPICS};
use super::records::{Gym, Profile, Registration, UpdateType};

/// A workout that has begun ends before so many seconds, or it does not count.
const LONGEST: i64 = 3 * 3600;

/// A value with its type.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// `int`.
    Int(i32),
    /// `bigint`.
    Long(i64),
    /// `double`.
    Double(f64),
    /// `boolean`.
    Bool(bool),
    /// `string`.
    Text(String),
    /// `date`: days since 1970.
    Day(i32),
    /// `timestamp`: microseconds since 1970.
    Instant(i64),
}

impl Cell {
    fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    fn at(seconds: i64) -> Self {
        Self::Instant(seconds * 1_000_000)
    }

    fn day(day: NaiveDate) -> Self {
        Self::Day(day.to_epoch_days())
    }
}

/// A table: names of its columns, and its rows in no order.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedRows {
    /// In the order of the table, without what the time of the run decides (`load_time`).
    pub columns: &'static [&'static str],
    /// A value a column.
    pub rows: Vec<Vec<Cell>>,
}

/// Tables by `schema.table`.
pub type ExpectedTables = BTreeMap<&'static str, ExpectedRows>;

/// A begin and an end that belong together.
#[derive(Clone, Copy)]
struct Workout {
    user_id: i32,
    workout_id: i32,
    session_id: i32,
    start: i64,
    end: i64,
}

impl Gym {
    /// Every table once all files were taken up, on the day `as_of`.
    pub fn expected(&self, as_of: NaiveDate) -> ExpectedTables {
        let users = self.users();
        let profiles = self.current_profiles();
        let beats = self.heart_rates();
        let workouts = self.completed();
        let visits = self.visits();
        let table = |columns, rows| ExpectedRows { columns, rows };
        let mut tables = ExpectedTables::new();
        let registered = self.registrations.iter().map(|it| {
            let mut row = registration(&it.record);
            row.extend([Cell::Double(it.record.registration_timestamp), Cell::Text(format!("1-registered_users_{}.csv", it.file))]);
            row
        });
        tables.insert(
            "bronze.registered_users_bz",
            table(&["user_id", "device_id", "mac_address", "registration_timestamp", "source_file"], registered.collect()),
        );
        let logins = self.logins.iter().map(|it| {
            let (login, file) = (&it.record, format!("5-gym_logins_{}.csv", it.file));
            let epochs = [login.login, login.logout].map(|seconds| Cell::Double(seconds as f64));
            [Cell::text(&login.mac_address), Cell::Long(login.gym)].into_iter().chain(epochs).chain([Cell::Text(file)]).collect()
        });
        tables.insert("bronze.gym_logins_bz", table(&["mac_address", "gym", "login", "logout", "source_file"], logins.collect()));
        tables.insert("bronze.kafka_multiplex_bz", self.multiplex());
        tables.insert("bronze.date_lookup", self.lookup());
        let rows = users.values().map(|user| {
            let mut row = registration(user);
            row.push(Cell::Instant((user.registration_timestamp * 1e6) as i64));
            row
        });
        tables.insert("silver.users", table(&["user_id", "device_id", "mac_address", "registration_timestamp"], rows.collect()));
        let rows = visits.iter().map(|((mac_address, gym, login), logout)| {
            vec![Cell::text(mac_address), Cell::Long(*gym), Cell::at(*login), Cell::at(*logout)]
        });
        tables.insert("silver.gym_logs", table(&["mac_address", "gym", "login", "logout"], rows.collect()));
        tables.insert("silver.user_profile", table(PROFILE, profiles.values().map(|profile| profile_row(profile)).collect()));
        let rows = beats.values().map(|beat| {
            vec![Cell::Long(beat.device_id), Cell::at(beat.time), Cell::Double(beat.heartrate), Cell::Bool(beat.heartrate > 0.0)]
        });
        tables.insert("silver.heart_rate", table(&["device_id", "time", "heartrate", "valid"], rows.collect()));
        tables.insert("silver.workouts", self.workouts());
        let bins: BTreeMap<i64, [Cell; 4]> =
            profiles.values().map(|it| (it.user_id, [age_group(it.dob, as_of), it.gender, it.city, it.state].map(Cell::text))).collect();
        let rows = bins.iter().map(|(user, bin)| std::iter::once(Cell::Long(*user)).chain(bin.iter().cloned()).collect());
        tables.insert("silver.user_bins", table(&["user_id", "age", "gender", "city", "state"], rows.collect()));
        let rows = workouts.iter().map(|it| [ids(it).to_vec(), vec![Cell::at(it.start), Cell::at(it.end)]].concat());
        tables
            .insert("silver.completed_workouts", table(&["user_id", "workout_id", "session_id", "start_time", "end_time"], rows.collect()));
        let during = during(&workouts, &users, &beats);
        let rows = during.iter().map(|(it, beat)| {
            let times = [it.start, it.end, beat.time].map(Cell::at);
            ids(it).into_iter().chain(times).chain([Cell::Double(beat.heartrate)]).collect()
        });
        tables.insert(
            "silver.workout_bpm",
            table(&["user_id", "workout_id", "session_id", "start_time", "end_time", "time", "heartrate"], rows.collect()),
        );
        tables.insert("gold.workout_bpm_summary", summary(&during, &bins));
        tables.insert("gold.gym_summary", gym_summary(&visits, &users, &workouts));
        tables
    }

    fn multiplex(&self) -> ExpectedRows {
        let mut rows = Vec::new();
        for file in 1..=self.options.files {
            for (topic, name) in TOPICS {
                let taken = self.lines(topic, file, &mut |line| {
                    let day = day_of(line.timestamp);
                    rows.push(vec![
                        Cell::Text(line.key),
                        Cell::Text(line.value),
                        Cell::text(line.topic),
                        Cell::Long(line.partition),
                        Cell::Long(line.offset),
                        Cell::Long(line.timestamp),
                        Cell::day(day),
                        Cell::Text(calendar::week_part(day)),
                        Cell::Text(format!("{name}_{file}.json")),
                    ]);
                    Ok(())
                });
                debug_assert!(taken.is_ok(), "{taken:?}");
            }
        }
        let columns = &["key", "value", "topic", "partition", "offset", "timestamp", "date", "week_part", "source_file"];
        ExpectedRows { columns, rows }
    }

    fn lookup(&self) -> ExpectedRows {
        let rows = self.days().map(|day| {
            let of_day = calendar::LookupDay::of(day);
            let number = |text: &str| Cell::Int(text.parse().unwrap_or(i32::MIN));
            let numbers = [of_day.week, of_day.year, of_day.month, of_day.dayofweek, of_day.dayofmonth, of_day.dayofyear];
            let numbers = numbers.iter().map(|text| number(text));
            std::iter::once(Cell::day(day)).chain(numbers).chain([Cell::Text(of_day.week_part)]).collect()
        });
        let columns = &["date", "week", "year", "month", "dayofweek", "dayofmonth", "dayofyear", "week_part"];
        ExpectedRows { columns, rows: rows.collect() }
    }

    /// The first registration of each.
    fn users(&self) -> BTreeMap<i64, &Registration> {
        let mut users: BTreeMap<i64, &Registration> = BTreeMap::new();
        for it in self.registrations.iter().map(|it| &it.record) {
            let first = users.entry(it.user_id).or_insert(it);
            if it.registration_timestamp < first.registration_timestamp {
                *first = it;
            }
        }
        users
    }

    /// The last logout of each visit.
    fn visits(&self) -> BTreeMap<(&str, i64, i64), i64> {
        let mut visits = BTreeMap::new();
        for it in self.logins.iter().map(|it| &it.record) {
            let last = visits.entry((it.mac_address.as_str(), it.gym, it.login)).or_insert(it.logout);
            *last = it.logout.max(*last);
        }
        visits
    }

    /// The latest state of each: by time, then a delete over an update, then the greater values, column by column.
    fn current_profiles(&self) -> BTreeMap<i64, &Profile> {
        let order = |it: &Profile| (it.timestamp, it.update_type == UpdateType::Delete);
        let values = |it: &Profile| {
            let address = (it.street_address.clone(), it.city, it.state, it.zip);
            (it.dob, it.sex, it.gender, it.first_name, it.last_name, address)
        };
        let mut latest: BTreeMap<i64, &Profile> = BTreeMap::new();
        for it in self.profiles.iter().map(|it| &it.record) {
            let last = latest.entry(it.user_id).or_insert(it);
            if (order(it), values(it)) > (order(last), values(last)) {
                *last = it;
            }
        }
        latest.retain(|_, it| it.update_type != UpdateType::Delete);
        latest
    }

    /// Of each second the first that was told; of two told at once the lesser.
    fn heart_rates(&self) -> BTreeMap<(i64, i64), Beat> {
        let mut beats: BTreeMap<(i64, i64), Beat> = BTreeMap::new();
        for recording in &self.recordings {
            let mut take = |beat: Beat| -> io::Result<()> {
                let first = beats.entry((beat.device_id, beat.time)).or_insert(beat);
                first.heartrate = first.heartrate.min(beat.heartrate);
                Ok(())
            };
            let taken = self.beats(&recording.record, &mut take);
            debug_assert!(taken.is_ok(), "{taken:?}");
        }
        beats
    }

    fn workouts(&self) -> ExpectedRows {
        let mut seen = BTreeSet::new();
        let actions = self.actions.iter().map(|it| &it.record).filter(|it| seen.insert((it.user_id, it.timestamp)));
        let rows = actions.map(|it| {
            let action = if it.starts { "start" } else { "stop" };
            vec![Cell::Int(it.user_id), Cell::Int(it.workout_id), Cell::at(it.timestamp), Cell::text(action), Cell::Int(it.session_id)]
        });
        ExpectedRows { columns: &["user_id", "workout_id", "time", "action", "session_id"], rows: rows.collect() }
    }

    fn completed(&self) -> Vec<Workout> {
        let mut sessions: BTreeMap<(i32, i32, i32), [BTreeSet<i64>; 2]> = BTreeMap::new();
        for it in self.actions.iter().map(|it| &it.record) {
            let session = sessions.entry((it.user_id, it.workout_id, it.session_id)).or_default();
            session[usize::from(it.starts)].insert(it.timestamp);
        }
        let mut completed = Vec::new();
        for ((user_id, workout_id, session_id), [stops, starts]) in sessions {
            for start in starts {
                let ends = stops.iter().filter(|end| start < **end && **end < start + LONGEST);
                completed.extend(ends.map(|end| Workout { user_id, workout_id, session_id, start, end: *end }));
            }
        }
        completed
    }
}

const PROFILE: &[&str] =
    &["user_id", "dob", "sex", "gender", "first_name", "last_name", "street_address", "city", "state", "zip", "updated"];

fn profile_row(it: &Profile) -> Vec<Cell> {
    let texts = [it.sex, it.gender, it.first_name, it.last_name, &it.street_address, it.city, it.state].map(Cell::text);
    let ends = [Cell::Int(it.zip), Cell::at(it.timestamp)];
    [Cell::Long(it.user_id), Cell::day(it.dob)].into_iter().chain(texts).chain(ends).collect()
}

fn registration(it: &Registration) -> Vec<Cell> {
    vec![Cell::Long(it.user_id), Cell::Long(it.device_id), Cell::text(&it.mac_address)]
}

fn ids(it: &Workout) -> [Cell; 3] {
    [it.user_id, it.workout_id, it.session_id].map(Cell::Int)
}

/// Valid heart rates of each workout.
fn during(workouts: &[Workout], users: &BTreeMap<i64, &Registration>, beats: &BTreeMap<(i64, i64), Beat>) -> Vec<(Workout, Beat)> {
    let mut found = Vec::new();
    for it in workouts {
        let Some(user) = users.get(&i64::from(it.user_id)) else { continue };
        let within = beats.range((user.device_id, it.start + 1)..=(user.device_id, it.end));
        found.extend(within.filter(|(_, beat)| beat.heartrate > 0.0).map(|(_, beat)| (*it, *beat)));
    }
    found
}

fn summary(during: &[(Workout, Beat)], bins: &BTreeMap<i64, [Cell; 4]>) -> ExpectedRows {
    let mut groups: BTreeMap<(i32, i32, i64), Vec<f64>> = BTreeMap::new();
    for (it, beat) in during {
        groups.entry((it.workout_id, it.session_id, it.user_id.into())).or_default().push(beat.heartrate);
    }
    let rows = groups.into_iter().filter_map(|((workout_id, session_id, user_id), rates)| {
        let bin = bins.get(&user_id)?;
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let who = [Cell::Int(workout_id), Cell::Int(session_id), Cell::Long(user_id)];
        let rates = [least, mean, most].map(Cell::Double).into_iter().chain([Cell::Long(rates.len() as i64)]);
        Some(who.into_iter().chain(bin.iter().cloned()).chain(rates).collect())
    });
    let columns =
        &["workout_id", "session_id", "user_id", "age", "gender", "city", "state", "min_bpm", "avg_bpm", "max_bpm", "num_recordings"];
    ExpectedRows { columns, rows: rows.collect() }
}

fn gym_summary(visits: &BTreeMap<(&str, i64, i64), i64>, users: &BTreeMap<i64, &Registration>, workouts: &[Workout]) -> ExpectedRows {
    // whole hundredths, the half up
    let minutes = |seconds: i64| Cell::Double(((seconds * 100 + 30).div_euclid(60)) as f64 / 100.0);
    let mut rows = Vec::new();
    for ((mac_address, gym, login), logout) in visits {
        for it in workouts.iter().filter(|it| *login <= it.start && it.start <= *logout) {
            let its_users = users.get(&i64::from(it.user_id)).filter(|user| user.mac_address == *mac_address);
            rows.extend(its_users.map(|_| {
                let where_and_who = [Cell::day(day_of(*login)), Cell::Long(*gym), Cell::text(mac_address)];
                let which = [Cell::Int(it.workout_id), Cell::Int(it.session_id)];
                where_and_who.into_iter().chain(which).chain([minutes(logout - login), minutes(it.end - it.start)]).collect()
            }));
        }
    }
    let columns = &["date", "gym", "mac_address", "workout_id", "session_id", "minutes_in_gym", "minutes_exercising"];
    ExpectedRows { columns, rows }
}
