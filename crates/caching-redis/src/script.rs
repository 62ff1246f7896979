//! The scripts: files, loaded once per connection and called by their hash.

/// A script that the server runs in one atomic step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Script {
    Add,
    Replace,
    Remove,
    Extend,
    Lease,
    Relay,
    Release,
    Increment,
    Touch,
}

/// What a server understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Below 7.0: no `SET … NX GET`.
    Six,
    /// 7.0 and above.
    Seven,
}

const VALUE: &str = include_str!("scripts/value.lua");
const FENCE: &str = include_str!("scripts/fence.lua");
const TAKE: &str = include_str!("scripts/take.lua");
const TAKE_6: &str = include_str!("scripts/take_6.lua");

impl Script {
    pub(crate) const ALL: [Self; 9] = [
        Self::Add,
        Self::Replace,
        Self::Remove,
        Self::Extend,
        Self::Lease,
        Self::Relay,
        Self::Release,
        Self::Increment,
        Self::Touch,
    ];

    /// The script as it is sent.
    pub(crate) fn text(self, dialect: Dialect) -> String {
        let take = match dialect {
            Dialect::Six => TAKE_6,
            Dialect::Seven => TAKE,
        };
        let parts: &[&str] = match self {
            Self::Add => &[take, include_str!("scripts/add.lua")],
            Self::Replace => &[VALUE, include_str!("scripts/replace.lua")],
            Self::Remove => &[VALUE, include_str!("scripts/remove.lua")],
            Self::Extend => &[VALUE, FENCE, include_str!("scripts/extend.lua")],
            Self::Lease => &[VALUE, FENCE, take, include_str!("scripts/lease.lua")],
            Self::Relay => &[VALUE, FENCE, include_str!("scripts/relay.lua")],
            Self::Release => &[VALUE, include_str!("scripts/release.lua")],
            Self::Increment => &[VALUE, include_str!("scripts/increment.lua")],
            Self::Touch => &[include_str!("scripts/touch.lua")],
        };
        parts.concat()
    }
}
