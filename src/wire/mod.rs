//! The only module that knows protobuf: messages to commands, state to messages, rejections to
//! statuses and back; and the JSON that messages are told in.
//!
//! Nothing here decides: an argument that is not of its form is refused by name, everything else goes
//! to the core as it came.

pub mod batch;
pub mod command;
pub mod escalation;
pub mod json;
pub mod listen;
pub mod minutes;
pub mod request;
pub mod requirement;
pub mod room;
pub mod status;
pub mod status_code;
pub mod version;

pub use request::{Arguments, Write, request_id};
pub use status_code::{DOMAIN, reason_of, rejection_of};

use crate::protocol::time::Time;

/// What `proto/countersign/v1` compiles to.
#[allow(missing_docs, clippy::all)] // The comments stand in the protos.
#[allow(rust_2018_idioms)]
pub mod proto {
    tonic::include_proto!("countersign.v1");

    /// The compiled descriptors, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/countersign.v1.bin"));
}

/// A time as protobuf has it.
pub fn timestamp(at: Time) -> prost_types::Timestamp {
    const MICROS: i64 = 1_000_000;
    let nanos = i32::try_from(at.0.rem_euclid(MICROS) * 1_000).expect("below a second");
    prost_types::Timestamp { seconds: at.0.div_euclid(MICROS), nanos }
}

/// A time of a message.
pub fn time_of(stamp: &prost_types::Timestamp) -> Time {
    Time(stamp.seconds.saturating_mul(1_000_000).saturating_add(i64::from(stamp.nanos) / 1_000))
}

/// Names, references and ids as texts.
fn texts<T: ToString>(items: impl IntoIterator<Item = T>) -> Vec<String> {
    items.into_iter().map(|item| item.to_string()).collect()
}
