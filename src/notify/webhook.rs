//! A channel that is a webhook: a signed POST, bounded in time, that follows no redirect and reaches no
//! private address unless the charter allows it.
//!
//! The body is `{"text": …, "metadata": …}`: the text alone is what a chat shows. The signature is
//! `Countersign-Signature: t=SECONDS,v1=HEX`, the HMAC-SHA-256 of `SECONDS.BODY` under the secret.
//! `Countersign-Delivery` is the same for every attempt at one level, so that a receiver can drop what it
//! took already.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde_json::json;
use sha2::Sha256;

use crate::coordinator::Notice;
use crate::protocol::name::shown;

/// How long one attempt may take, with everything.
const TIME_MAX: Duration = Duration::from_secs(10);

/// The longest secret, in bytes.
const SECRET_BYTES_MAX: u64 = 4096;

/// One webhook.
pub(super) struct Post<'a> {
    pub(super) url: &'a str,
    pub(super) secret: Option<Vec<u8>>,
    pub(super) allow_private: bool,
}

/// The two ways to the network: to everywhere, and to public addresses alone. Each is made when it is first
/// needed: reading the system's certificates takes its time.
#[derive(Debug, Default)]
pub(super) struct Webhooks {
    anywhere: OnceLock<Result<Client, String>>,
    public: OnceLock<Result<Client, String>>,
}

impl Webhooks {
    fn client(&self, allow_private: bool) -> Result<&Client, String> {
        let way = if allow_private { &self.anywhere } else { &self.public };
        way.get_or_init(|| client(allow_private)).as_ref().map_err(Clone::clone)
    }

    pub(super) async fn post(&self, post: &Post<'_>, notice: &Notice, text: &str) -> Result<(), String> {
        let url: Url = post.url.parse().map_err(|error| format!("the webhook is no address: {error}"))?;
        let client = self.client(post.allow_private)?;
        // A number in the address is asked of no resolver.
        let literal = url.host_str().and_then(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok());
        if let Some(address) = literal.filter(|address| !post.allow_private && !is_public(*address)) {
            return Err(private(&address.to_string()));
        }
        let opened = &notice.escalation.opened;
        let delivery = format!("{}/{}/{}/{}", notice.team, opened.id, notice.level, notice.name);
        let payload = json!({
            "team": notice.team.as_str(),
            "escalation": opened.id.to_string(),
            "cause": opened.cause.as_str(),
            "subject": opened.subject,
            "level": notice.level,
            "opened_at": notice.escalation.opened_at.to_string(),
        });
        let metadata = json!({ "event_type": "countersign_escalation", "event_payload": payload });
        let body = json!({ "text": text, "metadata": metadata }).to_string();
        let mut request = client
            .post(url)
            .header("content-type", "application/json")
            .header("countersign-delivery", &delivery);
        if let Some(secret) = &post.secret {
            let seconds = notice.at.0.div_euclid(1_000_000);
            request = request.header("countersign-signature", signature(secret, seconds, &body));
        }
        let answer = request.body(body).send().await.map_err(|error| in_words(&error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        if status.is_redirection() {
            return Err(format!("the webhook redirects ({status}), and redirects are not followed"));
        }
        Err(format!("the webhook answered {status}"))
    }
}

fn client(allow_private: bool) -> Result<Client, String> {
    // Set once for the process; whoever was first had the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder()
        .redirect(Policy::none())
        .timeout(TIME_MAX)
        .no_proxy()
        .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")));
    let builder = if allow_private { builder } else { builder.dns_resolver(Arc::new(PublicAlone)) };
    builder.build().map_err(|error| format!("no webhook can be sent: {error}"))
}

/// `t=SECONDS,v1=HEX`.
fn signature(secret: &[u8], seconds: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length fits");
    mac.update(format!("{seconds}.{body}").as_bytes());
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

/// The secret that signs a webhook: the file's content without the line's end.
pub(super) fn read_secret(file: &Path) -> Result<Vec<u8>, String> {
    let size = std::fs::metadata(file).map_err(|error| format!("the secret can't be read: {error}"))?.len();
    if size == 0 || size > SECRET_BYTES_MAX {
        return Err(format!("the secret has {size} bytes, and 1 to {SECRET_BYTES_MAX} are taken"));
    }
    let mut secret = std::fs::read(file).map_err(|error| format!("the secret can't be read: {error}"))?;
    while secret.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        secret.pop();
    }
    if secret.is_empty() { Err("the secret is empty".to_owned()) } else { Ok(secret) }
}

/// The innermost reason, without the address: it may hold a secret.
fn in_words(error: &reqwest::Error) -> String {
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    if error.is_timeout() {
        return format!("the webhook did not answer within {} s", TIME_MAX.as_secs());
    }
    let words =
        if error.source().is_some() { innermost.to_string() } else { "the request failed".to_owned() };
    format!("the webhook can't be reached: {}", shown(&words, 200))
}

fn private(host: &str) -> String {
    format!("{host} is a private address: allow_private = true in the charter permits it")
}

/// Resolves names to public addresses alone, so that a name can't lead to what only this machine reaches.
#[derive(Debug)]
struct PublicAlone;

impl Resolve for PublicAlone {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One that is private among them may be the one that is taken later.
            if let Some(address) = found.iter().find(|address| !is_public(address.ip())) {
                return Err(private(&address.ip().to_string()).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Whether an address is one of the public network.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_broadcast()
                || v4.is_documentation()
                || v4.is_multicast()
                || a == 0
                || a >= 240
                || (a == 100 && (64..128).contains(&b))
                || (a == 192 && b == 0 && c == 0)
                || (a == 198 && (18..20).contains(&b)))
        }
        IpAddr::V6(v6) => {
            let first = v6.segments()[0];
            // 2000::/3, without documentation, Teredo and 6to4, which wrap other addresses.
            first & 0xe000 == 0x2000
                && first != 0x2002
                && !(first == 0x2001 && matches!(v6.segments()[1], 0 | 0xdb8))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_public_network_are_public() {
        for public in ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "::ffff:1.1.1.1"] {
            assert!(is_public(public.parse().expect("an address")), "{public}");
        }
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "2002:7f00:1::",
            "2001:db8::1",
            "64:ff9b::7f00:1",
        ] {
            assert!(!is_public(private.parse().expect("an address")), "{private}");
        }
    }

    #[test]
    fn a_signature_is_what_a_receiver_computes() {
        // Computed apart, with: printf '%s' '1700000000.{}' | openssl dgst -sha256 -hmac key
        let expected = "t=1700000000,v1=9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae";
        assert_eq!(signature(b"key", 1_700_000_000, "{}"), expected);
    }
}
