//! `countersign completions`, `countersign man` and the reference page: made from the one definition
//! of the command line.

use std::path::PathBuf;
use std::{fs, io};

use clap::{Args, Command};
use clap_complete::Shell;
use serde_json::json;

use super::failure::Failure;
use super::output::Answer;

/// Prints a completion script for a shell.
#[derive(Args, Debug)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> Result<Answer, Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), "countersign", &mut script);
        let script = String::from_utf8_lossy(&script);
        Ok(Answer::new(json!({ "script": script }), script))
    }
}

/// Prints the manual page, or writes a page for every command.
#[derive(Args, Debug)]
pub struct Man {
    /// The folder for the pages; without it, the main page is printed
    #[arg(value_name = "DIR")]
    into: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(self) -> Result<Answer, Failure> {
        let mut command = super::command();
        command.build();
        let Some(folder) = self.into else {
            let page = page(command).map_err(|why| Failure::io("the page", &why))?;
            let page = String::from_utf8_lossy(&page);
            return Ok(Answer::new(json!({ "page": page }), page));
        };
        fs::create_dir_all(&folder).map_err(|why| Failure::io(folder.display(), &why))?;
        let mut written = Vec::new();
        for (name, command) in all("", &command) {
            let file = folder.join(format!("{}.1", name.replace(' ', "-")));
            let page = page(command.clone().name(name.replace(' ', "-")));
            page.and_then(|page| fs::write(&file, page)).map_err(|why| Failure::io(file.display(), &why))?;
            written.push(file.display().to_string());
        }
        let text = format!("{} pages in {}\n", written.len(), folder.display());
        Ok(Answer::new(json!({ "pages": written }), text))
    }
}

fn page(command: Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(page)
}

/// Every command that is shown, with its whole name, in the order of the help.
fn all(above: &str, command: &Command) -> Vec<(String, Command)> {
    let name = if above.is_empty() {
        command.get_name().to_owned()
    } else {
        format!("{above} {}", command.get_name())
    };
    let mut out = vec![(name.clone(), command.clone())];
    for below in command.get_subcommands() {
        if !below.is_hide_set() && below.get_name() != "help" {
            out.extend(all(&name, below));
        }
    }
    out
}

/// The reference page of all commands, as docs/reference/commands.md holds it.
pub fn reference() -> String {
    let mut root = super::command().term_width(100);
    root.build();
    let mut out = String::from("# Commands\n\n");
    out.push_str("Every command also takes the global options that the first one shows. Exit codes: 0 done, 1 refused, 2 usage, 3 server\nnot reachable, 4 timed out, 5 not authenticated, 6 superseded by another listener, 7 outcome unknown.\n");
    for (name, command) in all("", &root) {
        let is_root = name == "countersign";
        let mut command = command.bin_name(name.clone()).term_width(100);
        if !is_root {
            // The global ones stand at the first command; repeated, they would hide what is a command's own.
            for global in ["json", "member", "team", "addr", "ca"] {
                command = command.mut_arg(global, |arg| arg.hide(true));
            }
        }
        out.push_str(&format!(
            "\n## {name}\n\n```text\n{}\n```\n",
            command.render_long_help().to_string().trim_end()
        ));
    }
    out.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}
