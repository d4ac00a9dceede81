//! What the sources of the gym pipeline tell.

use chrono::NaiveDate;

/// How much is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GymOptions {
    /// The same seed and options give the same files.
    pub seed: u64,
    /// People registered, at least 1.
    pub users: u32,
    /// Days on which they exercise, at least 1.
    pub days: u32,
    /// Seconds of heart rates from the begin of each workout on.
    pub heart_rate_seconds: u32,
    /// Files of each kind, at least 1: what happens later is in a later one.
    pub files: u32,
    /// The first day.
    pub first_day: NaiveDate,
}

impl Default for GymOptions {
    /// Two files of each kind, over the end of a year.
    fn default() -> Self {
        let first_day = NaiveDate::from_ymd_opt(2023, 12, 20).unwrap_or_default();
        Self { seed: 7, users: 50, days: 14, heart_rate_seconds: 120, files: 2, first_day }
    }
}

/// A record, and the file it arrives in, from 1 on.
#[derive(Debug, Clone)]
pub struct Arrived<T> {
    /// The number in the file's name.
    pub file: u32,
    /// What it says.
    pub record: T,
}

/// A device, and who wears it.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// Who.
    pub user_id: i64,
    /// What they wear.
    pub device_id: i64,
    /// Its address.
    pub mac_address: String,
    /// Seconds since 1970, with a fraction.
    pub registration_timestamp: f64,
}

/// A visit of a gym as far as its door knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The device that came in.
    pub mac_address: String,
    /// Which gym.
    pub gym: i64,
    /// Seconds since 1970.
    pub login: i64,
    /// Seconds since 1970; may be said again, and only goes forward.
    pub logout: i64,
}

/// What happens to a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateType {
    /// It begins, or begins again.
    New,
    /// It is another.
    Update,
    /// It ends.
    Delete,
}

impl UpdateType {
    /// The word of the messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// A profile from an instant on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Whose.
    pub user_id: i64,
    /// What happens to it.
    pub update_type: UpdateType,
    /// Seconds since 1970.
    pub timestamp: i64,
    /// Birthday.
    pub dob: NaiveDate,
    /// `M` or `F`.
    pub sex: &'static str,
    /// `M`, `F` or `X`.
    pub gender: &'static str,
    /// First name.
    pub first_name: &'static str,
    /// Last name.
    pub last_name: &'static str,
    /// House and street.
    pub street_address: String,
    /// Town.
    pub city: &'static str,
    /// State.
    pub state: &'static str,
    /// Postal code.
    pub zip: i32,
}

/// The begin or the end of a workout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// Who.
    pub user_id: i32,
    /// Which workout.
    pub workout_id: i32,
    /// Seconds since 1970.
    pub timestamp: i64,
    /// Whether it begins; otherwise it ends.
    pub starts: bool,
    /// Which session of the user's.
    pub session_id: i32,
}

/// Seconds during which a device told heart rates, one a second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Whose.
    pub device_id: i64,
    /// The first second since 1970.
    pub from: i64,
    /// How many.
    pub seconds: u32,
}

/// All that the sources tell.
#[derive(Debug, Clone)]
pub struct Gym {
    /// What it was made by.
    pub options: GymOptions,
    /// Devices.
    pub registrations: Vec<Arrived<Registration>>,
    /// Visits.
    pub logins: Vec<Arrived<Login>>,
    /// Profiles.
    pub profiles: Vec<Arrived<Profile>>,
    /// Workouts.
    pub actions: Vec<Arrived<Action>>,
    /// Heart rates.
    pub recordings: Vec<Arrived<Recording>>,
}
