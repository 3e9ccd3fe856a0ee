//! The starter charter.
/// The commented charter that `serve` writes where there is none.
pub const STARTER: &str = "";
