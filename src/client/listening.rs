//! One open stream on which a member hears what it owes.

use tonic::{Request, Streaming};

use super::{CALL_TIME_MAX, Client, Failure, failure, proto};
use proto::listen_response::Said;

/// One open stream. It ends with the connection; whoever goes on listening opens another.
#[derive(Debug)]
pub struct Listening {
    address: String,
    stream: Streaming<proto::ListenResponse>,
}

impl Client {
    /// Begins to listen.
    ///
    /// # Errors
    /// [`Failure::Unauthenticated`], [`Failure::Refused`] with `NOT_A_WATCHER` or
    /// `MALFORMED`, [`Failure::Unreachable`].
    pub async fn listen(&self, request: proto::ListenRequest) -> Result<Listening, Failure> {
        let mut service = self.listen_calls();
        let stream = self.answer(None, CALL_TIME_MAX, service.listen(Request::new(request))).await?;
        Ok(Listening { address: self.address.clone(), stream })
    }
}

impl Listening {
    /// What is said next; nothing once the stream ended in order.
    ///
    /// # Errors
    /// [`Failure::Refused`] with `SUPERSEDED` where another listener took over; [`Failure::Unreachable`] where the
    /// connection broke; [`Failure::Unauthenticated`] where the token ended.
    pub async fn next(&mut self) -> Result<Option<Said>, Failure> {
        let message = self.stream.message().await;
        let message = message.map_err(|status| failure::of_status(&self.address, None, &status))?;
        Ok(message.and_then(|message| message.said))
    }
}
