//! `countersign diff`: a version as a unified diff.

use clap::Args;

use super::failure::Failure;
use super::output::{Answer, visible};
use super::speaker::{Global, Speaker, Write};
use super::text::Fence;
use super::{json as form, reading};
use crate::client::proto::DiffRequest;
use crate::protocol::name::Subject;

/// Shows a version as a unified diff, against its base or an earlier version.
#[derive(Args, Debug)]
pub struct Diff {
    /// parser@2 against its base, or parser@1..2: version 2 against version 1, where you read that one
    #[arg(value_name = "REF[..N]")]
    range: String,
    /// Only what changed since the last version before it that you were shown
    #[arg(long)]
    since_read: bool,
    /// What merging it would change on its target now
    #[arg(long, conflicts_with = "since_read")]
    on_target: bool,
    #[command(flatten)]
    write: Write,
}

impl Diff {
    pub(super) async fn run(self, global: &Global) -> Result<Answer, Failure> {
        let (subject, from) = range(&self.range)?;
        if (self.since_read || self.on_target) && from != 0 {
            return Err(Failure::usage(format!(
                "{:?} says what to compare with already: give the version alone, or leave --since-read and --on-target out",
                visible(&self.range)
            )));
        }
        let speaker = Speaker::connect(global).await?;
        let request = DiffRequest {
            request_id: self.write.id(),
            subject,
            from,
            since_read: self.since_read,
            on_target: self.on_target,
        };
        let diff = speaker.client.diff(request).await?;
        // The diff was a reading already; the record says whether it is still the current version.
        let shown = reading::show(&speaker, &diff.reference, String::new()).await?;
        let version = shown.version.clone().unwrap_or_default();

        let fence = Fence::fresh()?;
        let mut text = reading::head(&version, &fence);
        let from = diff.from;
        let against = match (diff.target.as_str(), from) {
            ("", 0) => "its base".to_owned(),
            ("", from) => format!("version {from}"),
            (target, _) => visible(target),
        };
        if self.on_target && diff.target.is_empty() {
            text.push_str("It doesn't merge with a target, so this is against its base.\n");
        }
        if self.since_read && from == 0 {
            text.push_str("You were shown no version before it, so this is all of it.\n");
        }
        text.push_str(&fence.around(&format!("diff against {against}"), &diff.text));
        if diff.truncated {
            text.push_str(&format!(
                "The diff is longer than what is shown. All of it: countersign fetch {} -o DIR\n",
                version.reference
            ));
        }
        let mut answer = Answer::new(form::compared(form::shown(&shown), &diff), text);
        if version.current {
            reading::keep_told(&speaker, &version.proposal, version.version, &mut answer).await;
        }
        Ok(answer)
    }
}

/// The version, and the number of the earlier one; 0 for its base.
fn range(text: &str) -> Result<(String, u32), Failure> {
    let Some((earlier, version)) = text.rsplit_once("..") else { return Ok((text.to_owned(), 0)) };
    let wrong = || {
        Failure::usage(format!("{text:?} is not a range of versions: give NAME@N..M, such as parser@1..2"))
    };
    let earlier: Subject = earlier.parse().map_err(|_| wrong())?;
    let (Some(from), None) = (earlier.version, &earlier.digest) else { return Err(wrong()) };
    let version: Subject = format!("{}@{version}", earlier.proposal).parse().map_err(|_| wrong())?;
    if version.version.is_none_or(|version| version <= from) {
        return Err(wrong());
    }
    Ok((version.to_string(), from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_names_the_version_and_the_earlier_one() {
        let parsed = |text: &str| range(text).ok();
        assert_eq!(parsed("parser"), Some(("parser".to_owned(), 0)));
        assert_eq!(parsed("parser@2:41d0c9aa1e53"), Some(("parser@2:41d0c9aa1e53".to_owned(), 0)));
        assert_eq!(parsed("parser@1..3"), Some(("parser@3".to_owned(), 1)));
        assert_eq!(parsed("parser@1..3:41d0c9aa1e53"), Some(("parser@3:41d0c9aa1e53".to_owned(), 1)));
        for wrong in
            ["parser..2", "parser@2..1", "parser@2..2", "parser@1..x", "parser@1:41d0c9aa1e53..2", ".."]
        {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
