//! Time as the core knows it: an input, never a clock.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::name::{Malformed, shown};

/// A moment, in microseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A length of time, in microseconds; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(pub i64);

impl Span {
    /// No time at all; as a deadline, none.
    pub const ZERO: Self = Self(0);

    /// That many seconds.
    pub const fn seconds(count: i64) -> Self {
        Self(count * 1_000_000)
    }

    /// Whether it is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub for Time {
    type Output = Span;
    /// How long ago `earlier` was; zero where it was not.
    fn sub(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0).max(0))
    }
}

/// RFC 3339 in UTC.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(stamp) => write!(f, "{stamp}"),
            Err(_) => write!(f, "{} µs", self.0),
        }
    }
}

impl FromStr for Time {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        text.parse::<jiff::Timestamp>().map(|stamp| Self(stamp.as_microsecond())).map_err(|_| Malformed {
            expected: "a time",
            given: shown(text, 40),
            form: "RFC 3339 in UTC, such as 2026-01-31T12:00:00Z",
        })
    }
}

/// The largest unit that says it exactly: `90s`, `20m`, `4h`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(i64, &str); 4] =
            [(3_600_000_000, "h"), (60_000_000, "m"), (1_000_000, "s"), (1_000, "ms")];
        for (length, unit) in UNITS {
            if self.0 != 0 && self.0 % length == 0 {
                return write!(f, "{}{unit}", self.0 / length);
            }
        }
        if self.0 == 0 { f.write_str("0s") } else { write!(f, "{}us", self.0) }
    }
}

impl FromStr for Span {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let unit = match &text[digits..] {
            "ms" => 1_000,
            "s" => 1_000_000,
            "m" => 60_000_000,
            "h" => 3_600_000_000,
            _ => 0_i64,
        };
        let span =
            text[..digits].parse::<i64>().ok().filter(|_| unit > 0).and_then(|count| count.checked_mul(unit));
        span.map(Self).ok_or_else(|| Malformed {
            expected: "a duration",
            given: shown(text, 40),
            form: "a whole number and ms, s, m or h, such as 90s",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_back_as_they_are_written() {
        for text in ["0s", "90s", "20m", "4h", "1500ms"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        for bad in ["", "90", "s", "-1s", "1.5h", "1d", "99999999999999999999s", "9223372036854775807h"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }

    #[test]
    fn times_read_back_as_they_are_written() {
        let text = "2026-01-31T12:00:00.000001Z";
        assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
    }
}
