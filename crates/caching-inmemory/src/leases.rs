//! The operations that issue fencing numbers (S6).

use bytes::Bytes;
use caching_abstractions::{Result, TimeToLive};

use crate::backing::Backing;
use crate::budget::{NoRoom, Share};
use crate::key::KeyRef;
use crate::life::Life;
use crate::locked::{Locked, Standing, Write};

impl Backing {
    /// The fencing number if `key` is leased for `token` now, none if somebody else has it.
    pub(crate) fn try_lease(
        &self,
        key: KeyRef<'_>,
        token: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        self.with_room(key, |locked| {
            let standing = locked.find();
            let life = Life::fixed(time_to_live, locked.now);
            match locked.value(&standing) {
                Some(value) if value != token => return Ok(None),
                _ => {}
            }
            if let Standing::Protected(slot) = standing {
                let fencing = locked.protected(slot).fencing;
                if fencing > 0 {
                    locked.set_life(slot, life);
                    return Ok(Some(fencing));
                }
            }
            self.write_lease(locked, &standing, token, life).map(Some)
        })
    }

    /// The larger fencing number if `token` stood at `key` and `new_token` does now.
    pub(crate) fn try_relay(
        &self,
        key: KeyRef<'_>,
        token: &[u8],
        new_token: &[u8],
        time_to_live: TimeToLive,
    ) -> Result<Option<u64>> {
        self.with_room(key, |locked| {
            let standing = locked.find();
            if !locked.holds(&standing, token) {
                return Ok(None);
            }
            let life = Life::fixed(time_to_live, locked.now);
            self.write_lease(locked, &standing, new_token, life)
                .map(Some)
        })
    }

    /// Writes `token` under a fresh fencing number.
    fn write_lease(
        &self,
        locked: &mut Locked<'_>,
        standing: &Standing,
        token: &[u8],
        life: Life,
    ) -> Result<u64, NoRoom> {
        let fencing = self.fencing.next(self.clock.unix_time());
        let mut write = Write {
            value: Bytes::copy_from_slice(token),
            life,
            fencing,
            share: Share::Lease,
        };
        locked.write(standing, &mut write)?;
        Ok(fencing)
    }
}
