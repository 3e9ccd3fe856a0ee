//! The page service: a member asks for the way into the room page.

use std::sync::Arc;

use tonic::{Code, Request, Response, Status};

use super::answer::Failure;
use super::call::{Call, answered};
use super::shared::Shared;
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
        answered(&self.0, "open page", request, open).await
    }
}

async fn open(call: Call, _: proto::OpenPageRequest) -> Result<proto::OpenPageResponse, Failure> {
    let links = call.shared.links.as_ref().ok_or_else(|| {
        let (message, remedy) = (
            "this server serves no room page",
            "the operator can serve it: countersign serve --page 127.0.0.1:0",
        );
        status_with_remedy(Code::FailedPrecondition, "PAGE_OFF", message, remedy)
    })?;
    let issued = links.issue(call.team.name(), &call.member, call.shared.now());
    let (link, until) = issued.map_err(|fault| match fault {
        LinkFault::TooMany => {
            let remedy = "ask again in ten minutes: a link that nobody used ends by then";
            status_with_remedy(Code::ResourceExhausted, "LINKS_MAX", &fault.to_string(), remedy).into()
        }
        LinkFault::Random(random) => {
            let message = "no link could be made; the server's log says why";
            Failure::fault(Code::Internal, "INTERNAL", message, &random)
        }
    })?;
    Ok(proto::OpenPageResponse { link, expires_at: Some(timestamp(until)) })
}
