//! artifact
