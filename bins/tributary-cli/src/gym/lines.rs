//! Records as lines of files.

use std::io;

use serde::Serialize;

use super::random::mixed;
use super::records::{Action, Gym, Profile, Recording};

/// Topics of the multiplexed dump, and how their files' names begin.
pub(super) const TOPICS: [(&str, &str); 3] = [("user_info", "2-user_info"), ("bpm", "3-bpm"), ("workout", "4-workout")];

/// A record of a topic as it was dumped. The same topic, partition and offset come again in other files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KafkaLine {
    /// Base64 of the key.
    pub key: String,
    /// JSON text.
    pub value: String,
    /// Topic.
    pub topic: &'static str,
    /// Partition.
    pub partition: i64,
    /// Offset: data, not identity.
    pub offset: i64,
    /// Seconds since 1970.
    pub timestamp: i64,
}

#[derive(Serialize)]
struct Address<'a> {
    street_address: &'a str,
    city: &'a str,
    state: &'a str,
    zip: i32,
}

#[derive(Serialize)]
struct UserInfo<'a> {
    user_id: i64,
    update_type: &'a str,
    timestamp: f64,
    dob: String,
    sex: &'a str,
    gender: &'a str,
    first_name: &'a str,
    last_name: &'a str,
    address: Address<'a>,
}

#[derive(Serialize)]
struct Workout<'a> {
    user_id: i32,
    workout_id: i32,
    timestamp: f64,
    action: &'a str,
    session_id: i32,
}

#[derive(Serialize)]
struct Bpm {
    device_id: i64,
    time: f64,
    heartrate: f64,
}

/// A heart rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Beat {
    pub device_id: i64,
    pub time: i64,
    pub heartrate: f64,
}

impl Gym {
    /// Every record of a topic in one of its files, in order.
    ///
    /// # Errors
    /// What `take` gives.
    pub(super) fn lines(&self, topic: &'static str, file: u32, take: &mut dyn FnMut(KafkaLine) -> io::Result<()>) -> io::Result<()> {
        let mut number = 0;
        let mut line = |key: i64, timestamp: i64, value: &dyn Fn() -> serde_json::Result<String>| {
            number += 1;
            let key_text = key.to_string();
            take(KafkaLine {
                key: base64(key_text.as_bytes()),
                value: value()?,
                topic,
                partition: key.rem_euclid(3),
                // up and down, and from the start again in each file
                offset: number / 8 * 8 + 7 - number % 8,
                timestamp,
            })
        };
        match topic {
            "user_info" => {
                let of_file = self.profiles.iter().filter(|profile| profile.file == file);
                of_file.map(|profile| &profile.record).try_for_each(|it| line(it.user_id, it.timestamp, &|| user_info(it)))
            }
            "workout" => {
                let of_file = self.actions.iter().filter(|action| action.file == file);
                of_file.map(|action| &action.record).try_for_each(|it| line(it.user_id.into(), it.timestamp, &|| workout(it)))
            }
            _ => {
                let mut of_file = self.recordings.iter().filter(|recording| recording.file == file);
                of_file.try_for_each(|recording| self.beats(&recording.record, &mut |it| line(it.device_id, it.time, &|| bpm(it))))
            }
        }
    }

    /// The heart rates of a recording. What a device tells of a second is the same in every recording; of some it tells two.
    pub(super) fn beats(&self, recording: &Recording, take: &mut dyn FnMut(Beat) -> io::Result<()>) -> io::Result<()> {
        let Recording { device_id, from, seconds } = *recording;
        for time in from..from + i64::from(seconds) {
            let chance = mixed(&[self.options.seed, device_id.unsigned_abs(), time.unsigned_abs()]);
            // halves, so that sums of them are exact
            let heartrate = match chance % 40 {
                0 => [0.0, -1.0, -16.5][(chance >> 32) as usize % 3],
                _ => 55.0 + ((chance >> 32) % 260) as f64 / 2.0,
            };
            let beat = Beat { device_id, time, heartrate };
            take(beat)?;
            match (chance >> 8) % 300 {
                0 => take(beat)?,
                1 => take(Beat { heartrate: heartrate + 4.5, ..beat })?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn user_info(profile: &Profile) -> serde_json::Result<String> {
    let Profile { user_id, sex, gender, first_name, last_name, street_address, city, state, zip, .. } = profile;
    serde_json::to_string(&UserInfo {
        user_id: *user_id,
        update_type: profile.update_type.word(),
        timestamp: profile.timestamp as f64,
        dob: profile.dob.format("%m/%d/%Y").to_string(),
        sex,
        gender,
        first_name,
        last_name,
        address: Address { street_address, city, state, zip: *zip },
    })
}

fn workout(action: &Action) -> serde_json::Result<String> {
    let Action { user_id, workout_id, timestamp, starts, session_id } = *action;
    let action = if starts { "start" } else { "stop" };
    serde_json::to_string(&Workout { user_id, workout_id, timestamp: timestamp as f64, action, session_id })
}

fn bpm(beat: Beat) -> serde_json::Result<String> {
    let Beat { device_id, time, heartrate } = beat;
    serde_json::to_string(&Bpm { device_id, time: time as f64, heartrate })
}

/// Standard base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for sign in 0..4 {
            let at = (bits >> (18 - 6 * sign)) as usize % 64;
            text.push(if sign <= three.len() { char::from(SIGNS[at]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_base64() {
        for (text, coded) in [("", ""), ("9", "OQ=="), ("91", "OTE="), ("911", "OTEx"), ("10003", "MTAwMDM=")] {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }

    #[test]
    fn a_workout_is_told_as_the_sources_tell_it() {
        let action = Action { user_id: 91, workout_id: 1, timestamp: 1_700_000_000, starts: true, session_id: 1 };
        let told = r#"{"user_id":91,"workout_id":1,"timestamp":1700000000.0,"action":"start","session_id":1}"#;
        assert_eq!(workout(&action).unwrap(), told);
    }
}
