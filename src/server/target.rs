//! What git says of open work against where its targets stand now, brought to the core. Level-triggered: whatever
//! git says otherwise than what the log has is reported, so that nothing has to be noticed in time.

use std::time::Duration;

use super::answer::Failure;
use super::call::NEVER_CLOSED;
use super::shared::Shared;
use crate::artifact::repository::Repository;
use crate::artifact::target::Answers;
use crate::coordinator::TeamHandle;
use crate::door::is_nothing;
use crate::protocol::name::{Actor, CircleName, Digest, ProposalName};
use crate::protocol::review::{Circle, Comparison};
use crate::protocol::{Command, Team};

/// How often, and after what pause each, it is looked whether a ref has moved that may.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

/// What is compared: everything that is open, or one circle of it.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    All,
    Circle(CircleName),
    Around(ProposalName),
}

impl Scope {
    fn comparisons(&self, team: &Team) -> Vec<Comparison> {
        let Some(adopted) = team.adopted() else { return Vec::new() };
        let review = team.review();
        let of = |circle: &Circle| review.comparisons(&adopted.charter, circle);
        match self {
            Self::All => review.circles().flat_map(of).collect(),
            Self::Circle(name) => review.circle(name).map(of).unwrap_or_default(),
            Self::Around(name) => {
                let circle = review.proposal(name).and_then(|proposal| review.circle(&proposal.circle));
                circle.map(of).unwrap_or_default()
            }
        }
    }
}

/// Asks git, and has the core told what it doesn't know. What git can't say of some of it keeps nobody from the rest.
///
/// # Errors
/// The first of what it couldn't say; each is logged.
pub(super) async fn compare(shared: &Shared, team: &TeamHandle, scope: &Scope) -> Result<(), Failure> {
    let Some(artifacts) = shared.artifacts(team.name()) else { return Ok(()) };
    let Ok(repository) = artifacts.repository() else { return Ok(()) };
    // One after the other: what was asked first is told first.
    let mut known = repository.compared().lock().await;
    let asked = team.peek(|team| scope.comparisons(team));
    let mut failed = None;
    for comparison in asked {
        let about = subject(&comparison);
        if let Err(failure) = compare_one(shared, team, repository, &mut known, comparison).await {
            tracing::warn!(team = %team.name(), about, ?failure, "git can't say how work stands to its target");
            failed.get_or_insert(failure);
        }
    }
    failed.map_or(Ok(()), Err)
}

async fn compare_one(
    shared: &Shared,
    team: &TeamHandle,
    repository: &Repository,
    known: &mut Answers,
    comparison: Comparison,
) -> Result<(), Failure> {
    let tip = {
        let _turn = shared.looks.acquire().await.expect(NEVER_CLOSED);
        repository.tip(&comparison.target).await?
    };
    let reports = match known.get(&comparison, tip.as_ref()) {
        Some(reports) => reports,
        None => {
            let _turn = shared.looks.acquire().await.expect(NEVER_CLOSED);
            let reports = repository.compare(&comparison, tip.as_ref()).await?;
            known.keep(comparison, tip, reports.clone());
            reports
        }
    };
    for report in reports {
        if team.peek(|team| team.review().is_news(&report)) {
            team.submit(Actor::Server, Command::ReportTarget(Box::new(report)), None).await?;
        }
    }
    Ok(())
}

/// What is compared, for a log.
fn subject(comparison: &Comparison) -> String {
    let versions: Vec<String> = comparison.versions.iter().map(|one| one.reference.to_string()).collect();
    format!("{} and {}", versions.join(", "), comparison.target)
}

/// The same where nobody waits for it: what can't be asked now is asked again before anybody confirms.
pub(super) async fn catch_up(shared: &Shared, team: &TeamHandle, scope: &Scope) {
    // It is logged.
    let _ = compare(shared, team, scope).await;
}

/// Once refs have moved that were let past the door: a hook is asked before git moves them. Each is told with where
/// it is to be; zeros for nowhere.
pub(super) async fn once_moved(shared: &Shared, team: &TeamHandle, moves: &[(String, String)]) {
    let Some(artifacts) = shared.artifacts(team.name()) else { return };
    let Ok(repository) = artifacts.repository() else { return };
    let mut left: Vec<&(String, String)> = moves.iter().collect();
    for _ in 0..LOOKS {
        // One that isn't there yet says that git isn't done. Of one that can't be looked at nothing is known.
        while let Some((name, to)) = left.last() {
            match repository.tip(name).await {
                Ok(at) if !is_at(at.as_ref(), to) => break,
                _ => left.pop(),
            };
        }
        if left.is_empty() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    catch_up(shared, team, &Scope::All).await;
}

fn is_at(at: Option<&Digest>, to: &str) -> bool {
    at.map_or_else(|| is_nothing(to), |at| at.as_str() == to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_where_a_ref_that_is_gone_belongs() {
        let zeros = "0".repeat(40);
        let one = "1".repeat(40).parse::<Digest>().unwrap();
        for (at, to, there) in [
            (None, zeros.as_str(), true),
            (None, one.as_str(), false),
            (Some(&one), zeros.as_str(), false),
            (Some(&one), one.as_str(), true),
        ] {
            assert_eq!(is_at(at, to), there, "{at:?} {to}");
        }
    }
}
