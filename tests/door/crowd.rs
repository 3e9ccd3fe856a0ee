//! Many producers in one circle over one repository.

use super::place::text;
use super::shop::Shop;

/// So many produce, each in a clone of their own.
const PRODUCERS: usize = 8;

fn producer(number: usize) -> String {
    format!("p{number}")
}

/// A charter in which all of them are reviewed by one, and confirm together.
fn charter() -> String {
    let each = |line: &dyn Fn(&str) -> String| (0..PRODUCERS).map(|n| line(&producer(n))).collect::<String>();
    let deliverables = each(&|who| format!("{{ name = \"part-{who}\", producer = \"{who}\" }}, "));
    let reviews = each(&|who| format!("{{ reviewer = \"sec\", of = \"{who}\", lens = \"security\" }}, "));
    let members = each(&|who| format!("[members.{who}]\n"));
    format!(
        "[team]\nname = \"atlas\"\n[repository]\npath = \"atlas.git\"\nprotected = [\"refs/heads/main\"]\n\
         {members}[members.sec]\n[members.dana]\nkind = \"human\"\n[[phases]]\nname = \"implement\"\n\
         confirm = \"together\"\ndeliverables = [{deliverables}]\nreviews = [{reviews}]\n"
    )
}

/// Everybody does it at once; the producers that were let.
fn at_once(act: impl Fn(usize) -> bool + Sync) -> Vec<usize> {
    std::thread::scope(|scope| {
        let act = &act;
        let acting: Vec<_> = (0..PRODUCERS).map(|n| (n, scope.spawn(move || act(n)))).collect();
        acting.into_iter().filter_map(|(n, one)| one.join().expect("an act").then_some(n)).collect()
    })
}

#[test]
fn many_producers_in_one_circle_land_together_and_two_that_conflict_are_seen_at_confirm() {
    let shop = Shop::of(&charter(), |place| {
        for number in 0..PRODUCERS {
            place.git(".", &["clone", "-q", "atlas.git", &producer(number)]);
        }
    });
    let propose = |number: usize, file: &str| {
        let (who, content) = (producer(number), format!("fn part_{number}() {{}}\n"));
        shop.place.commit(&who, file, &content);
        let part = format!("part-{who}");
        let args = ["--as", &who, "--json", "propose", &part, "--commit", "HEAD", "--summary", "A part"];
        shop.place.run_in(&who, &args).exit == 0
    };
    let review = |number: usize, file: &str| {
        let shown = shop.by("sec", &["show", &format!("part-p{number}")]).done().json();
        let reference = text(&shown["ref"]);
        shop.by("sec", &["approve", &reference, "--checked", &format!("{file}:1")]).exit == 0
    };
    let reference = || text(&shop.circle("implement")["ref"]);
    let confirm = |number: usize, reference: &str| {
        let who = producer(number);
        shop.place.run_in(&who, &["--as", &who, "--json", "confirm", reference])
    };
    let everybody: Vec<usize> = (0..PRODUCERS).collect();
    // The first two add the same file, each with a content of its own.
    let first =
        |number: usize| if number < 2 { "src/same.rs".to_owned() } else { format!("src/{number}.rs") };
    assert_eq!(at_once(|number| propose(number, &first(number))), everybody);
    assert_eq!(at_once(|number| review(number, &first(number))), everybody);
    let before = shop.at("refs/heads/main");
    let circle = reference();
    let none = [0; 0];
    assert_eq!(
        at_once(|number| confirm(number, &circle).exit == 0),
        none,
        "two of them don't merge together"
    );
    let told = confirm(7, &circle).json().to_string();
    assert!(told.contains("confirm/unmerged") && told.contains("src/same.rs"), "{told}");
    assert_eq!(shop.at("refs/heads/main"), before, "nothing was published");

    // One of the two takes it elsewhere.
    shop.place.git("p1", &["rm", "-q", "src/same.rs"]);
    assert!(propose(1, "src/1.rs"));
    assert!(review(1, "src/1.rs"));
    let circle = reference();
    assert_eq!(at_once(|number| confirm(number, &circle).exit == 0), everybody);
    shop.by("sec", &["confirm", &circle]).done();
    let published = shop.becomes("implement", "published");
    assert_eq!(published["published"].as_array().map(Vec::len), Some(1), "one move of one ref: {published}");
    for number in 0..PRODUCERS {
        let who = producer(number);
        assert!(shop.holds(&shop.place.git(&who, &["rev-parse", "HEAD"])), "{who}: {published}");
    }
    let tree = shop.place.git("atlas.git", &["ls-tree", "-r", "--name-only", "refs/heads/main"]);
    let mut files = vec!["README.md".to_owned()];
    files.extend((1..PRODUCERS).map(|number| format!("src/{number}.rs")));
    files.push("src/same.rs".to_owned());
    assert_eq!(tree.lines().collect::<Vec<_>>(), files);
    let log = shop.by("dana", &["log"]).done().out;
    assert_eq!(log.matches("\"circle-published\"").count(), 1, "{log}");
    assert_eq!(shop.moved(), [""; 0]);
    shop.place.git("atlas.git", &["fsck", "--strict"]);
}
