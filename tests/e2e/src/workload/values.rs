//! Values that pipelines stumble over, as SQL literals of both servers.

use tributary_cli::demo::Server;

use crate::random::Random;

const TEXTS: [&str; 17] = [
    "",
    " ",
    "null",
    "NULL",
    "plain",
    "it's \"quoted\"",
    "back\\slash \\n \\N",
    "tab\there",
    "two\nlines",
    "carriage\r\nreturn",
    "{\"not\": [\"json\"",
    "naïve façade Ω",
    "日本語のテキスト",
    "🦀 🏳️‍🌈 𝄞",
    "e\u{301} and \u{e9}",
    "\u{202e}right to left\u{202c} שלום",
    "__debezium_unavailable_valu",
];

/// A text, often an odd one.
pub fn text(random: &mut Random) -> String {
    let text = random.pick(&TEXTS);
    if random.chance(50) { text.to_owned() } else { format!("{text} {}", random.below(1000)) }
}

/// A text that does not fit into its row's page.
pub fn long_text(random: &mut Random) -> String {
    let piece = text(random);
    let length = 2500 + random.below(6000);
    let mut long = format!("{} ", random.bits());
    while (long.len() as u64) < length {
        long.push_str(&piece);
        long.push_str(&random.below(10_000).to_string());
        long.push(' ');
    }
    long
}

/// A text as a literal.
pub fn quoted(server: Server, text: &str) -> String {
    let text = text.replace('\'', "''");
    match server {
        Server::Postgres => format!("'{text}'"),
        Server::MariaDb => format!("'{}'", text.replace('\\', "\\\\")),
    }
}

/// Null this often in a hundred, else what `value` makes.
pub fn or_null(random: &mut Random, percent: u64, value: impl FnOnce(&mut Random) -> String) -> String {
    if random.chance(percent) { "null".to_owned() } else { value(random) }
}

/// An instant of 2024 or later, in whole microseconds, without zone: `2024-05-01 12:00:00.000001`.
pub fn instant(random: &mut Random) -> String {
    let (month, day) = (1 + random.below(12), 1 + random.below(28));
    let (hour, minute, second) = (random.below(24), random.below(60), random.below(60));
    format!("{}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{:06}", 2024 + random.below(2), random.below(1_000_000))
}

/// A day.
pub fn day(random: &mut Random) -> String {
    format!("{}-{:02}-{:02}", 1950 + random.below(80), 1 + random.below(12), 1 + random.below(28))
}

/// Hundredths as a decimal text.
pub fn cents(random: &mut Random, bound: u64) -> String {
    let value = random.below(bound);
    let sign = if random.chance(10) { "-" } else { "" };
    format!("{sign}{}.{:02}", value / 100, value % 100)
}
