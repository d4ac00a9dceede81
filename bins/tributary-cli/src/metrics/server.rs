//! Serves metrics and health over HTTP, from a thread of its own: it answers while the run computes.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};

use super::Observer;

/// The media type of the text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
/// How long a client may take over its request's head.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections answered at once; more wait to be taken.
const AT_ONCE: usize = 32;

/// A server that answers until the process ends.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
}

impl Server {
    /// Listens and begins to answer.
    ///
    /// # Errors
    /// When the address is taken or not this machine's.
    pub fn start(address: SocketAddr, observer: Arc<Observer>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serve = move || runtime.block_on(serve(listener, observer));
        std::thread::Builder::new().name("metrics".to_owned()).spawn(serve)?;
        Ok(Self { address })
    }

    /// Where it listens; with port 0 the system has chosen one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn serve(listener: std::net::TcpListener, observer: Arc<Observer>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::warn!(%error, "metrics are not served"),
    };
    let turns = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
    loop {
        let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // no file handle is free, most often
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let observer = Arc::clone(&observer);
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let observer = Arc::clone(&observer);
                async move { Ok::<_, Infallible>(answer(&request, &observer)) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .serve_connection(TokioIo::new(stream), answer);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the metrics ended early");
            }
            drop(turn);
        });
    }
}

fn answer(request: &Request<Incoming>, observer: &Observer) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n".to_owned());
        refused.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match request.uri().path() {
        "/metrics" => response(StatusCode::OK, METRICS, observer.metrics()),
        "/health" => {
            let (well, document) = observer.health();
            response(if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, JSON, document)
        }
        _ => response(StatusCode::NOT_FOUND, TEXT, "here are /metrics and /health\n".to_owned()),
    }
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}
