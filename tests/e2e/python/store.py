"""A client of the store that is written in another language and has nothing generated.

`store.py CHECK PORT AUTHORITY CERTIFICATE KEY` learns the contract from the server on that port of
this machine and makes one check; the files are for TLS. It ends with status 0 if everything is as
it has to be.
"""

import faulthandler
import pathlib
import queue
import sys
import threading
import time

import grpc

from contract import VERSIONS, Contract, Reflection
from failures import Failure, expect, expect_that, failed, grpc_code, refused

STORE, HEALTH = "xihan.caching.v1.Store", "grpc.health.v1.Health"
# After this many seconds every thread says where it stands, and the program ends.
LIMIT = 120
MINUTE = 60_000
OPTIONS = (("grpc.enable_http_proxy", 0),)

CHECKS = {}


def check(function):
    """Makes a function one of the checks."""
    CHECKS[function.__name__] = function
    return function


class Server:
    """The server under test."""

    def __init__(self, port, *files):
        self.address = f"127.0.0.1:{port}"
        self.authority, self.certificate, self.key = (pathlib.Path(f).read_bytes() for f in files)
        self.channel = grpc.insecure_channel(self.address, OPTIONS)

    def contract(self, version="v1", channel=None, metadata=()):
        """The contract, as it says itself."""
        reflection = Reflection(channel or self.channel, version, metadata)
        return Contract(reflection, (STORE, HEALTH))

    def store(self):
        """The store's calls, by a contract that was just learned."""
        return self.contract().client(self.channel, STORE)

    def secure(self, authority=None, certificate=None, key=None):
        """A channel of its own that speaks TLS."""
        credentials = grpc.ssl_channel_credentials(authority, key, certificate)
        return grpc.secure_channel(self.address, credentials, OPTIONS)


def bearer(token):
    """What shows a token."""
    return (("authorization", f"Bearer {token}"),)


def below(prefix):
    """What asks for a key prefix."""
    return (("xihan-key-prefix-bin", prefix.encode()),)


def value_of(answer):
    """The value of an answer; none if it is absent."""
    return answer.value if answer.HasField("value") else None


def fencing_of(answer):
    """The fencing number of an answer; none if it is absent."""
    return answer.fencing if answer.HasField("fencing") else None


@check
def reflection(server):
    learned = {}
    for version in VERSIONS:
        asked = Reflection(server.channel, version)
        expect_that({STORE, HEALTH} <= asked.services(), asked.services())
        unknown = failed(lambda: asked.files(file_containing_symbol="no.such.Symbol"))
        expect(unknown.code(), grpc.StatusCode.NOT_FOUND)
        learned[version] = server.contract(version)
    expect(learned["v1"].descriptors(), learned["v1alpha"].descriptors())
    calls = "Get Set TryAdd GetOrAdd TryReplace Increment TryLease WaitForLease Release Watch Keys"
    methods = learned["v1"].methods(STORE)
    expect_that({*calls.split(), "Ping", "Session"} <= methods, methods)


@check
def values(server):
    store = server.store()
    binary = bytes(range(256))
    store.Ping()
    expect(value_of(store.Get(key="a")), None)
    store.Set(key="a", value=binary, expiration={"time_to_live_milliseconds": MINUTE})
    expect(value_of(store.Get(key="a")), binary)
    store.Set(key="empty", value=b"", expiration={"sliding_milliseconds": MINUTE})
    expect(value_of(store.Get(key="empty")), b"")

    expect(store.TryAdd(key="a", value=b"2").added, False)
    expect(store.TryAdd(key="ключ", value=b"2").added, True)
    expect(value_of(store.Get(key="ключ")), b"2")
    expect(value_of(store.GetOrAdd(key="a", value=b"2")), binary)
    expect(value_of(store.GetOrAdd(key="b", value=b"2")), None)
    expect(value_of(store.GetOrAdd(key="b", value=b"3")), b"2")

    expect(store.TryReplace(key="b", expected=b"3", value=b"4").replaced, False)
    expect(store.TryReplace(key="b", expected=b"2", value=b"4").replaced, True)
    expect(store.TryExtend(key="b", expected=b"4", time_to_live_milliseconds=MINUTE).extended, True)
    left = store.TimeToLive(key="b").remaining_microseconds
    expect_that(0 < left <= MINUTE * 1000, left)
    expect(store.TryRemove(key="b", expected=b"2").removed, False)
    expect(store.TryRemove(key="b", expected=b"4").removed, True)
    expect(store.TimeToLive(key="b").HasField("remaining_microseconds"), False)

    expect(store.Increment(key="n", delta=-7).number, -7)
    expect(store.Increment(key="n", delta=2**40).number, 2**40 - 7)
    expect(value_of(store.Get(key="n")), str(2**40 - 7).encode())

    items = [{"key": "a", "value": b"1"}, {"key": "c", "value": b"3"}]
    store.SetMany(items=items)
    entries = store.GetMany(keys=["c", "none", "a"]).entries
    expect([value_of(entry) for entry in entries], [b"3", None, b"1"])
    expect(list(store.RemoveMany(keys=["c", "none"]).removed), [True, False])
    expect(store.Remove(key="a").removed, True)
    expect(value_of(store.Get(key="a")), None)


@check
def expiry(server):
    store = server.store()
    store.Set(key="short", value=b"1", expiration={"time_to_live_milliseconds": 50})
    deadline = time.monotonic() + 20
    while value_of(store.Get(key="short")) is not None:
        expect_that(time.monotonic() < deadline, "an entry of 50 ms lives for 20 s")
    expect(store.TryAdd(key="short", value=b"2").added, True)


@check
def leases(server):
    store = server.store()
    lease = lambda token: fencing_of(
        store.TryLease(key="lock:a", token=token, time_to_live_milliseconds=MINUTE)
    )
    first = lease("one")
    expect(lease("one"), first)
    expect(lease("two"), None)
    # The lease is an entry as any other: its value is the token.
    expect(value_of(store.Get(key="lock:a")), b"one")
    relay = {"new_token": "two", "time_to_live_milliseconds": MINUTE}
    expect(fencing_of(store.TryRelay(key="lock:a", token="other", **relay)), None)
    relayed = fencing_of(store.TryRelay(key="lock:a", token="one", **relay))
    expect(store.Release(key="lock:a", token="one").released, False)
    expect(store.Release(key="lock:a", token="two").released, True)
    expect(store.Release(key="lock:a", token="two").released, False)
    numbers = [first, relayed]
    for round in range(20):
        numbers.append(lease(f"round-{round}"))
        expect(store.Release(key="lock:a", token=f"round-{round}").released, True)
    expect_that(None not in numbers and sorted(set(numbers)) == numbers, numbers)
    expect([key for page in store.Keys(prefix="") for key in page.keys], [])


@check
def waiting(server):
    store = server.store()
    wait = {"key": "lock:a", "time_to_live_milliseconds": MINUTE}
    first = fencing_of(store.WaitForLease(token="one", wait_milliseconds=0, **wait))
    expect_that(first is not None, "a free key is leased at once")
    expect(fencing_of(store.WaitForLease(token="two", wait_milliseconds=20, **wait)), None)
    # The wait is over before the deadline of the call is, so that there is an answer.
    late = store.WaitForLease(token="two", wait_milliseconds=MINUTE, timeout=1, **wait)
    expect(fencing_of(late), None)

    granted = queue.Queue()
    waiter = threading.Thread(
        target=lambda: granted.put(
            store.WaitForLease(token="three", wait_milliseconds=MINUTE, **wait)
        )
    )
    waiter.start()
    # Usually it waits by then; if it does not yet, the key is free when it asks.
    time.sleep(0.05)
    expect(granted.empty(), True)
    expect(store.Release(key="lock:a", token="one").released, True)
    second = fencing_of(granted.get(timeout=20))
    waiter.join()
    expect_that(second is not None and second > first, (first, second))
    expect(value_of(store.Get(key="lock:a")), b"three")


@check
def watching(server):
    store = server.store()
    store.TryLease(key="lock:a", token="one", time_to_live_milliseconds=MINUTE)
    hints = store.Watch(key="lock:a")
    next(hints)
    store.Release(key="lock:a", token="one")
    next(hints)
    hints.cancel()


@check
def listing(server):
    store = server.store()
    literal = {f"a*:{number}" for number in range(1000)}
    store.SetMany(items=[{"key": key, "value": b""} for key in (*literal, "ab:1", "b")])
    pages = list(store.Keys(prefix="a*"))
    keys = [key for page in pages for key in page.keys]
    expect((len(keys), set(keys)), (1000, literal))
    expect_that(len(pages) < 100, f"{len(pages)} messages")


@check
def sessions(server):
    contract = server.contract()
    store = contract.client(server.channel, STORE)
    frame = contract.message("xihan.caching.v1.SessionRequest")
    frames = queue.Queue()
    answers = store.Session(iter(frames.get, None))
    replies = lambda count: {reply.id: reply for _ in range(count) for reply in next(answers).replies}

    calls = [
        {"id": 1, "set": {"key": "a", "value": b"1"}},
        {"id": 2, "get": {"key": "a"}},
        {"id": 3, "increment": {"key": "n", "delta": -3}},
        {"id": 4, "try_lease": {"key": "l", "token": "t", "time_to_live_milliseconds": MINUTE}},
        {"id": 5, "get": {"key": "two words"}, "timeout_milliseconds": MINUTE},
        {"id": 6, "ping": {}},
    ]
    frames.put(frame(calls=calls))
    found = {}
    while len(found) < len(calls):
        found |= replies(1)
    expect(found[1].WhichOneof("result"), "set")
    expect(value_of(found[2].get), b"1")
    expect(found[3].increment.number, -3)
    expect_that(found[4].try_lease.fencing > 0, found[4])
    failure = found[5].failure
    expect(grpc_code(failure.status), grpc.StatusCode.INVALID_ARGUMENT)
    said = Failure(failure.status, failure.details, contract)
    said.expect(grpc.StatusCode.INVALID_ARGUMENT, "CACHING_VALIDATION_001")
    expect(found[6].WhichOneof("result"), "ping")

    frames.put(frame(calls=[{"id": 7, "get": {"key": "none"}}]))
    expect(value_of(replies(1)[7].get), None)
    frames.put(None)
    expect(list(answers), [])


@check
def errors(server):
    contract = server.contract()
    store = contract.client(server.channel, STORE)
    aborted, invalid = grpc.StatusCode.ABORTED, grpc.StatusCode.INVALID_ARGUMENT
    store.Set(key="words", value=b"many")
    wrong = refused(contract, lambda: store.Increment(key="words", delta=1), aborted, "CACHING_CONFLICT_004")
    expect(dict(wrong.info().metadata), {"key": "words"})
    expect(wrong.detail().message_key, "caching.store.wrong_kind")
    expect(wrong.detail().operation, "increment")
    refused(contract, lambda: store.Get(key="two words"), invalid, "CACHING_VALIDATION_001")
    forever = {"time_to_live_milliseconds": 2**63}
    setting = lambda: store.Set(key="a", value=b"", expiration=forever)
    refused(contract, setting, invalid, "CACHING_VALIDATION_002")
    large = failed(lambda: store.Set(key="a", value=bytes(2**24)))
    expect(large.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
    expect(value_of(store.Get(key="words")), b"many")


@check
def health(server):
    check_health(server, server.contract())


def check_health(server, contract, channel=None):
    """Health v1, which asks for no token."""
    health = contract.client(channel or server.channel, HEALTH)
    serving = contract.message("grpc.health.v1.HealthCheckResponse").SERVING
    for service in ("", STORE):
        expect(health.Check(service=service).status, serving)
        watch = health.Watch(service=service)
        expect(next(watch).status, serving)
        watch.cancel()
    unknown = failed(lambda: health.Check(service="no.such.Service"))
    expect(unknown.code(), grpc.StatusCode.NOT_FOUND)


@check
def shutdown(server):
    contract = server.contract()
    store = contract.client(server.channel, STORE)
    health = contract.client(server.channel, HEALTH).Watch(service="")
    states = contract.message("grpc.health.v1.HealthCheckResponse")
    expect(next(health).status, states.SERVING)
    frame = contract.message("xihan.caching.v1.SessionRequest")
    frames = queue.Queue()
    session = store.Session(iter(frames.get, None))
    frames.put(frame(calls=[{"id": 1, "ping": {}}]))
    next(session)

    print("shut the server down", flush=True)
    expect([answer.status for answer in health], [states.NOT_SERVING])
    unavailable = grpc.StatusCode.UNAVAILABLE
    ended = refused(contract, lambda: session, unavailable, "CACHING_UNAVAILABLE_001")
    expect(ended.detail().certainly_not_applied, True)
    frames.put(None)


@check
def tokens(server):
    whole, shop = bearer("SECRET-whole"), bearer("SECRET-shop")
    unauthenticated = grpc.StatusCode.UNAUTHENTICATED
    contract = server.contract(metadata=whole)
    for wrong in ((), bearer("SECRET"), bearer("SECRET-whole2"), (("authorization", "SECRET-whole"),)):
        reflecting = lambda: Reflection(server.channel, "v1", wrong).services()
        expect(failed(reflecting).code(), unauthenticated)
        store = contract.client(server.channel, STORE, wrong)
        calls = (
            lambda: store.Get(key="a"),
            lambda: store.TryLease(key="a", token="t", time_to_live_milliseconds=MINUTE),
            lambda: store.Keys(prefix=""),
            lambda: store.Session(iter([])),
        )
        for call in calls:
            refused(contract, call, unauthenticated, "CACHING_UNAUTHENTICATED_001")
    check_health(server, contract)

    store = contract.client(server.channel, STORE, whole)
    for key in ("a", "shop:b", "blog:b"):
        store.Set(key=key, value=key.encode())
    bound = contract.client(server.channel, STORE, shop)
    keys = lambda **how: [key for page in bound.Keys(prefix="", **how) for key in page.keys]
    expect((keys(), keys(metadata=below("shop"))), (["b"], ["b"]))
    expect(value_of(bound.Get(key="b")), b"shop:b")
    for foreign in ("a", "shop:b", "blog:b"):
        expect(value_of(bound.Get(key=foreign)), None)
    bound.Set(key="a", value=b"own")
    expect(value_of(store.Get(key="a")), b"a")
    expect(value_of(store.Get(key="shop:a")), b"own")
    expect(value_of(store.Get(key="b", metadata=below("blog"))), b"blog:b")
    denied = grpc.StatusCode.PERMISSION_DENIED
    for prefix in ("blog", "sho", "shop2"):
        call = lambda: bound.Get(key="b", metadata=below(prefix))
        refused(contract, call, denied, "CACHING_FORBIDDEN_001")


@check
def tls(server):
    channel = server.secure(server.authority)
    contract = server.contract(channel=channel)
    store = contract.client(channel, STORE)
    store.Set(key="a", value=b"1")
    expect(value_of(store.Get(key="a")), b"1")
    check_health(server, contract, channel)
    for stranger in (server.channel, server.secure()):
        call = lambda: contract.client(stranger, STORE).Ping()
        expect(failed(call).code(), grpc.StatusCode.UNAVAILABLE)


@check
def client_certificates(server):
    known = server.secure(server.authority, server.certificate, server.key)
    contract = server.contract(channel=known)
    contract.client(known, STORE).Ping()
    stranger = contract.client(server.secure(server.authority), STORE)
    expect(failed(lambda: stranger.Ping()).code(), grpc.StatusCode.UNAVAILABLE)


def main():
    name, port, *files = sys.argv[1:]
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    CHECKS[name](Server(port, *files))
    print(f"{name}: everything is as it has to be")


main()
