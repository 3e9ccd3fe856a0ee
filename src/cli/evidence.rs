//! Commands that were run, as evidence: `--ran CMD`, each with the `--output` and `--exit` that
//! follow it.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, error::ErrorKind, value_parser};

use super::failure::Failure;
use super::text::OutputFile;
use crate::client::proto;

/// The commands in their order, each with what belongs to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran(Vec<RanOne>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct RanOne {
    command: String,
    exit: Option<i32>,
    output: Option<OutputFile>,
}

impl Ran {
    /// With the outputs read from their files.
    pub fn read(&self) -> Result<Vec<proto::Run>, Failure> {
        let one = |ran: &RanOne| {
            let output = ran.output.as_ref().map(OutputFile::read).transpose()?;
            Ok(proto::Run { command: ran.command.clone(), exit: ran.exit, output })
        };
        self.0.iter().map(one).collect()
    }
}

impl Args for Ran {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new("ran")
                    .long("ran")
                    .value_name("CMD")
                    .action(ArgAction::Append)
                    .help("A command that was run; may be given several times"),
            )
            .arg(
                Arg::new("output")
                    .long("output")
                    .value_name("@FILE")
                    .action(ArgAction::Append)
                    .value_parser(value_parser!(OutputFile))
                    .help("What the --ran before it printed"),
            )
            .arg(
                Arg::new("exit")
                    .long("exit")
                    .value_name("N")
                    .action(ArgAction::Append)
                    .allow_negative_numbers(true)
                    .value_parser(value_parser!(i32))
                    .help("How the --ran before it exited"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Ran {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut ran: Vec<(usize, RanOne)> = placed::<String>(matches, "ran")
            .map(|(index, command)| (index, RanOne { command, exit: None, output: None }))
            .collect();
        for (index, output) in placed::<OutputFile>(matches, "output") {
            let one = before(&mut ran, index, "--output")?;
            once(one.output.replace(output).is_none(), "--output", &one.command)?;
        }
        for (index, exit) in placed::<i32>(matches, "exit") {
            let one = before(&mut ran, index, "--exit")?;
            once(one.exit.replace(exit).is_none(), "--exit", &one.command)?;
        }
        Ok(Self(ran.into_iter().map(|(_, one)| one).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The values of an argument with their places on the command line.
fn placed<'a, T: Clone + Send + Sync + 'static>(
    matches: &'a ArgMatches,
    id: &str,
) -> impl Iterator<Item = (usize, T)> + use<'a, T> {
    let indices = matches.indices_of(id).into_iter().flatten();
    indices.zip(matches.get_many::<T>(id).into_iter().flatten().cloned())
}

fn before<'a>(
    ran: &'a mut [(usize, RanOne)],
    index: usize,
    flag: &str,
) -> Result<&'a mut RanOne, clap::Error> {
    let one = ran.iter_mut().rev().find(|(ran, _)| *ran < index);
    one.map(|(_, one)| one).ok_or_else(|| {
        clap::Error::raw(
            ErrorKind::MissingRequiredArgument,
            format!("{flag} belongs to the --ran before it, and there is none\n"),
        )
    })
}

fn once(first: bool, flag: &str, command: &str) -> Result<(), clap::Error> {
    if first {
        return Ok(());
    }
    let twice = format!("{flag} is given twice for --ran {}\n", crate::protocol::rejection::quoted(command));
    Err(clap::Error::raw(ErrorKind::ArgumentConflict, twice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Vec<(String, Option<i32>, bool)>, String> {
        let command = Ran::augment_args(Command::new("x").no_binary_name(true));
        let matches = command.try_get_matches_from(args).map_err(|error| error.to_string())?;
        let ran = Ran::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        Ok(ran.0.into_iter().map(|one| (one.command, one.exit, one.output.is_some())).collect())
    }

    #[test]
    fn each_command_keeps_what_follows_it() {
        let ran =
            parse(&["--ran", "a", "--ran", "b", "--exit", "-1", "--output", "@o", "--ran=c", "--exit=0"]);
        let expected = [("a", None, false), ("b", Some(-1), true), ("c", Some(0), false)];
        assert_eq!(ran.unwrap(), expected.map(|(command, exit, output)| (command.to_owned(), exit, output)));
        assert_eq!(parse(&[]), Ok(Vec::new()));
    }

    #[test]
    fn what_belongs_to_nothing_or_stands_twice_is_refused() {
        assert!(parse(&["--output", "@o", "--ran", "a"]).unwrap_err().contains("there is none"));
        assert!(parse(&["--exit", "1"]).unwrap_err().contains("there is none"));
        assert!(
            parse(&["--ran", "a", "--exit", "1", "--exit", "2"]).unwrap_err().contains("twice for --ran a")
        );
        assert!(parse(&["--ran", "a", "--output", "o"]).unwrap_err().contains("@o"));
    }
}
