"""How the page looks: light and dark, phone and desktop, names for those who cannot see it."""
from browser import DESKTOP, PHONE, expect
from table import named

VIEWS = ["locks", "rules", "suggestions", "records", "lock/0/lock:shown:1"]

# The contrast of each visible text with what is behind it (WCAG 2, 1.4.3); gives those that have too little.
CONTRAST = """() => {
  const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    paint.clearRect(0, 0, 1, 1); paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => top.slice(0, 3).map((value, i) => value * top[3] + under[i] * (1 - top[3]));
  const light = ([r, g, b]) => {
    const part = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
  };
  const poor = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || !node.checkVisibility() || node.closest(".unseen-caption, :disabled, noscript, option, svg title, .skip")) continue;
    const style = getComputedStyle(node);
    const ground = behind(node);
    const ink = over(rgba(node.ownerSVGElement ? style.fill : style.color), ground);
    const [a, b] = [light(ink), light(ground)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) poor.push(`${ratio.toFixed(2)} "${texts.currentNode.textContent.slice(0, 30)}" ${node.tagName}.${node.getAttribute("class")}`);
  }
  return poor;
}"""

# Controls without a name, and identifiers that stand twice.
NAMELESS = """() => {
  const nameless = [...document.querySelectorAll("button, input, select, a[href], summary, dialog, nav, [role=img]")].filter((node) => {
    const label = node.labels?.length && [...node.labels].some((one) => one.textContent.trim());
    const by = node.getAttribute("aria-labelledby");
    return !(label || node.textContent.trim() || node.getAttribute("aria-label") || (by && document.getElementById(by)));
  });
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  return [...nameless.map((node) => node.outerHTML.slice(0, 80)), ...ids.filter((id, i) => ids.indexOf(id) !== i)];
}"""


def furnish(proxy):
    """Something of everything: held, waited for, overrun, without TTL, refused."""
    one, two = named(proxy, "one"), named(proxy, "two")
    for number in range(1, 8):
        one.ask("SET", "lock:shown:%d" % number, "1", "NX", "EX", 30 * number)
        two.ask("SET", "lock:shown:%d" % number, "1", "NX", "EX", "60")
    one.ask("SET", "lock:for-ever", "1", "NX")
    two.ask("DEL", "lock:shown:1")
    two.ask("SETNX", "app:mutex:1", "1")
    two.ask("DEL", "app:mutex:1")
    return [one, two]


def test_no_view_is_wider_than_the_screen(browser, world):
    with world.proxy() as proxy:
        clients = furnish(proxy)
        for size in (PHONE, (320, 700), (768, 1024), DESKTOP):
            with browser.page(proxy, size) as page:
                for view in VIEWS:
                    page.open("#/" + view).live()
                    if view == "records":
                        page.tab.locator("text=Read from the server").click()
                        page.until("the records", lambda: page.count("table.records tbody tr"))
                    page.tab.wait_for_timeout(200)
                    wide, inner = page.js("() => [document.documentElement.scrollWidth, innerWidth]")
                    expect(wide <= inner, "%s is %d pixels wide on a screen of %d" % (view, wide, inner))
        expect(len(clients) == 2, "the clients were open all the time")


def test_every_text_can_be_read_in_light_and_dark(browser, world):
    with world.proxy() as proxy:
        clients = furnish(proxy)
        for scheme in ("light", "dark"):
            with browser.page(proxy, scheme=scheme) as page:
                for view in VIEWS:
                    page.open("#/" + view).live()
                    page.tab.wait_for_timeout(400)
                    poor = page.js(CONTRAST)
                    expect(not poor, "%s, %s: too little contrast: %s" % (view, scheme, "; ".join(poor[:6])))
                    expect(not page.js(NAMELESS), "%s: without a name, or twice: %s" % (view, page.js(NAMELESS)))
        expect(len(clients) == 2, "the clients were open all the time")


def ground(page):
    return page.js("() => getComputedStyle(document.body).backgroundColor")


def test_the_toggle_wins_over_the_system_and_is_remembered(browser, world):
    with world.proxy() as proxy, browser.page(proxy, scheme="dark") as page:
        dark = ground(page.open().live())
        page.tab.locator("#theme").click()
        light = ground(page)
        expect(light != dark, "the toggle changes nothing")
        page.tab.reload()
        expect(ground(page.live()) == light, "the choice is forgotten")
        page.tab.locator("#theme").click()
        expect(ground(page) == dark and page.js("() => localStorage.length") == 0, "what the system says need not be kept")
        page.tab.emulate_media(color_scheme="light")
        page.until("that it follows the system", lambda: ground(page) == light)


def test_the_page_can_be_walked_by_tab(browser, world):
    with world.proxy() as proxy, browser.page(proxy) as page:
        clients = furnish(proxy)
        page.open().live()
        page.until("rows", lambda: len(page.keys()) == 8)
        page.js("() => { document.activeElement.blur(); }")
        walked = []
        for _ in range(18):
            page.tab.keyboard.press("Tab")
            walked.append(page.js("() => document.activeElement.id || document.activeElement.dataset.view || document.activeElement.dataset.sort || document.activeElement.className"))
        expect(walked[:3] == ["skip", "brand", "locks"], "not from the top:", walked)
        order = [walked.index(one) for one in ("pause", "theme", "search", "owner", "rule", "warned", "age", "ttl", "waiters")]
        expect(order == sorted(order) and "key" in walked, "not in the order of reading:", walked)
        page.open("#/locks")
        page.tab.reload()
        page.live()
        page.tab.keyboard.press("Tab")
        page.tab.keyboard.press("Enter")
        expect(page.js("() => document.activeElement.id") == "content", "the skip link leads nowhere")
        expect(len(clients) == 2, "the clients were open all the time")


def test_who_wants_no_motion_gets_none(browser, world):
    with world.proxy() as proxy, browser.page(proxy, reduced_motion="reduce") as page:
        clients = furnish(proxy)
        page.open().live()
        page.until("rows", lambda: len(page.keys()) == 8)
        moving = page.js("() => [...document.querySelectorAll('*')].filter((node) => parseFloat(getComputedStyle(node).transitionDuration) > 0 || getComputedStyle(node).animationName !== 'none').length")
        expect(moving == 0 and clients, "%d elements move" % moving)


def test_the_rules_show_the_last_minutes(browser, world):
    rules = '[[locks]]\nname = "%s"\npattern = "%s"\nowner = "client-name"\nmode = "%s"\n'
    with world.proxy(rules % ("strict", "lock:*", "enforce") + rules % ("watched", "old:*", "observe")) as proxy, browser.page(proxy) as page:
        one, two = named(proxy, "one"), named(proxy, "two")
        for prefix in ("lock", "old"):
            for number in range(4):
                one.ask("SET", "%s:%d" % (prefix, number), "1", "NX", "EX", "60")
                two.ask("SET", "%s:%d" % (prefix, number), "1", "NX", "EX", "60")
            two.ask("DEL", prefix + ":0")
        page.open("#/rules").live()
        page.until("both rules", lambda: page.count("article.card") == 2)

        def legends():
            return page.js("() => [...document.querySelectorAll('article.card')].map((card) => [...card.querySelectorAll('.legend li')].map((item) => item.textContent))")

        wanted = [["4 granted", "4 contended", "1 refused", "0 would be refused"], ["4 granted", "4 contended", "0 refused", "1 would be refused"]]
        page.until("their figures, not " + str(legends()), lambda: legends() == wanted)
        together = page.texts(".whole .legend li")
        expect(together == ["8 granted", "8 contended", "1 refused", "1 would be refused"], together)
        expect(page.count("article.card path.series.granted[d^=M]") == 2, "a chart is empty")


def test_a_suggested_rule_can_be_copied(browser, world):
    with world.proxy() as proxy, browser.page(proxy, permissions=["clipboard-read", "clipboard-write"]) as page:
        client = named(proxy, "worker-1")
        for number in range(30):
            client.ask("SET", "app:mutex:%d" % number, "1", "NX", "EX", "60")
            client.ask("DEL", "app:mutex:%d" % number)
        page.open("#/suggestions").live()
        page.until("the pattern", lambda: "app:mutex:*" in page.texts(".suggestion h3"))
        page.tab.locator(".suggestion button").first.click()
        page.until("that it is copied", lambda: page.text(".suggestion button") == "Copied")
        copied = page.js("() => navigator.clipboard.readText()")
        expect(copied == proxy.json("/api/v1/suggestions")["uncovered"][0]["toml"] and "[[locks]]" in copied, copied)
