//! One browser, driven by WebDriver.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use countersign::server::{Options, PageAddr};
use countersign::wire::proto;
use countersign::wire::proto::listen_service_client::ListenServiceClient;
use countersign::wire::proto::page_service_client::PageServiceClient;
use countersign::wire::proto::room_service_client::RoomServiceClient;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::site::{Authorized, Bearer, Site};

/// How long something may take to be seen, in milliseconds. What takes longer isn't live.
const SEEN_WITHIN: u32 = 30_000;

/// A team with a page.
pub struct Room {
    pub site: Site,
}

impl Room {
    pub async fn of(charter: &str) -> Self {
        let mut site = Site::unserved();
        site.add_team(charter).await;
        let mut room = Self { site };
        room.start(None).await;
        room
    }

    pub async fn bundles() -> Self {
        Self::of(&crate::site::charter("atlas")).await
    }

    async fn start(&mut self, at: Option<SocketAddr>) {
        let page = Some(PageAddr::At(at.unwrap_or_else(|| "127.0.0.1:0".parse().unwrap())));
        let options = Options { page, ..self.site.options() };
        self.site.running = Some(countersign::server::start(options).await.unwrap());
    }

    /// Ends the server and starts it again, with the page where it was.
    pub async fn restart(&mut self) {
        let at = self.down().await;
        self.up(at).await;
    }

    /// Ends the server; where the page was.
    pub async fn down(&mut self) -> SocketAddr {
        let at = self.site.running.as_ref().unwrap().page().unwrap();
        self.site.stop().await;
        at
    }

    /// Starts it again, with the page there.
    pub async fn up(&mut self, at: SocketAddr) {
        self.start(Some(at)).await;
    }

    /// A person adopts another charter.
    pub async fn adopt(&self, charter: &str) {
        let adopted = proto::AdoptCharterRequest {
            file: "charter.toml".to_owned(),
            charter: charter.as_bytes().to_vec().into(),
            reason: "the team grows".to_owned(),
            ..Default::default()
        };
        self.site.member("dana").review.adopt_charter(adopted).await.unwrap();
    }

    /// The page's address: http://127.0.0.1:1234
    pub fn address(&self) -> String {
        format!("http://{}", self.site.running.as_ref().unwrap().page().unwrap())
    }

    fn bearer(&self, member: &str) -> Bearer {
        Bearer::of(self.site.tokens[member].expose())
    }

    /// What a member waits with.
    pub fn listener(&self, member: &str) -> ListenServiceClient<Authorized> {
        ListenServiceClient::with_interceptor(self.site.channel(), self.bearer(member))
    }

    /// What a member speaks with.
    pub fn speaker(&self, member: &str) -> RoomServiceClient<Authorized> {
        RoomServiceClient::with_interceptor(self.site.channel(), self.bearer(member))
    }

    /// A link that signs the member in.
    pub async fn link(&self, member: &str) -> String {
        let mut client = PageServiceClient::with_interceptor(self.site.channel(), self.bearer(member));
        client.open_page(proto::OpenPageRequest {}).await.unwrap().into_inner().link
    }
}

pub struct Browser {
    driver: Child,
    http: reqwest::Client,
    session: String,
    _profile: TempDir,
}

impl Browser {
    pub async fn start() -> Self {
        // It takes a port that is free in IPv4, and ends where that isn't free in IPv6.
        let started = std::iter::repeat_with(drive).take(5).find_map(|(driver, port)| Some((driver, port?)));
        let (driver, port) = started.expect("chromedriver says on which port it is");
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let profile = tempfile::tempdir().unwrap();
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--force-color-profile=srgb",
            &format!("--user-data-dir={}", profile.path().display()),
        ];
        let capabilities = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "args": arguments },
            "timeouts": { "script": SEEN_WITHIN },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let mut browser = Self { driver, http, session: String::new(), _profile: profile };
        let server = format!("http://127.0.0.1:{port}/session");
        let made = browser.call(&server, Some(&capabilities)).await;
        browser.session = format!("{server}/{}", made["sessionId"].as_str().unwrap());
        browser.size(1280, 900).await;
        browser
    }

    async fn call(&self, url: &str, body: Option<&Value>) -> Value {
        let request = match body {
            Some(body) => {
                self.http.post(url).header("content-type", "application/json").body(body.to_string())
            }
            None => self.http.get(url),
        };
        let answer = request.send().await.unwrap().text().await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let value = answer["value"].clone();
        assert!(value.get("error").is_none(), "{url}: {}: {}", value["error"], value["message"]);
        value
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.call(&format!("{}/{path}", self.session), Some(&body)).await
    }

    pub async fn goto(&self, url: &str) {
        self.post("url", json!({ "url": url })).await;
    }

    /// Signs in by a link.
    pub async fn enter(&self, link: &str) {
        self.goto(link).await;
        self.sees("Who owes what").await;
    }

    /// Runs a script's text, and gives what it returns.
    pub async fn run(&self, script: &str) -> Value {
        self.post("execute/sync", json!({ "script": script, "args": [] })).await
    }

    /// Runs a script that ends by calling `done`.
    pub async fn run_until_done(&self, script: &str) -> Value {
        let script = format!("const done = arguments[arguments.length - 1];\n{script}");
        self.post("execute/async", json!({ "script": script, "args": [] })).await
    }

    /// Waits until an expression is true of what the page shows; red where it never is.
    pub async fn until(&self, expression: &str) {
        let script = format!(
            "const holds = () => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }};
             if (holds()) return done(true);
             const observer = new MutationObserver(() => {{
                 if (!holds()) return;
                 observer.disconnect();
                 clearTimeout(late);
                 done(true);
             }});
             const late = setTimeout(() => done(document.body.innerText), {});
             observer.observe(document, {{ subtree: true, childList: true, attributes: true, characterData: true }});",
            SEEN_WITHIN - 5_000
        );
        let seen = self.run_until_done(&script).await;
        assert_eq!(seen, true, "never true: {expression}");
    }

    /// Waits until the main part of the page shows that text.
    pub async fn sees(&self, text: &str) {
        let text = Value::from(text);
        self.until(&format!("document.querySelector('main').textContent.includes({text})")).await;
    }

    /// Loads the page again.
    pub async fn reload(&self) {
        self.post("refresh", json!({})).await;
    }

    /// Opens one of the views.
    pub async fn view(&self, hash: &str, shows: &str) {
        self.run(&format!("location.hash = '{hash}'")).await;
        self.sees(shows).await;
    }

    /// Waits until the page says that it is live.
    pub async fn is_live(&self) {
        self.until("document.getElementById('line').textContent === 'live'").await;
    }

    /// What an expression is of what the page shows now.
    pub async fn value(&self, expression: &str) -> Value {
        self.run(&format!("return {expression}")).await
    }

    /// Lets nothing through to these paths of the page, as a network that fails; none lets all through again.
    pub async fn cut_off(&self, paths: &[&str]) {
        let urls: Vec<String> = paths.iter().map(|path| format!("*{path}*")).collect();
        self.devtools("Network.enable", json!({})).await;
        self.devtools("Network.setBlockedURLs", json!({ "urls": urls })).await;
    }

    /// Types; `\u{E007}` is Enter, as WebDriver numbers the keys.
    pub async fn keys(&self, text: &str) {
        let actions = text.chars().flat_map(|key| {
            let key = key.to_string();
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        });
        let actions: Vec<Value> = actions.collect();
        self.post("actions", json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] }))
            .await;
    }

    /// Clicks on what a selector finds.
    pub async fn click(&self, selector: &str) {
        let found = self.post("element", json!({ "using": "css selector", "value": selector })).await;
        let id = found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        self.post(&format!("element/{id}/click"), json!({})).await;
    }

    /// What DevTools can do.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.post("goog/cdp/execute", json!({ "cmd": command, "params": parameters })).await
    }

    pub async fn size(&self, width: u32, height: u32) {
        let parameters = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", parameters).await;
    }

    pub async fn dark(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let parameters = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.devtools("Emulation.setEmulatedMedia", parameters).await;
    }

    /// What the page complained about in its console.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.post("se/log", json!({ "type": "browser" })).await;
        let lines = log.as_array().unwrap().iter();
        lines.filter(|line| line["level"] == "SEVERE").map(|line| line["message"].to_string()).collect()
    }

    /// The screen as a PNG, in base64.
    pub async fn screen(&self) -> String {
        let taken = self.call(&format!("{}/screenshot", self.session), None).await;
        taken.as_str().unwrap().to_owned()
    }
}

/// A driver, and on which port it is.
fn drive() -> (Child, Option<u16>) {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver is needed: apt-get install -y chromium chromium-driver");
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
    let port = lines.find_map(|line| {
        let port = line.split("successfully on port ").nth(1)?;
        port.trim_end_matches('.').parse::<u16>().ok()
    });
    // Whatever else it says must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    (driver, port)
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Told to end, the driver ends its browser; killed, it would leave it behind.
        let pid = self.driver.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.driver.wait();
    }
}
