//! What git says of open work against where its targets stand now, brought to the core. Level-triggered: whatever
//! git says otherwise than what the log has is reported, so that nothing has to be noticed in time.

use std::time::Duration;

use super::answer::Failure;
use super::call::NEVER_CLOSED;
use super::shared::Shared;
use crate::coordinator::TeamHandle;
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

/// Asks git, and has the core told what it doesn't know.
pub(super) async fn compare(shared: &Shared, team: &TeamHandle, scope: &Scope) -> Result<(), Failure> {
    let Some(artifacts) = shared.artifacts(team.name()) else { return Ok(()) };
    let Ok(repository) = artifacts.repository() else { return Ok(()) };
    // One after the other: what was asked first is told first.
    let mut known = repository.compared().lock().await;
    let asked = team.peek(|team| scope.comparisons(team));
    for comparison in asked {
        let tip = {
            let _turn = shared.looks.acquire().await.expect(NEVER_CLOSED);
            repository.target(&comparison.target).await?
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
    }
    Ok(())
}

/// The same where nobody waits for it: what can't be asked now is asked again before anybody confirms.
pub(super) async fn catch_up(shared: &Shared, team: &TeamHandle, scope: &Scope) {
    if let Err(failure) = compare(shared, team, scope).await {
        let status = failure.into_status(shared.now(), 0);
        tracing::warn!(team = %team.name(), %status, "git can't say how open work stands to its target");
    }
}

/// Once a ref has moved that was let past the door: a hook is asked before git moves it.
pub(super) async fn once_moved(shared: &Shared, team: &TeamHandle, reference: &str, to: &str) {
    let Some(artifacts) = shared.artifacts(team.name()) else { return };
    let Ok(repository) = artifacts.repository() else { return };
    for _ in 0..LOOKS {
        match repository.target(reference).await {
            Ok(at) if at.as_ref().map_or("", Digest::as_str) != to => tokio::time::sleep(PAUSE).await,
            _ => break,
        }
    }
    catch_up(shared, team, &Scope::All).await;
}
