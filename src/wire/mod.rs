//! The only module that knows protobuf: messages to commands, state to messages, rejections to
//! statuses.

/// What `proto/countersign/v1` compiles to.
#[allow(missing_docs, clippy::all)] // The comments stand in the protos.
#[allow(rust_2018_idioms)]
pub mod proto {
    tonic::include_proto!("countersign.v1");

    /// The compiled descriptors, for reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/countersign.v1.bin"));
}
