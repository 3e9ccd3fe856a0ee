//! The engine behind the core's [`Judge`](crate::protocol::rule::Judge): rules from files, their
//! conditions in CEL.
//!
//! The line: the core makes the view and asks; nothing here sees the state, a clock or the network,
//! and files are read only while a judge is made. The same rule on the same view gets the same
//! judgement, on every machine.
//!
//! # What a condition may cost
//!
//! Whoever writes a team's rules is trusted to mean well, and not to be careful. So a condition is
//! bounded by what it is made of, not by watching it run away:
//!
//! - `bounds` looks at the text before the parser does: its size, its letters, how deep its brackets
//!   stand. The parser recurses, so it runs on a thread with a stack for the worst of that.
//! - `compile` takes the parsed tree into one of its own: documented words, a closed list of functions,
//!   each operand of the kind that its place takes, a bool at the top. Unknown names, mixed kinds and
//!   patterns that come from the view are refused here, with line and column, and never wait in a
//!   branch that is rarely taken. There is no `+` on texts or lists and no `map`, so that nothing
//!   grows; quantifiers stand two deep at most, and parts few enough and flat enough to walk on a
//!   small stack.
//! - `evaluate` walks that tree on the caller's thread over the view as it is, copies nothing, and
//!   counts its steps.
//!
//! The interpreter that comes with CEL's parser isn't used. It has no budget, looks names up as it
//! goes, lets `||` and `&&` swallow what went wrong on their other side, and wants the whole view as
//! values of its own, which costs more than the rule. The typing above is needed around it in any
//! case, and once that is done what is left to evaluate is a page.
//!
//! What differs from CEL: the first fault ends an evaluation, and denies. `rules/README.md` has the
//! language as a writer of rules needs it.

pub mod bounds;
mod compile;
mod engine;
mod evaluate;
mod example;
mod load;
pub mod own;
#[cfg(test)]
mod readme;
mod sample;
mod words;

pub use engine::{CelJudge, ExampleOutcome};
pub use example::{Example, Expected};
pub use load::LoadError;
pub use own::CelRulebook;
