"""The page of one lock: the timeline of the founding bug, and release by force."""
import time

from browser import expect, usually
from harness import marks
from table import named

SVG = ".drawing svg "


def boxes(page, selector):
    """Where the shapes of the timeline stand: (left, right) in pixels."""
    return page.js("""(selector) => [...document.querySelectorAll(selector)].map((node) => {
      const box = node.getBoundingClientRect();
      return [box.left, box.right];
    })""", SVG + selector)


def test_the_timeline_shows_an_overrun_and_an_overlap(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        slow, quick = named(proxy, "slow"), named(proxy, "quick")
        page.open("#/lock/0/lock:invoice")
        expect(slow.ask("SET", "lock:invoice", "1", "NX", "PX", "600") == "OK", "not granted")
        while quick.ask("SET", "lock:invoice", "2", "NX", "PX", "30000") is None:
            time.sleep(0.02)
        # The first holder is still at work: hatched to this moment, and a band over both.
        page.until("the overlap", lambda: page.count(SVG + ".overlap") == 1)
        expect(page.count(SVG + ".overrun.owed") == 1 and page.count(SVG + ".late") == 0, "an overrun that is over")
        first = boxes(page, ".overlap")[0]
        page.until("that it grows", lambda: boxes(page, ".overlap") and "so far" in page.text("figcaption"))
        time.sleep(0.5)
        expect(slow.ask("DEL", "lock:invoice") == 0, "the late release deleted the lease of the other")
        page.until("the late release", lambda: page.count(SVG + ".late") == 1 and page.count(SVG + ".overrun.owed") == 0)
        (overrun,), (overlap,), (late,) = boxes(page, ".overrun"), boxes(page, ".overlap"), boxes(page, ".late")
        past, live = boxes(page, ".lease:not(.live)"), boxes(page, ".lease.live")
        expect(len(past) == 1 and len(live) == 1, "not two leases:", past, live)
        expect(abs(past[0][1] - overrun[0]) < 3, "the overrun does not follow its lease:", past, overrun)
        expect(abs(overlap[0] - live[0][0]) < 3, "the overlap does not begin with the second lease:", overlap, live)
        expect(abs(overlap[1] - overrun[1]) < 3 and abs((late[0] + late[1]) / 2 - overrun[1]) < 4, "they do not end together:", overlap, overrun, late)
        words = page.text("figcaption")
        expect("slow overran its TTL by" in words and "quick held the lock beside slow: two at work for" in words, words)
        label = page.js("() => document.querySelector('.drawing svg').getAttribute('aria-label')")
        expect(label == words, "what is read out is something else:", label)
        page.tab.locator("summary").click()
        page.until("the table", lambda: page.count("details table tbody tr") == 2)
        expect("too late" in page.text("details table") and "with quick" in page.text("details table"), page.text("details table"))
        events = page.js("() => [...document.querySelectorAll('.events li')].map((entry) => entry.dataset.event)")
        expect({"acquired", "contended", "expired", "late_release"} <= set(events), "the history lacks something:", events)
        expect(first[1] > first[0], "the band had no width:", first)
        (late_entry,) = [entry for entry in proxy.json("/api/v1/locks/lock:invoice")["known"]["spans"] if entry["late_release_ms"]]
        return "overran by %d ms" % (late_entry["late_release_ms"] - late_entry["due_ms"])


def test_a_lock_page_follows_its_lock_within_a_second(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        client = named(proxy, "worker-1")
        page.open("#/lock/0/lock:followed")
        page.until("that nobody holds it", lambda: page.count(".holder") and "Nobody holds it" in page.text(".holder"))
        taken, given = [], []
        for _ in range(5):
            client.ask("SET", "lock:followed", "1", "NX", "EX", "60")
            begun = time.monotonic()
            page.until("the holder", lambda: "worker-1" in page.text(".holder"))
            taken.append(time.monotonic() - begun)
            client.ask("DEL", "lock:followed")
            begun = time.monotonic()
            page.until("its end", lambda: "Nobody holds it" in page.text(".holder"))
            given.append(time.monotonic() - begun)
        expect(usually(taken + given) < 1, "too late:", taken, given)
        return "shown after at most %.0f ms, gone after at most %.0f ms" % (max(taken) * 1000, max(given) * 1000)


def test_an_event_during_a_question_is_not_answered_by_it(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        client = named(proxy, "worker-1")
        page.tab.clock.install()
        page.open("#/lock/0/lock:overtaken").live()
        page.until("that nobody holds it", lambda: page.count(".holder") and "Nobody holds it" in page.text(".holder"))
        held = []
        page.tab.route("**/api/v1/locks/lock:overtaken*",
                       lambda route: route.continue_() if held else held.append((route, route.fetch())))
        page.until("a question", lambda: held)
        page.tab.clock.pause_at(time.time() + 1)
        client.ask("SET", "lock:overtaken", "1", "NX", "EX", "60")
        page.tab.wait_for_timeout(500)      # the event is there
        route, answer = held[0]
        with page.tab.expect_response("**/api/v1/locks/lock:overtaken*"):
            route.fulfill(response=answer)
        page.tab.wait_for_timeout(200)      # the page has read it
        page.tab.clock.run_for(300)         # less than until the next question by itself
        page.until("the holder", lambda: "worker-1" in page.text(".holder"))


def dialog(page, token, reason="worker 12 is gone"):
    if not page.count("dialog[open]"):
        page.tab.locator("text=Release by force …").click()
        page.until("the dialog", lambda: page.count("dialog[open]") == 1)
        expect(page.js("() => document.activeElement.id") == "reason", "the dialog does not take the focus")
        expect("lock:stuck" in page.text("dialog .target") and "client-name=crashed" in page.text("dialog .target"), page.text("dialog"))
    page.tab.locator("#reason").fill(reason)
    page.tab.locator("#token").fill(token)
    page.tab.keyboard.press("Enter")


def test_release_by_force_with_and_without_the_right_token(browser, world):
    with world.proxy() as proxy, browser.page(proxy, allowed=["401"]) as page:
        client = named(proxy, "crashed")
        client.ask("SET", "lock:stuck", "1", "NX")
        page.open("#/lock/0/lock:stuck")
        dialog(page, marks.WRONG_TOKEN)
        page.until("that the token is wrong", lambda: "not the admin token" in page.text("dialog .said"))
        expect(client.ask("EXISTS", "lock:stuck") == 1, "a wrong token released the lock")
        dialog(page, "")
        page.tab.wait_for_timeout(200)
        expect(client.ask("EXISTS", "lock:stuck") == 1 and page.count("dialog[open]") == 1, "no token released the lock")
        dialog(page, marks.ADMIN_TOKEN)
        page.until("that it is released", lambda: "Released, after it was held for" in page.text("dialog .said"))
        expect(client.ask("EXISTS", "lock:stuck") == 0, "it is not released")
        with open(proxy.log) as log:
            expect("worker 12 is gone" in log.read(), "the log does not say why")
        page.tab.keyboard.press("Escape")
        page.until("that nobody holds it", lambda: "Nobody holds it" in page.text(".holder"))
        kept = page.js("() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.documentElement.outerHTML])")
        expect(marks.ADMIN_TOKEN not in kept and not any(marks.ADMIN_TOKEN in url for url in page.requests), "the token is written down somewhere")
        # It is kept in the page's memory, so that the next release needs no typing; a new page knows nothing.
        client.ask("SET", "lock:stuck", "1", "NX")
        page.until("the button", lambda: page.tab.locator("text=Release by force …").is_visible())
        page.tab.locator("text=Release by force …").click()
        expect(page.tab.locator("#token").input_value() == marks.ADMIN_TOKEN, "the token is asked for again")
        page.tab.reload()
        page.until("the button", lambda: page.tab.locator("text=Release by force …").is_visible())
        page.tab.locator("text=Release by force …").click()
        expect(page.tab.locator("#token").input_value() == "", "the token outlived its page")


def test_release_by_force_of_what_is_gone_says_so(browser, world):
    with world.proxy() as proxy, browser.page(proxy, allowed=["404"]) as page:
        client = named(proxy, "crashed")
        client.ask("SET", "lock:stuck", "1", "NX")
        page.open("#/lock/0/lock:stuck")
        page.tab.locator("text=Release by force …").click()
        client.ask("DEL", "lock:stuck")
        page.tab.locator("#token").fill(marks.ADMIN_TOKEN)
        page.tab.keyboard.press("Enter")
        page.until("that it is free", lambda: "nothing to release any more" in page.text("dialog .said"))


def test_release_by_force_says_not_only_where_that_is_sure(browser, world):
    with world.proxy() as proxy, browser.page(proxy, allowed=["with a status of", "ERR_"]) as page:
        named(proxy, "crashed").ask("SET", "lock:stuck", "1", "NX")
        answers = []

        def answer(route):
            if route.request.method != "DELETE":
                route.continue_()
            elif answers[-1] is None:
                route.abort()
            else:
                route.fulfill(status=answers[-1], content_type="application/json", body='{"error": "the words"}')

        page.tab.route("**/api/v1/locks/**", answer)
        page.open("#/lock/0/lock:stuck")
        for status in (500, 502, 504, 400, None):
            answers.append(status)
            dialog(page, marks.ADMIN_TOKEN)
            known = status == 400
            page.until("what came of it with %s" % status, lambda: ("does not understand this: the words" if known else
                       "lockward cannot be reached" if status is None else "the words") in page.text("dialog .said"))
            said = page.text("dialog .said")
            expect(("not known whether" in said) != known and "was not released" not in said, status, said)
            page.tab.keyboard.press("Escape")
            page.until("that it is closed", lambda: not page.count("dialog[open]"))


def test_an_answer_that_does_not_come_is_not_an_address_that_is_away(browser, world):
    with world.proxy() as proxy, browser.page(proxy, allowed=["ERR_"]) as page:
        page.open().live()
        held = []
        page.tab.route("**/api/v1/slow", lambda route: held.append(route))
        said = page.js("""async () => {
          const { ask } = await import("/live.js");
          const aborted = new AbortController();
          setTimeout(() => aborted.abort(), 100);
          const both = [AbortSignal.timeout(100), aborted.signal].map((signal) => ask("api/v1/slow", { signal }).catch((error) => error.message));
          return Promise.all(both);
        }""")
        expect(said == ["there was no answer in time"] * 2 and len(held) == 2, said)
        for route in held:
            route.abort()


def test_the_stream_of_a_lock_page_is_tried_again_and_back_at_once(browser, world):
    with world.proxy() as proxy, browser.page(proxy, allowed=["ERR_"]) as page:
        page.open("#/lock/0/lock:followed").live()
        tried = lambda: sum("/api/v1/events" in url for url in page.requests)
        before = tried()
        proxy.kill()
        page.until("the words", lambda: "disconnected, trying again" in page.text("#link-words"))
        # After 1, 2 and 4 seconds, while a question for the lock fails each second.
        page.until("the third try", lambda: tried() >= before + 3, 20)
        page.until("a countdown", lambda: "in" in page.text("#link-wait"))
        proxy.start()
        begun = time.monotonic()
        page.until("live again", lambda: page.text("#link-words") == "live")
        took = time.monotonic() - begun
        # The next try by itself would be 8 seconds after the third.
        expect(took < 4, "live again only after %.1f s" % took)
        return "live %.1f s after the start" % took


def test_what_is_opened_while_paused_shows_its_first_answer(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        client = named(proxy, "worker-1")
        client.ask("SET", "lock:first", "1", "NX", "EX", "60")
        page.open().live()
        page.until("the row", lambda: page.keys() == ["lock:first"])
        page.tab.keyboard.press("p")
        page.tab.locator("nav a[data-view=rules]").click()
        page.until("the rules", lambda: page.count("article.card") == 1 and page.text("[data-figure=held] dd") == "1")
        page.tab.locator("nav a[data-view=locks]").click()
        page.tab.locator("a.key").click()
        page.until("the lock", lambda: page.text("h1") == "lock:first" and "worker-1" in page.text(".holder"))
        client.ask("DEL", "lock:first")
        before = page.text(".holder")
        page.tab.wait_for_timeout(1500)
        expect(page.text(".holder") == before, "the lock moves while it is paused")
        expect("paused since" in page.text("#link-words"), page.text("#link-words"))
        page.tab.keyboard.press("p")
        page.until("its end", lambda: "Nobody holds it" in page.text(".holder"))


def test_release_by_force_where_no_token_is_configured(browser, world):
    with world.proxy(token="") as proxy, browser.page(proxy, allowed=["403"]) as page:
        client = named(proxy, "crashed")
        client.ask("SET", "lock:stuck", "1", "NX")
        page.open("#/lock/0/lock:stuck")
        dialog(page, marks.ADMIN_TOKEN)
        page.until("that there is no token", lambda: "No admin token is configured" in page.text("dialog .said"))
        expect(client.ask("EXISTS", "lock:stuck") == 1, "it was released all the same")
