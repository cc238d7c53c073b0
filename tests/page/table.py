"""The table of locks: that it shows what is held, at once, and what is asked for; and that nothing a client sends disturbs
it."""
import time

from browser import expect, usually

PATIENCE = 1.0      # seconds within which a lock must appear, and be gone
HOSTILE = [
    b'lock:<img src=x onerror="document.title=1;alert(1)">',
    b"lock:</a></td></tr></table><script>alert(1)</script>",
    b"lock:\"onmouseover=alert(1) x='",
    b"lock:&lt;b&gt;%3Cscript%3E",
    b"lock:bell\x07nul\x00esc\x1b[31mred\r\nnext",
    "lock:\u202egpj.exe\u2066\u200b\u200f end".encode(),
    "lock:שלום עולם".encode(),
    "lock:z̶̢̧̛̤̬̝̪͍̰̈́͗̏̆̀̚a̸̧̡̯̼l̷̨̛̝̫̺̇̋̑͗ģ̵̛̤o̴̡".encode(),
    b"lock:not\xff\xfe\xc3text\x80",
    b"lock:" + b"long" * 1000,
    b"lock:   spaces   ",
    b"lock:../../api/v1/rules?x=1#y",
    b"lock:a/b%2Fc\\d",
    b"lock:",
]


# Longer than the keys that the table follows: only counted there, and shown as the server has it.
OVERLONG = b"lock:" + b"long" * 2560


def named(proxy, name):
    connection = proxy.connect()
    connection.ask("CLIENT", "SETNAME", name)
    return connection


def test_every_view_loads_without_complaint_and_asks_nobody_else(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        page.open("").live()
        for view in ("locks", "rules", "suggestions", "records", "lock/0/lock:x", "nonsense", "lock", "lock/x/a", "lock/0/%zz"):
            page.tab.goto("%s/#/%s" % (page.base, view))
            page.tab.wait_for_timeout(150)
            expect(page.text("main").strip(), "the view %s is empty" % view)
        page.open("#/locks")
        page.until("words on what to do where nothing is held", lambda: "SET lock:demo 1 NX EX 60" in page.text(".empty"))
        addresses = {url.split("?")[0].replace(page.base, "") for url in page.requests}
        expect({"/", "/page.js", "/page.css", "/api/v1/live"} <= addresses, "not all was asked for:", addresses)
        return "%d requests, all to lockward" % len(page.requests)


def test_a_lock_appears_and_ends_within_a_second(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        page.open().live()
        client = named(proxy, "worker-1")
        page.js("() => watch('lock:quick')")
        appear, vanish = [], []
        for turn in range(10):
            expect(client.ask("SET", "lock:quick", "1", "NX", "EX", "60") == "OK", "the lock was not granted")
            granted = time.time() * 1000
            seen = page.until("the row", lambda: page.js("() => seen.length === %d && seen.at(-1)" % (2 * turn + 1)))
            appear.append((seen[1] - granted) / 1000)
            page.tab.wait_for_timeout(37 * turn)    # not always at the same place between two snapshots
            expect(client.ask("DEL", "lock:quick") == 1, "the lock was not released")
            released = time.time() * 1000
            seen = page.until("its end", lambda: page.js("() => seen.length === %d && seen.at(-1)" % (2 * turn + 2)))
            vanish.append((seen[1] - released) / 1000)
        expect(usually(appear) < PATIENCE and usually(vanish) < PATIENCE, "too late:", appear, vanish)
        return "shown after %.0f ms (at most %.0f), gone after %.0f ms (at most %.0f)" % (
            sorted(appear)[5] * 1000, max(appear) * 1000, sorted(vanish)[5] * 1000, max(vanish) * 1000)


def test_a_lock_that_expires_goes_by_itself(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        page.open().live()
        page.js("() => watch('lock:short')")
        client, late = named(proxy, "worker-1"), []
        for turn in range(5):
            expect(client.ask("SET", "lock:short", "1", "NX", "PX", "700") == "OK", "the lock was not granted")
            due = time.time() * 1000 + 700
            seen = page.until("its end", lambda: page.js("() => seen.length === %d && seen.at(-1)" % (2 * turn + 2)))
            late.append((seen[1] - due) / 1000)
        expect(usually(late) < PATIENCE, "rows stayed so long after the expiry:", late)
        return "gone %.0f ms after the expiry" % (sorted(late)[2] * 1000)


def test_holder_and_waiters_are_those_of_the_api(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        holder, waiting = named(proxy, "holder"), [named(proxy, "waiter-%d" % i) for i in range(3)]
        holder.ask("SET", "lock:wanted", "1", "NX", "EX", "60")
        for turn in range(4):
            for client in waiting:
                expect(client.ask("SET", "lock:wanted", "2", "NX", "EX", "60") is None, "two hold one lock")
        page.open().live()
        row = page.until("three waiters", lambda: (row := page.row("lock:wanted")) and row["Waiters"].startswith("3") and row)
        (lock,) = proxy.json("/api/v1/locks")["locks"]
        expect(row["Owner"] == lock["owner"] == "client-name=holder", row, lock)
        expect(lock["waiting"] == 3 and lock["client_address"] in row["Client"], row, lock)
        page.tab.locator("a.key").click()
        page.until("the waiters", lambda: page.count(".waiters tbody tr") == 3)
        shown = page.js("() => [...document.querySelectorAll('.waiters tbody tr')].map((row) => [row.children[0].textContent, row.children[3].textContent])")
        known = proxy.json("/api/v1/locks/lock:wanted")["known"]
        expect(shown == [[one["owner"], str(one["tries"])] for one in known["waiters"]], shown, known["waiters"])
        expect("client-name=holder" in page.text(".holder"), page.text(".holder"))


def test_search_filter_sort_and_pause_by_keyboard_alone(browser, world):
    rules = '[[locks]]\nname = "%s"\npattern = "%s"\nowner = "client-name"\n'
    with world.proxy(rules % ("alpha", "lock:alpha:*") + rules % ("beta", "lock:*")) as proxy, browser.page(proxy) as page:
        client = named(proxy, "worker-1")
        for key, ttl in (("lock:alpha:1", 50), ("lock:beta:2", 40), ("lock:alpha:3", 30), ("lock:beta:4", None)):
            client.ask("SET", key, "1", "NX", *(["EX", ttl] if ttl else []))
            page.tab.wait_for_timeout(15)
        page.open().live()
        page.until("four rows", lambda: len(page.keys()) == 4)
        expect(page.keys()[0] == "lock:alpha:1", "not the oldest first:", page.keys())
        press, typed = page.tab.keyboard.press, page.tab.keyboard.type

        def tab_to(selector):
            for _ in range(40):
                if page.js("(selector) => document.activeElement.matches(selector)", selector):
                    outline = page.js("() => getComputedStyle(document.activeElement).outlineStyle")
                    expect(outline != "none", "the focus on %s cannot be seen" % selector)
                    return
                press("Tab")
            expect(False, "Tab does not lead to", selector)

        press("/")
        typed("alpha")
        page.until("the search", lambda: page.keys() == ["lock:alpha:1", "lock:alpha:3"])
        expect("pattern=alpha" in page.tab.url, page.tab.url)
        press("Escape")
        page.until("all rows again", lambda: len(page.keys()) == 4)
        tab_to("#rule")
        press("ArrowDown")
        press("ArrowDown")
        page.until("one rule's locks", lambda: page.keys() == ["lock:beta:2", "lock:beta:4"])
        tab_to("#warned")
        press("Space")
        page.until("only with warnings", lambda: page.keys() == ["lock:beta:4"])
        tab_to("main button:not([data-sort]):not([disabled])")
        press("Enter")
        page.until("no filter", lambda: len(page.keys()) == 4)
        tab_to("[data-sort=ttl]")
        press("Enter")
        page.until("the least TTL first", lambda: page.keys() == ["lock:alpha:3", "lock:beta:2", "lock:alpha:1", "lock:beta:4"])
        expect(page.count("th[aria-sort=ascending] [data-sort=ttl]") == 1, "aria-sort does not say so")
        page.js("() => document.querySelector('[data-sort=key]').focus()")
        press("Enter")
        press("Enter")
        page.until("the last key first", lambda: page.keys()[0] == "lock:beta:4" and page.count("th[aria-sort=descending] [data-sort=key]") == 1)
        page.tab.go_back()
        page.tab.go_back()
        page.until("the sort of two steps ago", lambda: page.count("th[aria-sort=ascending] [data-sort=ttl]") == 1)
        page.js("() => document.activeElement.blur()")
        press("p")
        page.until("the note", lambda: "paused since" in page.text("#link-words"))
        client.ask("SET", "lock:while-paused", "1", "NX", "EX", "60")
        before = page.text("table.locks")
        page.tab.wait_for_timeout(1500)
        expect(page.text("table.locks") == before, "the table moves while it is paused")
        press("p")
        page.until("the new lock", lambda: "lock:while-paused" in page.keys())


def test_the_address_keeps_the_view(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        client = named(proxy, "worker-1")
        for number in range(3):
            client.ask("SET", "lock:job:%d" % number, "1", "NX", "EX", "60")
        page.open("#/locks?pattern=job%3A1&sort=key&order=desc").live()
        page.until("the row", lambda: page.keys() == ["lock:job:1"])
        expect(page.tab.locator("#search").input_value() == "job:1", "the search field does not say so")
        page.tab.locator("a.key").click()
        page.until("the lock", lambda: page.text("h1") == "lock:job:1")
        page.tab.go_back()
        page.until("the same view", lambda: page.keys() == ["lock:job:1"])
        page.open("#/locks?rule=nobody")
        page.until("what is wrong", lambda: page.count(".empty:not([hidden])") and 'no rule "nobody"' in page.text(".empty"))
        page.allowed = ["400"]
        page.complaints = [text for text in page.complaints if "400" not in text]


def test_more_than_a_hundred_locks_come_in_pages(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        client = named(proxy, "worker-1")
        for number in range(230):
            client.ask("SET", "lock:%04d" % number, "1", "NX", "EX", "600")
        page.open("#/locks?sort=key").live()
        page.until("the first page", lambda: len(page.keys()) == 100 and "1–100 of 230" in page.text(".range"))
        page.tab.locator("text=Next").click()
        page.tab.locator("text=Next").click()
        page.until("the last page", lambda: page.keys()[:1] == ["lock:0200"] and len(page.keys()) == 30)
        expect("page=3" in page.tab.url and page.tab.locator("text=Next").is_disabled(), page.tab.url)
        for number in range(150, 230):
            client.ask("DEL", "lock:%04d" % number)
        page.until("the page that is the last now", lambda: page.keys()[:1] == ["lock:0100"] and "101–150 of 150" in page.text(".range"))
        expect(page.text("[data-figure=held] dd") == "150", page.text("[data-figure=held]"))


def test_no_key_or_name_can_disturb_the_page(browser, world):
    rules = '[[locks]]\nname = "<i>jobs</i>"\npattern = "lock:*"\nowner = "client-name"\n'
    with world.proxy(rules) as proxy, browser.page(proxy) as page:
        client = named(proxy, "<img/src=x/onerror=alert(2)>")
        for key in HOSTILE:
            expect(client.ask("SET", key, "1", "NX", "EX", "600") == "OK", "not granted: %r" % key[:60])
        page.open().live()
        page.until("all of them", lambda: len(page.keys()) == len(HOSTILE))
        shown = page.keys()
        expect("lock:bell\\x07nul\\x00esc\\x1b[31mred\\x0d\\x0anext" in shown, shown)
        expect("lock:\\u{202e}gpj.exe\\u{2066}\\u{200b}\\u{200f} end" in shown, shown)
        tall = page.js("() => [...document.querySelectorAll('table.locks tbody tr')].map((row) => row.offsetHeight)")
        expect(max(tall) <= 60, "a key makes its row %d pixels high" % max(tall))
        expect(page.count("main img, main script, main i") == 0, "a key became markup")
        addresses = page.js("() => [...document.querySelectorAll('a.key')].map((link) => link.getAttribute('href'))")
        expect(client.ask("SET", OVERLONG, "1", "NX", "EX", "600") == "OK", "the longest was not granted")
        page.until("that the table is not complete", lambda: page.count(".note:not([hidden])") and "left out 1 lease" in page.text(".note"))
        for address in [*addresses, "#/lock/0/" + OVERLONG.decode()]:
            page.tab.goto(page.base + "/" + address)
            page.until("the lock %.60s" % address, lambda: page.count(".lock-grid:not([hidden])") == 1)
            page.until("its holder", lambda: "onerror" in page.text(".holder"))
            expect(page.count("main img, main script, main i") == 0, "a key became markup: %.60s" % address)
            wide = page.js("() => document.documentElement.scrollWidth - innerWidth")
            expect(wide <= 0, "the page of %.60s is %d pixels too wide" % (address, wide))
        page.open("#/records")
        page.tab.locator("text=Read from the server").click()
        page.until("the records", lambda: page.count("table.records tbody tr") == len(HOSTILE) + 1)
        expect(page.count("main img, main script, main i") == 0, "a record's key became markup")


def test_a_lost_connection_is_said_and_mended(browser, world):
    with world.proxy() as proxy, browser.page(proxy, allowed=["ERR_"]) as page:
        page.open().live()
        proxy.kill()
        page.until("the words", lambda: "disconnected, trying again" in page.text("#link-words"))
        proxy.start()
        named(proxy, "worker-1").ask("SET", "lock:after", "1", "NX", "EX", "60")
        page.until("live again", lambda: page.text("#link-words") == "live" and page.keys() == ["lock:after"], 20)


def test_a_server_that_is_away_is_said(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        page.open().live()
        world.server.kill()
        page.until("the banner", lambda: page.count("#not-ready:not([hidden])") and "not ready" in page.text("#not-ready"), 20)
        world.server.revive()
        page.until("no banner", lambda: not page.count("#not-ready:not([hidden])"), 20)
