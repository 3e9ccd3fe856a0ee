//! Messages of a stream in batches: small ones share a frame. A peer ends a connection on which too many
//! frames hold next to nothing.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::sync::mpsc;
use tokio_stream::Stream;

/// Bytes that are worth a batch of their own.
const BATCH_BYTES: usize = 256 * 1024;

/// Messages of one batch, however small.
const BATCH_MESSAGES: usize = 512;

/// Batches that wait for the wire.
const BATCHES_AHEAD: usize = 2;

/// The end into which messages are put, one after the other.
#[derive(Debug)]
pub struct Batches<T> {
    to: mpsc::Sender<Vec<T>>,
    batch: Vec<T>,
    bytes: usize,
}

/// The end from which they leave. Those of one batch are ready together, so that whoever writes them out
/// fills frames with them.
#[derive(Debug)]
pub struct Unbatched<T> {
    from: mpsc::Receiver<Vec<T>>,
    batch: VecDeque<T>,
}

/// Both ends.
pub fn batches<T>() -> (Batches<T>, Unbatched<T>) {
    let (to, from) = mpsc::channel(BATCHES_AHEAD);
    (Batches { to, batch: Vec::new(), bytes: 0 }, Unbatched { from, batch: VecDeque::new() })
}

/// Nobody takes messages any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl<T> Batches<T> {
    /// A batch, once there is enough for one.
    fn full(&mut self, message: T, bytes: usize) -> Option<Vec<T>> {
        self.batch.push(message);
        self.bytes += bytes;
        let full = self.bytes >= BATCH_BYTES || self.batch.len() >= BATCH_MESSAGES;
        full.then(|| self.rest())
    }

    fn rest(&mut self) -> Vec<T> {
        self.bytes = 0;
        std::mem::take(&mut self.batch)
    }

    /// Puts a message of about that many bytes in; waits while too many are ahead of it.
    pub async fn put(&mut self, message: T, bytes: usize) -> Result<(), Gone> {
        match self.full(message, bytes) {
            Some(batch) => self.to.send(batch).await.map_err(|_| Gone),
            None => Ok(()),
        }
    }

    /// The same on a thread that may block.
    pub fn put_blocking(&mut self, message: T, bytes: usize) -> Result<(), Gone> {
        match self.full(message, bytes) {
            Some(batch) => self.to.blocking_send(batch).map_err(|_| Gone),
            None => Ok(()),
        }
    }

    /// Sends what is left.
    pub async fn finish(mut self) -> Result<(), Gone> {
        let rest = self.rest();
        self.to.send(rest).await.map_err(|_| Gone)
    }

    /// The same on a thread that may block.
    pub fn finish_blocking(mut self) -> Result<(), Gone> {
        let rest = self.rest();
        self.to.blocking_send(rest).map_err(|_| Gone)
    }
}

impl<T: Unpin> Stream for Unbatched<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        loop {
            if let Some(message) = self.batch.pop_front() {
                return Poll::Ready(Some(message));
            }
            match ready!(self.from.poll_recv(context)) {
                Some(batch) => self.batch = batch.into(),
                None => return Poll::Ready(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;

    use super::*;

    #[tokio::test]
    async fn all_that_is_put_in_comes_out_in_order() {
        let (mut batches, out) = batches();
        let put = async move {
            for number in 0..5_000 {
                batches.put(number, if number % 100 == 0 { BATCH_BYTES } else { 1 }).await.unwrap();
            }
            batches.finish().await.unwrap();
        };
        let (numbers, ()) = tokio::join!(out.collect::<Vec<i32>>(), put);
        assert_eq!(numbers, (0..5_000).collect::<Vec<i32>>());
    }

    #[tokio::test]
    async fn who_puts_into_a_stream_that_ended_is_told() {
        let (mut batches, out) = batches();
        drop(out);
        assert_eq!(batches.put(1, BATCH_BYTES).await, Err(Gone));
        assert_eq!(batches.finish().await, Err(Gone));
    }
}
