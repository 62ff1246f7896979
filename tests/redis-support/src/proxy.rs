//! A proxy between a client and its server that makes faults.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// What the proxy does with its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: bytes pass both ways.
    None,
    /// Every piece is held back this long, each way.
    Delay(Duration),
    /// Connections break, and new ones are accepted and break at once.
    Cut,
    /// Connections break, and nobody listens.
    Refuse,
    /// Connections stay open, and nothing passes either way.
    Hang,
    /// Requests pass and answers are lost.
    SwallowReplies,
    /// The next answer is lost and its connection breaks; all others pass.
    LoseNextReply,
}

/// A listener on a free loopback port that passes everything on to a server.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    upstream: AtomicU16,
    fault: Mutex<Fault>,
    changed: Condvar,
    streams: Mutex<Vec<TcpStream>>,
    accepted: AtomicUsize,
    lost: AtomicUsize,
    ended: AtomicBool,
}

impl Proxy {
    /// A proxy in front of the loopback port `upstream`.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start(upstream: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared {
            upstream: AtomicU16::new(upstream),
            fault: Mutex::new(Fault::None),
            changed: Condvar::new(),
            streams: Mutex::new(Vec::new()),
            accepted: AtomicUsize::new(0),
            lost: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&accepting, listener, port));
        Self { port, shared }
    }

    /// The port that clients use.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Does `fault` from now on.
    pub fn set(&self, fault: Fault) {
        *self.shared.fault.lock() = fault;
        self.shared.changed.notify_all();
        if matches!(fault, Fault::Cut | Fault::Refuse) {
            self.shared.break_all();
        }
    }

    /// Passes on to another server from now on.
    pub fn redirect(&self, upstream: u16) {
        self.shared.upstream.store(upstream, Ordering::SeqCst);
        self.shared.break_all();
    }

    /// Passes new connections on to another server from now on; the others stay.
    pub fn lead_to(&self, upstream: u16) {
        self.shared.upstream.store(upstream, Ordering::SeqCst);
    }

    /// Breaks every connection once; new ones pass.
    pub fn break_once(&self) {
        self.shared.break_all();
    }

    /// How many connections were accepted so far.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many pieces of answers were lost so far.
    pub fn lost(&self) -> usize {
        self.shared.lost.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.set(Fault::Refuse);
    }
}

impl Shared {
    fn fault(&self) -> Fault {
        *self.fault.lock()
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    fn break_all(&self) {
        for stream in self.streams.lock().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Waits while nothing passes.
    fn await_passage(&self) {
        let mut fault = self.fault.lock();
        while *fault == Fault::Hang && !self.has_ended() {
            self.changed
                .wait_for(&mut fault, Duration::from_millis(100));
        }
    }
}

/// Accepts until the proxy ends; while nobody is to listen, the port is closed.
fn accept(shared: &Arc<Shared>, listener: TcpListener, port: u16) {
    let mut listening = Some(listener);
    while !shared.has_ended() {
        if shared.fault() == Fault::Refuse {
            listening = None;
            thread::sleep(Duration::from_millis(2));
            continue;
        }
        if listening.is_none() {
            listening = TcpListener::bind(("127.0.0.1", port)).ok();
        }
        let Some(listener) = &listening else {
            thread::sleep(Duration::from_millis(2));
            continue;
        };
        listener.set_nonblocking(true).expect("a socket");
        match listener.accept() {
            Ok((client, _)) => serve(shared, client),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn serve(shared: &Arc<Shared>, client: TcpStream) {
    shared.accepted.fetch_add(1, Ordering::SeqCst);
    if shared.fault() == Fault::Cut {
        return;
    }
    let _ = client.set_nonblocking(false);
    let Ok(server) = TcpStream::connect(("127.0.0.1", shared.upstream.load(Ordering::SeqCst)))
    else {
        return;
    };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let copies = [client.try_clone(), server.try_clone()];
    let [Ok(client_copy), Ok(server_copy)] = copies else {
        return;
    };
    let keep = [client.try_clone(), server.try_clone()];
    shared.streams.lock().extend(keep.into_iter().flatten());
    let requests = Arc::clone(shared);
    thread::spawn(move || pump(&requests, client_copy, server_copy, false));
    let answers = Arc::clone(shared);
    thread::spawn(move || pump(&answers, server, client, true));
}

/// Passes bytes on until either end is closed.
fn pump(shared: &Shared, mut from: TcpStream, mut to: TcpStream, is_answer: bool) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        shared.await_passage();
        match shared.fault() {
            Fault::Delay(time) => thread::sleep(time),
            Fault::Cut | Fault::Refuse => break,
            Fault::SwallowReplies if is_answer => {
                shared.lost.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            Fault::LoseNextReply if is_answer => {
                *shared.fault.lock() = Fault::None;
                shared.lost.fetch_add(1, Ordering::SeqCst);
                break;
            }
            _ => {}
        }
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
