//! `countersign say` and `countersign verdict`: what is said in the room, and what came of a claim.

use clap::{Args, ValueEnum};

use super::evidence::Ran;
use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write};
use super::text::TextFile;
use super::{json as form, words};
use crate::client::proto::{self, Evidence, JudgeClaimRequest, SayRequest, SayResponse};

/// Says something in the room; whoever it mentions as @NAME owes an answer.
#[derive(Args, Debug)]
pub struct Say {
    /// What is said; @NAME mentions a member, @all everybody, and nothing between backticks does
    text: Option<String>,
    #[command(flatten)]
    text_file: TextFile,
    /// A member that is mentioned beside those of the text; may be given several times
    #[arg(long, value_name = "MEMBER")]
    to: Vec<String>,
    /// The message that it answers: m1
    #[arg(long, value_name = "mN")]
    reply: Option<String>,
    /// What about: a proposal, a version, an objection, a circle, a phase, a message or an escalation
    #[arg(long, value_name = "SUBJECT")]
    about: Option<String>,
    /// It is a claim that others may check
    #[arg(long)]
    claim: bool,
    /// Where: PATH, PATH:LINE or PATH:FIRST-LAST; may be given several times
    #[arg(long, value_name = "PLACE", requires = "claim")]
    at: Vec<String>,
    #[command(flatten)]
    ran: Ran,
    #[command(flatten)]
    write: Write,
}

impl Say {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let text = self.text_file.or(self.text, "TEXT", "text")?;
        let ran = self.ran.read()?;
        if !self.claim && !ran.is_empty() {
            return Err(Failure::usage("--ran is evidence of a claim: give --claim, too"));
        }
        let speaker = Speaker::connect(global).await?;
        let request = SayRequest {
            request_id: self.write.id(),
            text: text.clone(),
            to: self.to,
            about: self.about.unwrap_or_default(),
            reply: self.reply.unwrap_or_default(),
            claim: self.claim.then_some(Evidence { at: self.at, ran }),
        };
        let said = speaker.client.say(request).await?;
        let stored = [("text".to_owned(), text.as_str())];
        let told = format!(
            "{} stands\n{}{}{}{}",
            visible(&said.message),
            words::stored(&stored),
            ended(&said),
            words::woke(&said.woke, words::now()),
            words::called_out(&said.called_out)
        );
        Ok(Answer::new(form::said(&said, Some(words::stored_json(&stored))), told))
    }
}

/// That a chain of mentions is over, where it is.
fn ended(said: &SayResponse) -> String {
    if !said.ended {
        return String::new();
    }
    let person = match said.escalation.as_str() {
        "" => "a person was told before".to_owned(),
        id => format!("a person is told, by {}", visible(id)),
    };
    format!(
        "the chain of mentions from {} is longer than it may be: nobody owes an answer, and {person}\n",
        visible(&said.root)
    )
}

/// What a check of a claim came to.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Ruling {
    /// It holds
    Supported,
    /// It doesn't
    Refuted,
    /// It can't be checked
    Unverifiable,
}

/// Gives a verdict on another's claim.
#[derive(Args, Debug)]
pub struct Verdict {
    /// The claim's id: m1
    #[arg(value_name = "mN")]
    message: String,
    /// The verdict
    #[arg(value_name = "VERDICT")]
    verdict: Ruling,
    /// How it was checked
    text: Option<String>,
    #[command(flatten)]
    text_file: TextFile,
    /// A place that was looked at: PATH, PATH:LINE or PATH:FIRST-LAST; may be given several times
    #[arg(long, value_name = "PLACE")]
    at: Vec<String>,
    #[command(flatten)]
    ran: Ran,
    #[command(flatten)]
    write: Write,
}

impl Verdict {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let text = self.text_file.or(self.text, "TEXT", "text")?;
        let ran = self.ran.read()?;
        let speaker = Speaker::connect(global).await?;
        let verdict = match self.verdict {
            Ruling::Supported => proto::Verdict::Supported,
            Ruling::Refuted => proto::Verdict::Refuted,
            Ruling::Unverifiable => proto::Verdict::Unverifiable,
        };
        let request = JudgeClaimRequest {
            request_id: self.write.id(),
            message: self.message,
            verdict: verdict.into(),
            text: text.clone(),
            evidence: Some(Evidence { at: self.at, ran }),
        };
        let judged = speaker.client.judge_claim(request).await?;
        let stored = [("text".to_owned(), text.as_str())];
        let verdict = form::verdict(judged.verdict());
        let told = format!(
            "{} is {verdict}, says {}\n{}{}{}",
            visible(&judged.message),
            speaker.member,
            words::stored(&stored),
            words::woke(&judged.woke, words::now()),
            words::called_out(&judged.called_out)
        );
        Ok(Answer::new(form::judged(&judged, Some(words::stored_json(&stored))), told))
    }
}
