//! What happens in a run, one thing after the other: with nothing left to chance, so that a list of
//! steps can be repeated, and made shorter.

use countersign::protocol::name::Actor;
use countersign::protocol::time::Span;
use countersign::protocol::{Command, Obligation};

use super::faults::Mishap;

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Step {
    /// Time passes; with a server that stands still meanwhile, where it is away.
    Pass { span: Span, away: bool, mishap: Mishap },
    /// Some ask for something, all before the first is answered.
    Said { said: Vec<(Actor, Command)>, back: Span, mishap: Mishap },
    /// A member does what it owes, as it is told to.
    Obeyed { owed: Box<Obligation>, command: Command, mishap: Mishap },
    /// An accepted request is made once more.
    Repeated { which: usize, otherwise: bool },
    /// The server ends, in good order or not, and another begins.
    Restarted(Comeback),
}

/// How a server comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comeback {
    /// Whether it ended by itself.
    pub in_order: bool,
    /// How far the machine's clock stands from where it stood, in seconds; it may be set back.
    pub jump: i64,
}

/// The shortest list of steps that still fails, as far as leaving out stretches of it leads (delta
/// debugging, Zeller 1999): halves first, then smaller ones, down to single steps. `fails` is asked
/// `most` times at most.
pub fn shortest<T: Clone>(all: &[T], most: usize, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut kept = all.to_vec();
    let mut asked = 0;
    let mut stretch = kept.len().div_ceil(2);
    while stretch > 0 {
        let mut shorter = false;
        // From the end: what comes late depends on what comes early.
        let mut end = kept.len();
        while end > 0 && asked < most {
            let start = end.saturating_sub(stretch);
            let without: Vec<T> = kept[..start].iter().chain(&kept[end..]).cloned().collect();
            asked += 1;
            if fails(&without) {
                kept = without;
                shorter = true;
            }
            end = start;
        }
        stretch = match stretch {
            1 if shorter && asked < most => 1,
            1 => 0,
            longer => longer.div_ceil(2),
        };
    }
    kept
}
