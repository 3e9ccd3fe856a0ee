//! Places for what goes on for a while, such as a transfer: so many at the same time, and of them so many of one
//! member, so that no member keeps the others from theirs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::protocol::name::{MemberName, TeamName};

type Whose = (TeamName, MemberName);

/// The places of one kind.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    share: usize,
    taken: Mutex<BTreeMap<Whose, usize>>,
}

/// One place, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _free: OwnedSemaphorePermit,
    _of_share: OfShare,
}

/// That this one counts against its member's share.
#[derive(Debug)]
struct OfShare {
    places: Arc<Places>,
    whose: Whose,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The member has its share.
    OfMember,
    /// All are taken.
    All,
}

impl Places {
    /// So many in all, and so many of one member.
    pub fn new(total: usize, share: usize) -> Arc<Self> {
        Arc::new(Self { free: Arc::new(Semaphore::new(total)), share, taken: Mutex::default() })
    }

    /// A place for that member; waits while all are taken. None where the member has its share: those
    /// who wait count, so that no queue is one member's alone.
    pub async fn take(self: &Arc<Self>, team: &TeamName, member: &MemberName) -> Option<Place> {
        let of_share = self.of_share((team.clone(), member.clone()))?;
        let free = self.free.clone().acquire_owned().await.expect("nobody closes this semaphore");
        Some(Place { _free: free, _of_share: of_share })
    }

    /// A place for that member at once.
    pub fn try_take(self: &Arc<Self>, team: &TeamName, member: &MemberName) -> Result<Place, Full> {
        let of_share = self.of_share((team.clone(), member.clone())).ok_or(Full::OfMember)?;
        let free = self.free.clone().try_acquire_owned().map_err(|_| Full::All)?;
        Ok(Place { _free: free, _of_share: of_share })
    }

    fn of_share(self: &Arc<Self>, whose: Whose) -> Option<OfShare> {
        let mut taken = self.taken.lock().expect(UNPOISONED);
        let count = taken.entry(whose.clone()).or_default();
        if *count >= self.share {
            return None;
        }
        *count += 1;
        Some(OfShare { places: self.clone(), whose })
    }
}

impl Drop for OfShare {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().expect(UNPOISONED);
        if let Some(count) = taken.get_mut(&self.whose) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.whose);
            }
        }
    }
}

const UNPOISONED: &str = "nothing panics while it holds this lock";

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn a_member_has_its_share_and_leaves_the_rest_to_others() {
        let places = Places::new(3, 2);
        let (team, app, arch) =
            ("atlas".parse().unwrap(), "app".parse::<MemberName>().unwrap(), "arch".parse().unwrap());
        let first = places.take(&team, &app).await.unwrap();
        let _second = places.take(&team, &app).await.unwrap();
        assert!(places.take(&team, &app).await.is_none());
        let _other = places.take(&team, &arch).await.unwrap();
        drop(first);
        assert!(places.take(&team, &app).await.is_some());
    }

    #[tokio::test]
    async fn who_waits_for_a_place_counts_and_no_longer_once_it_gave_up() {
        let places = Places::new(1, 2);
        let (team, app) = ("atlas".parse().unwrap(), "app".parse::<MemberName>().unwrap());
        let _held = places.take(&team, &app).await.unwrap();
        let mut context = Context::from_waker(Waker::noop());
        let mut waiting = Box::pin(places.take(&team, &app));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        assert!(places.take(&team, &app).await.is_none());
        drop(waiting);
        let mut waiting = Box::pin(places.take(&team, &app));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
    }

    #[test]
    fn who_does_not_wait_is_told_whose_places_are_taken() {
        let places = Places::new(3, 2);
        let team = "atlas".parse().unwrap();
        let [app, arch] = ["app", "arch"].map(|name| name.parse::<MemberName>().unwrap());
        let _first = places.try_take(&team, &app).unwrap();
        let second = places.try_take(&team, &app).unwrap();
        assert_eq!(places.try_take(&team, &app).unwrap_err(), Full::OfMember);
        let _other = places.try_take(&team, &arch).unwrap();
        assert_eq!(places.try_take(&team, &arch).unwrap_err(), Full::All);
        drop(second);
        assert!(places.try_take(&team, &arch).is_ok());
    }
}
