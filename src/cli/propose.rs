//! `countersign propose`: a version of a deliverable.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::failure::Failure;
use super::output::{Answer, visible};
use super::reading;
use super::speaker::{Global, Speaker, Write};
use super::text::{Given, TextFile};
use super::told::Told;
use super::{json as form, words};
use crate::client::proto::{ArtifactKind, GetCharterRequest, ProposeRequest};
use crate::client::{self, fresh_request_id};
use crate::protocol::name::ProposalName;

/// Offers a version: a commit of this clone, or the files below a folder.
#[derive(Args, Debug)]
pub struct Propose {
    /// The deliverable
    name: String,
    /// A commit of this clone; it is pushed for staging first
    #[arg(long, value_name = "REV", conflicts_with = "path", required_unless_present = "path")]
    commit: Option<String>,
    /// A folder; its files become a bundle
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
    /// What there is to say about it
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    #[command(flatten)]
    text_file: TextFile,
    /// What you answer to an open objection, or @FILE with it; every one still open needs its answer
    #[arg(long = "answer", value_name = "oN=TEXT", value_parser = answer)]
    answers: Vec<(String, Given)>,
    /// The version that it follows; what this clone was last told, where it is left out
    #[arg(long, value_name = "N")]
    after: Option<u32>,
    /// Push the commit to this remote of the clone; by default to where the server says the repository is
    #[arg(long, value_name = "NAME", requires = "commit")]
    remote: Option<String>,
    #[command(flatten)]
    write: Write,
}

fn answer(text: &str) -> Result<(String, Given), String> {
    let (id, text) =
        text.split_once('=').ok_or("give the objection's id and the answer, as o1=TEXT or o1=@FILE")?;
    Ok((id.to_owned(), text.parse()?))
}

impl Propose {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let summary = self.text_file.or(self.summary, "--summary", "summary")?;
        let mut answers = BTreeMap::new();
        for (id, text) in self.answers {
            if answers.contains_key(&id) {
                return Err(Failure::usage(format!("--answer is given twice for {}", visible(&id))));
            }
            answers.insert(id, text.read("answer")?);
        }
        let proposal: ProposalName =
            self.name.parse().map_err(|wrong| Failure::malformed("proposal", wrong))?;

        let speaker = Speaker::connect(global).await?;
        let request_id = Some(self.write.id()).filter(|id| !id.is_empty()).unwrap_or_else(fresh_request_id);
        let told = speaker.told().await?;
        let known =
            |told: &Told| told.asked(&proposal, &request_id).unwrap_or_else(|| told.version(&proposal));
        let after = self.after.unwrap_or_else(|| told.as_ref().map_or(0, known));
        if let Some(told) = &told {
            told.asks(&proposal, &request_id, after)
                .map_err(|why| Failure::io("what this clone asks", &why))?;
        }
        let mut staged = None;
        let (kind, digest) = match (&self.commit, &self.path) {
            (Some(revision), _) => {
                let clone = speaker.clone_folder()?;
                let commit = clone.commit(revision).await?;
                let charter = speaker.client.get_charter(GetCharterRequest::default()).await?;
                // A team without a repository has nowhere to stage, and the server says so.
                if !charter.repository.is_empty() {
                    let at = clone.stage_at(self.remote.as_deref(), &charter.repository).await?;
                    clone.stage(&commit, &at).await?;
                    staged = Some((clone, commit.clone(), at));
                }
                (ArtifactKind::Commit, commit.to_string())
            }
            (None, Some(folder)) => {
                (ArtifactKind::Bundle, speaker.client.upload_bundle(folder).await?.digest)
            }
            (None, None) => return Err(Failure::usage("give --commit REV or --path DIR")),
        };
        let request = ProposeRequest {
            request_id,
            proposal: proposal.to_string(),
            kind: kind.into(),
            digest,
            summary: summary.clone(),
            answers: answers.clone().into_iter().collect(),
            after,
        };
        let mut proposed = speaker.client.propose(request.clone()).await;
        // A push that finds a commit staged does nothing, and what was staged long ago is let go: perhaps since then.
        if let (Err(client::Failure::Refused(refused)), Some((clone, commit, at))) = (&proposed, &staged)
            && refused.violations.iter().any(|unmet| unmet.code == "NOT_STAGED")
        {
            clone.stage(commit, at).await?;
            proposed = speaker.client.propose(request).await;
        }
        let proposed = proposed?;

        let mut stored = vec![("summary".to_owned(), summary.as_str())];
        stored.extend(answers.iter().map(|(id, text)| (format!("answer to {id}"), text.as_str())));
        let mut text = format!("{}\n", visible(&proposed.reference));
        text.push_str(&words::stored(&stored));
        text.push_str(&words::woke(&proposed.woke, words::now()));
        text.push_str(&words::called_out(&proposed.called_out));
        if let Some(target) = proposed.target.as_ref().filter(|target| reading::is_in_the_way(target)) {
            text.push_str(&reading::target(Some(target)));
            let name = visible(&proposed.proposal);
            text.push_str(&format!("Another version is owed: countersign explain {name}\n"));
        }
        if !proposed.escalated.is_empty() {
            let opened = visible(&proposed.escalated.join(", "));
            text.push_str(&format!(
                "a review edge has no eligible reviewer, so a person is asked ({opened}): countersign escalations list\n"
            ));
        }
        let json = json!({
            "ref": proposed.reference,
            "proposal": proposed.proposal,
            "version": proposed.version,
            "digest": proposed.digest,
            "woke": form::woke(&proposed.woke),
            "called_out": proposed.called_out,
            "escalated": proposed.escalated,
            "target": form::target(proposed.target.as_ref()),
            "stored": words::stored_json(&stored),
            "sequence": proposed.sequence,
        });
        let mut answer = Answer::new(json, text);
        reading::keep_told(&speaker, &proposed.proposal, proposed.version, &mut answer).await;
        Ok(answer)
    }
}
