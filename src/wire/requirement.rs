//! Requirements as messages, for explain.

use super::{proto, texts};
use crate::protocol::charter::RuleMode;
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
    let mode = match requirement.mode {
        RuleMode::Enforce => "enforce",
        RuleMode::Warn => "warn",
        RuleMode::Off => "off",
    };
    proto::Requirement {
        name: requirement.name(),
        rule: requirement.rule.clone(),
        subject: requirement.subject.clone(),
        state: state.into(),
        who: texts(&requirement.who),
        command: requirement.command.clone(),
        detail: requirement.detail.clone(),
        mode: mode.to_owned(),
    }
}
