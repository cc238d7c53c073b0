//! What the wire layer costs: nanoseconds for each request and reply. `cargo bench --bench scanner`; the throughput
//! line gives elements (frames) a second, and the time divided by the frames of a batch is the figure to compare.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lockward::resp::frame::{elements, leading_word};
use lockward::resp::reply::ReplyScanner;
use lockward::resp::request::{RequestScanner, Scanned};

const BATCH: u64 = 100;

fn scan_requests(scanner: &mut RequestScanner, mut input: &[u8]) -> usize {
    let mut arguments = 0;
    while let Ok(Scanned::Request { len }) = scanner.scan(input) {
        arguments += scanner.args(input).len();
        scanner.next();
        input = input.get(len..).unwrap_or_default();
    }
    arguments
}

fn scan_replies(scanner: &mut ReplyScanner, mut input: &[u8]) -> usize {
    let mut replies = 0;
    while let Ok(step) = scanner.scan(input) {
        if !step.done {
            break;
        }
        replies += 1;
        scanner.next();
        input = input.get(step.taken..).unwrap_or_default();
    }
    replies
}

fn requests(c: &mut Criterion) {
    let value = "x".repeat(16 * 1024);
    let mut group = c.benchmark_group("request");
    group.throughput(Throughput::Elements(BATCH));
    for (name, request) in [
        ("get", "*2\r\n$3\r\nGET\r\n$7\r\nkey:123\r\n".to_owned()),
        (
            "set_nx_ex",
            "*6\r\n$3\r\nSET\r\n$8\r\nlock:abc\r\n$1\r\n1\r\n$2\r\nNX\r\n$2\r\nEX\r\n$2\r\n30\r\n".to_owned(),
        ),
        (
            "set_16k",
            format!("*3\r\n$3\r\nSET\r\n$7\r\nkey:123\r\n$16384\r\n{value}\r\n"),
        ),
        ("inline_get", "GET key:123\r\n".to_owned()),
    ] {
        let input = request.repeat(BATCH as usize).into_bytes();
        let mut scanner = RequestScanner::new();
        group.bench_function(name, |b| {
            b.iter(|| black_box(scan_requests(&mut scanner, black_box(&input))))
        });
    }
    group.finish();
}

fn replies(c: &mut Criterion) {
    let value = "x".repeat(16 * 1024);
    let mut group = c.benchmark_group("reply");
    group.throughput(Throughput::Elements(BATCH));
    for (name, reply) in [
        ("ok", "+OK\r\n".to_owned()),
        ("integer", ":1\r\n".to_owned()),
        ("bulk", "$5\r\nhello\r\n".to_owned()),
        ("bulk_16k", format!("$16384\r\n{value}\r\n")),
        ("array_of_10", format!("*10\r\n{}", "$5\r\nhello\r\n".repeat(10))),
    ] {
        let input = reply.repeat(BATCH as usize).into_bytes();
        let mut scanner = ReplyScanner::new();
        group.bench_function(name, |b| {
            b.iter(|| black_box(scan_replies(&mut scanner, black_box(&input))))
        });
    }
    group.finish();
}

fn peeking(c: &mut Criterion) {
    let mut group = c.benchmark_group("frame");
    let message = b">3\r\n$7\r\nmessage\r\n$7\r\nchannel\r\n$5\r\nhello\r\n";
    group.bench_function("leading_word", |b| {
        b.iter(|| black_box(leading_word(black_box(message))))
    });
    group.bench_function("elements", |b| {
        b.iter(|| elements(black_box(message)).map(Iterator::count))
    });
    group.finish();
}

criterion_group!(benches, requests, replies, peeking);
criterion_main!(benches);
