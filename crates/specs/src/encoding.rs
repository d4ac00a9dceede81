//! How a value is written where the message does not say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a column's values are written in messages that carry no schema of their own.
///
/// Debezium's bare JSON does not say whether a number counts milli- or microseconds, or whether a text is digits, bytes or
/// just text; those columns declare it. Messages with a schema block need none of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// A number of milliseconds: since the epoch for timestamps; since midnight for a `long`, which then holds µs of the day.
    Millis,
    /// A number of microseconds, as `millis`.
    Micros,
    /// A number of nanoseconds, as `millis`; what is below a microsecond is cut towards the past.
    Nanos,
    /// ISO 8601 text; a `long` then holds µs of the day.
    Iso,
    /// A number as text (`decimal.handling.mode=string`).
    Text,
    /// A decimal as base64 of its unscaled big-endian integer (`decimal.handling.mode=precise`), the scale being the declared
    /// type's; an object of `scale` and `value` brings its own and may also go into a `string`.
    Unscaled,
    /// A 64-bit unsigned integer that was written as a signed one (`bigint.unsigned.handling.mode=long`), for `decimal(20,0)`.
    Unsigned,
    /// Bytes as base64 (`binary.handling.mode=bytes` or `base64`).
    Base64,
    /// Bytes as base64 of the URL alphabet (`binary.handling.mode=base64-url-safe`).
    Base64Url,
    /// Bytes as hexadecimal digits (`binary.handling.mode=hex`).
    Hex,
    /// A bit string as base64 of its bytes, lowest first (`io.debezium.data.Bits`); the column holds them highest first.
    Bits,
}
