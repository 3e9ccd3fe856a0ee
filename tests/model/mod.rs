//! An exhaustive model of the core: small worlds, in which everything is tried that anybody could try, in every
//! order, up to bounds; and in every state what the guarantees demand. The core is the real one, with the real
//! judge; what it says is compared with facts that are kept apart from it.
//!
//! In reading order: `worlds` has the charters and bounds; `world` what is tried in a state; `search` goes
//! through the states; `canon` says when two are the same; `facts` and `check` say what must hold; `told` reads
//! what obligations print.

mod canon;
mod check;
mod decided;
mod facts;
mod room;
pub mod search;
mod told;
mod world;
pub mod worlds;

#[allow(unused_imports)] // Named only where faults are planted.
pub use world::World;
