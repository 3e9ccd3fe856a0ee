//! Requirements as messages, for explain.

use super::{proto, texts};
use crate::protocol::review::{Requirement, RequirementState};

/// One requirement.
pub fn requirement(requirement: &Requirement) -> proto::Requirement {
    use proto::RequirementState as Wire;
    let state = match requirement.state {
        RequirementState::Satisfied => Wire::Satisfied,
        RequirementState::Unsatisfied => Wire::Unsatisfied,
        RequirementState::Overruled => Wire::Overruled,
        RequirementState::NotApplicable => Wire::NotApplicable,
        RequirementState::Error => Wire::Error,
    };
    proto::Requirement {
        name: requirement.name(),
        rule: requirement.rule.clone(),
        subject: requirement.subject.clone(),
        state: state.into(),
        who: texts(&requirement.who),
        command: requirement.command.clone(),
        detail: requirement.detail.clone(),
        mode: requirement.mode.as_str().to_owned(),
    }
}
