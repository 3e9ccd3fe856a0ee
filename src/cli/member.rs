//! `countersign member token`: who may speak for a member.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::clone::{CloneFolder, Place};
use super::failure::Failure;
use super::operator::Operator;
use super::output::Answer;
use super::place;
use super::serve::DEFAULT_ADDR;
use super::speaker::{Global, need_home};
use super::words;
use crate::protocol::name::MemberName;

/// Members of a team.
#[derive(Args, Debug)]
pub struct Member {
    #[command(subcommand)]
    command: MemberCommand,
}

#[derive(Subcommand, Debug)]
enum MemberCommand {
    /// Issues a member's token afresh; the tokens before it end
    #[command(after_help = "Examples:
  countersign member token app                      a fresh token in the home's tokens/app
  countersign member token app --into ~/code/app    and in that clone, for the agent that works there
  countersign member token app --keep --into DIR    a further one: those before it go on
  countersign member token app --revoke             ends them all
  countersign member token ci                       read-only, for `check --commit` (without a member ci)

The token itself is never printed: it stands in files that their owner alone may read.

Refused with UNKNOWN_TEAM, TEAM_NEEDED, UNKNOWN_MEMBER, NOT_A_CLONE.")]
    Token(TokenArgs),
}

#[derive(Args, Debug)]
struct TokenArgs {
    /// The member
    member: MemberName,
    /// The tokens before it go on
    #[arg(long)]
    keep: bool,
    /// End every token of the member, and issue none
    #[arg(long, conflicts_with_all = ["keep", "into"])]
    revoke: bool,
    /// Leave it in this clone's git folder too, with the server's address and nothing else
    #[arg(long, value_name = "CLONE")]
    into: Option<PathBuf>,
}

impl Member {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let MemberCommand::Token(args) = self.command;
        // Before anything is issued: the tokens before it end with that.
        let clone = args.into.as_ref().map(clone_at).transpose()?;
        let operator = Operator::of(need_home()?, global).await?;
        if args.revoke {
            return revoke(&operator, global, &args.member).await;
        }
        let issued = operator.issue_token(global.team.as_ref(), &args.member, args.keep).await?;
        let home = operator.home();
        // A token that goes on keeps its place in the home; one that ended gives it up.
        let kept =
            args.keep && clone.is_some() && home.token_file(Some(&issued.team), &issued.member).exists();
        let file = if kept {
            None
        } else {
            Some(home.write_token(Some(&issued.team), &issued.member, &issued.token)?)
        };

        let mut text = format!("{} of {} has a fresh token", issued.member, issued.team);
        text.push_str(if args.keep { "; those before it go on\n" } else { "; those before it have ended\n" });
        if let Some(file) = &file {
            text.push_str(&format!("  {}\n", file.display()));
        }
        let left = match &clone {
            Some(clone) => {
                let addr = home.read_server().map(|server| server.addr.to_string());
                let addr = global.addr.clone().or(addr).unwrap_or_else(|| DEFAULT_ADDR.to_owned());
                let place = Place { addr, team: issued.team.clone() };
                place::leave(clone, &issued.member, &issued.token, &place)?;
                let left = clone.token_file(&issued.member);
                text.push_str(&format!("  {}, for the server at {}\n", left.display(), place.addr));
                json!({ "token": left.display().to_string(), "addr": place.addr })
            }
            None => Value::Null,
        };
        Ok(Answer::new(
            json!({
                "member": issued.member.as_str(),
                "team": issued.team.as_str(),
                "kept": args.keep,
                "token_file": file.map(|file| file.display().to_string()),
                "into": left,
            }),
            text,
        ))
    }
}

async fn revoke(operator: &Operator, global: &Global, member: &MemberName) -> Result<Answer, Failure> {
    let revoked = operator.revoke_tokens(global.team.as_ref(), member).await?;
    // What stands in its file speaks for nobody any longer.
    let file = operator.home().token_file(global.team.as_ref(), member);
    if let Err(why) = fs::remove_file(&file)
        && why.kind() != std::io::ErrorKind::NotFound
    {
        return Err(Failure::io(file.display(), &why));
    }
    let text = format!(
        "{} of {member} ended\nA fresh one: countersign member token {member}\n",
        words::counted(revoked, "token")
    );
    Ok(Answer::new(json!({ "member": member.as_str(), "revoked": revoked }), text))
}

fn clone_at(folder: &PathBuf) -> Result<CloneFolder, Failure> {
    CloneFolder::above(&std::path::absolute(folder).unwrap_or_else(|_| folder.clone())).ok_or_else(|| {
        Failure::refused(
            "NOT_A_CLONE",
            format!("{} is in no git clone", folder.display()),
            "name a clone: git clone URL DIR",
        )
    })
}
