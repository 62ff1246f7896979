//! What can be wrong with a store.

/// The methods of a store, to say where a defect is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    GetMany,
    Set,
    SetMany,
    TryAdd,
    GetOrAdd,
    TryReplace,
    TryRemove,
    TryExtend,
    TryLease,
    TryRelay,
    Release,
    Watch,
    Remove,
    RemoveMany,
    Increment,
    TimeToLive,
    Keys,
}

/// One defect; every store of this test has exactly one, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    None,

    // Defects that any method can have.
    /// It sees an entry that has expired.
    Revives(Method),
    /// It restarts the clock of a sliding entry.
    Prolongs(Method),
    /// It answers as it should and changes nothing.
    NoEffect(Method),
    /// It writes or removes whatever stands there.
    Unconditional(Method),
    /// It decides first and acts later.
    NotAtomic(Method),
    /// A dropped call is executed after a later one.
    Late(Method),
    /// It answers as on an empty store while the store is away.
    AbsentWhenAway(Method),
    /// It takes a value of another kind for an absent one.
    ForeignIsAbsent(Method),
    /// What it writes can be evicted.
    Unprotected(Method),
    /// It writes for an hour, whatever its options say.
    IgnoresOptions(Method),

    // Keys and prefixes.
    CutsKeys,
    FoldsCase,
    DropsBraces,
    IgnoresPrefix,
    JoinsPrefixWithoutColon,
    ShowsPrefix,
    PrefixIsGlob,
    NobodyOwnsAll,
    KeysIsGlob,
    KeysIgnoresPrefix,
    KeysChecksPrefix,
    KeysStopsEarly,
    KeysRepeats,
    KeysRemembers,
    KeysHidesProtected,
    KeysTakesKeysAway,

    // Values and batches.
    EmptyIsAbsent,
    TextOnly,
    CutsValues,
    EvictsOnRead,
    AnswersForOthers,
    SetKeepsOld,
    CachesPerClient,
    SortsGetMany,
    SortsRemoveMany,
    RemoveManyIsTrueTwice,
    FirstOfEqualKeysCounts,
    OneLifeForABatch,
    EmptyBatchFails,
    CutsBatches,
    RemoveIsAlwaysTrue,
    RemovesByPrefix,
    TimeToLiveOfAbsentIsZero,
    TimeToLiveStandsStill,
    PingRemoves,

    // Comparisons.
    ComparesBeginnings,
    ComparesWithoutCase,
    ComparesText,
    ReplaceCreates,
    ReplaceOfEqualDoesNothing,
    ExtendOnlyProlongs,
    ExtendCreates,
    ExtendRaces,
    GetOrAddGivesTheNewValue,

    // Expiration.
    DefaultIsAMinute,
    ReadsProlongFixedLives,
    SecondsOnly,
    MillisecondIsForEver,
    CenturyFails,
    KeepsShorterLife,
    KeepsLongerLife,
    PeriodOutlivesEntry,
    LateCleaner,
    NeverSlides,
    SlidesForItsWriterOnly,
    SlidesAfterSetOnly,
    SlidingNeverEnds,

    // Counters.
    CountsFromOne,
    CountsLeniently,
    CountsBytes,
    CountsAsFloat,
    WrapsAround,
    OptionsAtEachCount,
    CountsPerClient,
    CountsTwiceWhenCancelled,
    ErrorShowsValue,

    // Leases.
    WrapsToken,
    SameTokenIsRefused,
    SameTokenGetsANewNumber,
    SameTokenGetsNoNewLife,
    RelayKeepsNumber,
    LeaseLivesForEver,
    LeavesTraces,
    NumberIsConstant,
    NumberPerClient,
    NumberStartsAgain,
    NumberIsTheClock,
    FailureUsesANumber,

    // Watching.
    NeverWakes,
    WakesFirstOnly,
    WakesOnce,
    WakesOwnClientOnly,
    WakesEverybody,
    WakesTooEarly,
    WakeWaits,
    WatchWrites,
    DropEndsOtherWatches,
    OneWatchPerClient,

    // Room.
    NeverFull,
    RefusalDestroys,
    KeepsRoomOfTheGone,
    NoReserve,
    EvictsForLeases,
    SetNeverEvicts,
    LargeSetDestroys,
    SetTakesProtectedRoom,

    // Outages, cancellation, concurrency.
    NeverComesBack,
    SendsLate,
    ForgetsWatchers,
    MixesAnswers,
    WritesHalves,
}
