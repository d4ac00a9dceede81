//! From options to records. What an engine must get right is made by turns, so that a small set has all of it.

use chrono::{Datelike as _, Days, NaiveDate};

use super::calendar::DAY;
use super::random::Random;
use super::records::{Action, Arrived, Gym, GymOptions, Login, Profile, Recording, Registration, UpdateType};

const FIRST_NAMES: [&str; 8] = ["Ann", "Bob", "Chloé", "Dmitri", "Eve", "Farid", "Grace", "Håkon"];
const LAST_NAMES: [&str; 7] = ["Li", "Okafor", "O'Neill", "Smith", "Vega", "de la \"Rue\"", "Young"];
const STREETS: [&str; 5] = ["Main St", "Oak Ave", "1st, rear house", "Hill\\Road", "Lake Dr"];
const CITIES: [(&str, &str, i32); 6] = [
    ("Fremont", "CA", 94_536),
    ("Lakewood", "CA", 90_712),
    ("Newark", "NJ", 7_102),
    ("Boston", "MA", 2_108),
    ("San José", "CA", 95_110),
    ("Reno", "NV", 89_501),
];
/// The longest workout that counts ends before so many seconds.
const THREE_HOURS: i64 = 3 * 3600;

impl Gym {
    /// What the sources tell, by these options.
    pub fn of(options: GymOptions) -> Self {
        let options = GymOptions { users: options.users.max(1), days: options.days.max(1), files: options.files.max(1), ..options };
        let (registrations, logins, profiles) = Default::default();
        let mut gym = Self { options, registrations, logins, profiles, actions: Vec::new(), recordings: Vec::new() };
        for user in 0..options.users {
            let mut random = Random::of(&[options.seed, u64::from(user)]);
            gym.register(user, &mut random);
            gym.describe(user, &mut random);
            gym.exercise(user, &mut random);
        }
        gym
    }

    fn first_second(&self) -> i64 {
        i64::from(self.options.first_day.to_epoch_days()) * DAY
    }

    /// The file in which arrives what happens at an instant, or `later` files after.
    fn file_of(&self, seconds: i64, later: u32) -> u32 {
        let GymOptions { days, files, .. } = self.options;
        let day = u32::try_from((seconds - self.first_second()).div_euclid(DAY)).unwrap_or(0).min(days - 1);
        (u32::try_from(u64::from(day) * u64::from(files) / u64::from(days)).unwrap_or(0) + 1 + later).min(files)
    }

    fn register(&mut self, user: u32, random: &mut Random) {
        let number = i64::from(user);
        let fraction = [0.0, 0.5, 0.25][user as usize % 3];
        let at = self.first_second() - random.within(1, 200 * DAY);
        let file = user % self.options.files + 1;
        let registered = Registration {
            user_id: user_id(user),
            device_id: device_id(user),
            mac_address: mac_address(user),
            registration_timestamp: at as f64 + fraction,
        };
        let another = |after: f64| Registration {
            device_id: 900_000 + number,
            mac_address: format!("02:ff:00:00:{:02x}:{:02x}", user / 256 % 256, user % 256),
            registration_timestamp: registered.registration_timestamp + after,
            ..registered.clone()
        };
        let mut arrives = |file: u32, record| self.registrations.push(Arrived { file, record });
        match user % 7 {
            // another device before the first one is told, and after
            2 => arrives(file, another(60.5)),
            3 => arrives((file + 1).min(self.options.files), another(3600.0)),
            5 => arrives((file + 1).min(self.options.files), registered.clone()),
            _ => {}
        }
        self.registrations.push(Arrived { file, record: registered });
    }

    fn describe(&mut self, user: u32, random: &mut Random) {
        let begin = self.first_second() + random.within(60, DAY / 2);
        let span = i64::from(self.options.days) * DAY;
        let at = |part: i64| begin + (span - DAY) * part / 4;
        let first = profile(user, begin, self.options.first_day, random);
        let moved = |timestamp: i64, random: &mut Random| {
            let (city, state, zip) = random.one_of(&CITIES);
            let street_address = format!("{} {}", random.within(1, 400), random.one_of(&STREETS));
            Profile { update_type: UpdateType::Update, timestamp, city, state, zip, street_address, ..first.clone() }
        };
        let deleted = |timestamp: i64| Profile { update_type: UpdateType::Delete, timestamp, ..first.clone() };
        let (one, other, third) = (moved(at(1), random), moved(at(2), random), moved(at(3), random));
        let told: Vec<(u32, Profile)> = match user % 9 {
            1 => vec![(0, one)],
            // the older one arrives later
            2 => vec![(0, third), (u32::MAX, one)],
            // ties, in one file and in two
            3 => vec![(0, Profile { timestamp: one.timestamp, ..other }), (0, one)],
            4 => vec![(0, one.clone()), (1, Profile { timestamp: one.timestamp, ..other })],
            5 => vec![(0, deleted(one.timestamp)), (0, one)],
            // a late update of what is gone
            6 => vec![(0, deleted(third.timestamp)), (u32::MAX, other)],
            7 => vec![(0, deleted(one.timestamp)), (0, Profile { update_type: UpdateType::New, ..third })],
            8 => vec![(0, one.clone()), (1, one)],
            _ => Vec::new(),
        };
        let told = std::iter::once((0, first)).chain(told);
        let arrived: Vec<_> =
            told.map(|(later, record)| Arrived { file: self.file_of(record.timestamp, later.min(self.options.files)), record }).collect();
        self.profiles.extend(arrived);
    }

    fn exercise(&mut self, user: u32, random: &mut Random) {
        let mut session = 0;
        for day in 0..i64::from(self.options.days) {
            if random.within(0, 5) < 2 {
                continue;
            }
            session += 1;
            let login = self.first_second() + day * DAY + random.within(6 * 3600, 18 * 3600);
            let logout = login + random.within(45 * 60, 110 * 60);
            self.visit(&Login { mac_address: mac_address(user), gym: random.within(1, 6), login, logout }, random);
            self.work_out(user, session, (login, logout), random);
        }
    }

    fn visit(&mut self, whole: &Login, random: &mut Random) {
        let file = self.file_of(whole.login, 0);
        let before = |seconds: i64| Login { logout: whole.logout - seconds, ..whole.clone() };
        let told: Vec<(u32, Login)> = match random.within(0, 6) {
            // the door knew less at first
            0 => vec![(0, before(1200)), (0, whole.clone())],
            1 => vec![(0, before(300)), (1, whole.clone())],
            // what it takes back later does not count
            2 => vec![(0, whole.clone()), (1, before(600))],
            3 => vec![(0, whole.clone()), (0, whole.clone())],
            _ => vec![(0, whole.clone())],
        };
        let files = self.options.files;
        self.logins.extend(told.into_iter().map(|(later, record)| Arrived { file: (file + later).min(files), record }));
    }

    fn work_out(&mut self, user: u32, session_id: i32, (login, logout): (i64, i64), random: &mut Random) {
        let turn = (user + u32::try_from(session_id).unwrap_or(0)) % 13;
        let start = match turn {
            5 => login,
            6 => logout,
            _ => login + random.within(30, 900),
        };
        let end = match turn {
            0 => start + THREE_HOURS,
            1 => start + THREE_HOURS - 1,
            2 => start + THREE_HOURS + 600,
            4 => start - 45,
            _ => start + random.within(600, 2400),
        };
        let workout_id = i32::try_from(random.within(1, 9)).unwrap_or(1);
        let user_id = i32::try_from(user_id(user)).unwrap_or(0);
        let action = |timestamp, starts| Action { user_id, workout_id, timestamp, starts, session_id };
        let (file, files) = (self.file_of(start, 0), self.options.files);
        let later = (file + u32::from(random.within(0, 5) == 0)).min(files);
        let mut arrives = |file, record| self.actions.push(Arrived { file, record });
        arrives(file, action(start, true));
        match turn {
            3 => {}
            // begun twice
            7 => {
                arrives(file, action(start + 75, true));
                arrives(later, action(end, false));
            }
            // told twice
            8 => {
                arrives(file, action(end, false));
                arrives(later, action(end, false));
            }
            _ => arrives(later, action(end, false)),
        }
        let device_id = device_id(user);
        let recording = |from, seconds| Recording { device_id, from, seconds };
        self.recordings.push(Arrived { file, record: recording(start - 2, self.options.heart_rate_seconds) });
        // the last seconds, and some beyond; once more in a later file
        self.recordings.push(Arrived { file: later, record: recording(end - 3, self.options.heart_rate_seconds.min(6)) });
    }
}

fn user_id(user: u32) -> i64 {
    10_000 + i64::from(user) * 3
}

fn device_id(user: u32) -> i64 {
    100_000 + i64::from(user)
}

fn mac_address(user: u32) -> String {
    let bytes = user.to_be_bytes();
    format!("02:00:{:02x}:{:02x}:{:02x}:{:02x}", bytes[0], bytes[1], bytes[2], bytes[3])
}

fn profile(user: u32, timestamp: i64, first_day: NaiveDate, random: &mut Random) -> Profile {
    let (city, state, zip) = random.one_of(&CITIES);
    let leap = NaiveDate::from_ymd_opt(1988, 2, 29).unwrap_or_default();
    let dob = match user % 6 {
        0 => leap,
        // birthdays about the first day
        1 => first_day.with_year(first_day.year() - 18).unwrap_or(leap),
        2 => first_day.with_year(first_day.year() - 25).unwrap_or(leap) + Days::new(1),
        _ => NaiveDate::from_ymd_opt(1926, 1, 31).unwrap_or_default() + Days::new(random.next() % 31_000),
    };
    Profile {
        user_id: user_id(user),
        update_type: UpdateType::New,
        timestamp,
        dob,
        sex: random.one_of(&["F", "M"]),
        gender: random.one_of(&["F", "M", "X"]),
        first_name: random.one_of(&FIRST_NAMES),
        last_name: random.one_of(&LAST_NAMES),
        street_address: format!("{} {}", random.within(1, 400), random.one_of(&STREETS)),
        city,
        state,
        zip,
    }
}
