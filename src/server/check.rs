//! Reports of required checks, for the review service.

use super::answer::{Failure, wakes};
use super::call::{Call, request_key};
use crate::protocol::{Answer, Command};
use crate::wire::{command, proto};

pub(super) async fn report_check(
    call: Call,
    request: proto::ReportCheckRequest,
) -> Result<proto::ReportCheckResponse, Failure> {
    let key = request_key(&request)?;
    let done = call.submit(Command::ReportCheck(command::report_check(request)?), key).await?;
    let Answer::CheckReported { reference, name, exit } = done.answer else {
        return Err(Failure::unexpected());
    };
    let status = crate::wire::version::check_status(Some(exit));
    Ok(proto::ReportCheckResponse {
        sequence: done.seq.0,
        reference: reference.to_string(),
        name,
        status: status.into(),
        woke: wakes(&done.woke),
    })
}
