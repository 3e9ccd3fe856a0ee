//! The page service: a member asks for the way into the room page.

use std::sync::Arc;

use tonic::{Code, Request, Response, Status};

use super::answer::Failure;
use super::auth;
use super::call::{Call, answered};
use super::shared::Shared;
use crate::coordinator::token::Token;
use crate::page::link::LinkFault;
use crate::wire::proto::page_service_server::PageService;
use crate::wire::status_code::status_with_remedy;
use crate::wire::{proto, timestamp};

/// The service.
pub(super) struct Entrance(pub(super) Arc<Shared>);

#[tonic::async_trait]
impl PageService for Entrance {
    async fn open_page(
        &self,
        request: Request<proto::OpenPageRequest>,
    ) -> Result<Response<proto::OpenPageResponse>, Status> {
        let token = auth::bearer(request.metadata())?;
        answered(&self.0, "open page", request, |call, _| open(call, token)).await
    }
}

async fn open(call: Call, token: Token) -> Result<proto::OpenPageResponse, Failure> {
    let links = call.shared.links.as_ref().ok_or_else(|| {
        let (message, remedy) = (
            "this server serves no room page",
            "the operator can serve it: countersign serve --page 127.0.0.1:0",
        );
        status_with_remedy(Code::FailedPrecondition, "PAGE_OFF", message, remedy)
    })?;
    let still = || call.shared.coordinator.authenticate(&token).is_some();
    let issued = links.issue(call.team.name(), &call.member, call.shared.now(), still);
    let (link, until) = issued.map_err(|fault| match fault {
        LinkFault::TooMany => {
            let remedy = "ask again in ten minutes: a link that nobody used ends by then";
            status_with_remedy(Code::ResourceExhausted, "LINKS_MAX", &fault.to_string(), remedy).into()
        }
        LinkFault::Ended => {
            let remedy = "the operator can issue another: countersign member token MEMBER";
            status_with_remedy(Code::Unauthenticated, "UNAUTHENTICATED", &fault.to_string(), remedy).into()
        }
        LinkFault::Random(random) => {
            let message = "no link could be made; the server's log says why";
            Failure::fault(Code::Internal, "INTERNAL", message, &random)
        }
    })?;
    Ok(proto::OpenPageResponse { link, expires_at: Some(timestamp(until)) })
}
