"""Parts of the page that can be asked one by one: how times are written, what of a key is shown, where two were at work."""
from browser import expect

SPANS = {0: "0.0s", 449: "0.4s", 9999: "9.9s", 10000: "10s", 59999: "59s", 60000: "1m 00s", 185000: "3m 05s", 3600000: "1h 00m",
         7440000: "2h 04m", 86400000: "1d 00h", 273600000: "3d 04h", -5: "0.0s"}


def lease(owner, start, due=None, end=None, late=None, owed=False, overlapped=False):
    return {"owner": owner, "connection": owner, "client_name": None, "start_ms": start, "due_ms": due, "end_ms": end,
            "ended": None if end is None else "expired", "late_release_ms": late, "owed": owed, "overlapped": overlapped}


def test_spans_of_time_are_short_and_never_wrong_by_a_unit(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        page.open()
        said = page.js("async (all) => { const { span } = await import('/draw.js'); return all.map(span); }", list(SPANS))
        expect(said == list(SPANS.values()), dict(zip(SPANS, said)))


def test_a_long_key_is_cut_between_characters(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        page.open()
        said = page.js("""async () => {
          const { plain, name } = await import('/draw.js');
          const text = (key, limit) => name(key, limit).map((node) => node.textContent ?? node).join('');
          return [plain('a😀b', 2), plain('abc', 3), text('', 5), text('a\\u0000\\u{e0001}b', 9), text('😀'.repeat(9), 4)];
        }""")
        expect(said == ["a…", "abc", "(empty)", "a\\x00\\u{e0001}b", "😀😀…"], said)


def test_two_are_at_work_only_where_the_owners_differ(browser, world):
    slow = lease("slow", 0, 100, 100, late=500, overlapped=True)
    owing = lease("slow", 0, 100, 100, owed=True, overlapped=True)
    cases = [
        ([slow, lease("quick", 120, 900, 300)], [[120, 300]]),
        ([slow, lease("quick", 120, 900)], [[120, 500]]),
        ([slow, lease("slow", 120, 900)], []),
        ([lease("slow", 0, 100, 100, late=500), lease("quick", 120, 900)], []),
        ([owing, lease("quick", 120, 900)], [[120, 1000]]),
        ([slow, lease("quick", 120, 200, 200, late=700, overlapped=True), lease("third", 250, 900, 600)], [[120, 500], [250, 500], [250, 600]]),
        ([lease("slow", 0, None)], []),
    ]
    with world.proxy() as proxy, browser.page(proxy) as page:
        page.open()
        for leases, bands in cases:
            found = page.js("async (leases) => { const { overlaps } = await import('/timeline.js'); return overlaps(leases, 1000).map((one) => [one.from, one.to]); }", leases)
            expect(sorted(found) == bands, "of", leases, "was said", found)
