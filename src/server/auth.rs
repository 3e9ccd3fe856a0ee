//! Who calls: identity comes from the credential alone.

use subtle::ConstantTimeEq;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use super::shared::Shared;
use crate::coordinator::TeamHandle;
use crate::coordinator::token::Token;
use crate::protocol::name::MemberName;
use crate::wire::status_code::status_with_reason;

/// The member that the call's token speaks for, and its team.
pub(super) fn member(shared: &Shared, metadata: &MetadataMap) -> Result<(TeamHandle, MemberName), Status> {
    let token = bearer(metadata)?;
    let (team, member) = shared
        .coordinator
        .authenticate(&token)
        .ok_or_else(|| stranger("the token speaks for nobody here"))?;
    // Whom the caller takes itself to be gives it nothing; that it is mistaken is better known before
    // it acts in another's name.
    let claims = [("countersign-member", member.as_str()), ("countersign-team", team.name().as_str())];
    for (claim, actual) in claims {
        let Some(claimed) = metadata.get(claim) else { continue };
        if claimed.as_bytes() != actual.as_bytes() {
            let claimed = String::from_utf8_lossy(claimed.as_bytes());
            return Err(status_with_reason(
                Code::PermissionDenied,
                "UNAUTHENTICATED",
                &format!("the token speaks for {member} of {}, not for {claimed}", team.name()),
                &[("member", member.to_string()), ("team", team.name().to_string())],
            ));
        }
    }
    Ok((team, member))
}

/// The team that the call's token may ask about, where it is a read-only one.
pub(super) fn reader(shared: &Shared, metadata: &MetadataMap) -> Option<TeamHandle> {
    shared.coordinator.authenticate_reader(&bearer(metadata).ok()?)
}

/// That the call's token is the operator's.
pub(super) fn operator(shared: &Shared, metadata: &MetadataMap) -> Result<(), Status> {
    let token = bearer(metadata)?;
    // Hashes of equal length, compared in constant time.
    let (given, ours) = (token.hash(), &shared.operator);
    if bool::from(given.as_str().as_bytes().ct_eq(ours.as_str().as_bytes())) {
        return Ok(());
    }
    match shared.coordinator.authenticate(&token) {
        None => Err(stranger("the token speaks for nobody here")),
        Some((_, member)) => Err(status_with_reason(
            Code::PermissionDenied,
            "NOT_OPERATOR",
            &format!("{member} is a member, and this is for whoever holds the server's home folder"),
            &[("member", member.to_string())],
        )),
    }
}

/// The call's token.
pub(super) fn bearer(metadata: &MetadataMap) -> Result<Token, Status> {
    let value = metadata.get("authorization").ok_or_else(|| stranger("there is no token"))?;
    let text = value.to_str().ok().and_then(|text| text.split_once(' '));
    let token = text.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token);
    token
        .and_then(|token| Token::parse(token).ok())
        .ok_or_else(|| stranger("the authorization is not a token of this server's form"))
}

fn stranger(what: &str) -> Status {
    status_with_reason(Code::Unauthenticated, "UNAUTHENTICATED", what, &[])
}
