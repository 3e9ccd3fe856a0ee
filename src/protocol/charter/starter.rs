//! The starter charter.

/// The commented charter that `serve` writes where there is none.
pub const STARTER: &str = include_str!("starter.toml");

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn the_starter_passes_and_fits_a_screen() {
        let charter = parse("charter.toml", STARTER).unwrap_or_else(|found| panic!("{found}"));
        assert_eq!(charter.team.as_str(), "starter");
        assert!(charter.repository.is_none());
        assert!(STARTER.lines().count() < 60);
        assert!(STARTER.lines().all(|line| line.chars().count() <= 100));
    }

    /// What is commented out in the starter is an offer, so it has to be right too.
    #[test]
    fn what_the_starter_offers_passes_as_well() {
        let offered: Vec<&str> = STARTER
            .lines()
            .map(|line| match line.strip_prefix("#: ") {
                Some(offer) => offer,
                None => line,
            })
            .collect();
        let charter = parse("charter.toml", &offered.join("\n")).unwrap_or_else(|found| panic!("{found}"));
        assert!(charter.repository.is_some());
        assert_eq!(charter.phases.len(), 2);
    }
}
