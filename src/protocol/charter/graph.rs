//! The review graph.
/// The review graph.
pub struct Graph;
