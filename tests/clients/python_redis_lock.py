"""python-redis-lock: SET NX EX, Lua with a list that wakes the waiters, and KEYS lock:* inside a script."""
import threading
import time

import redis
import redis_lock
from steps import Steps, port

step = Steps()
client = redis.StrictRedis(port=port())


def basics():
    lock, rival = redis_lock.Lock(client, "basic", expire=30, id="me"), redis_lock.Lock(client, "basic", id="you")
    step("acquire", lock.acquire, True)
    step("acquire twice", lock.acquire, "<AlreadyAcquired>")
    step("contended", lambda: rival.acquire(blocking=False), False)
    step("contended, waiting", lambda: rival.acquire(timeout=1), False)
    step("locked", rival.locked, True)
    step("owner", lock.get_owner_id, "me")
    step("owner as the rival sees it", rival.get_owner_id, "me")
    step("timeout without blocking", lambda: rival.acquire(blocking=False, timeout=1), "<TimeoutNotUsable>")
    step("negative timeout", lambda: rival.acquire(timeout=-1), "<InvalidTimeout>")
    step("timeout beyond expire", lambda: redis_lock.Lock(client, "basic", expire=1).acquire(timeout=9),
         "<TimeoutTooLarge>")
    step("release by the rival", rival.release, "<NotAcquired>")
    step("extend", lambda: lock.extend(60))
    step("ttl after extend", lambda: 58 <= client.ttl("lock:basic") <= 60, True)
    step("release", lock.release)
    step("release twice", lock.release, "<NotAcquired>")
    step("signalled", lambda: client.llen("lock-signal:basic"), 1)
    step("unlocked", rival.locked, False)


def endings():
    lock = redis_lock.Lock(client, "short", expire=1, id="me")
    rival = redis_lock.Lock(client, "short", expire=30, id="you")
    step("acquire for a second", lock.acquire, True)
    step("rival waits for the expiry", lambda: rival.acquire(timeout=2), True)
    step("late extend", lambda: lock.extend(5), "<NotAcquired>")
    step("late release", lock.release, "<NotAcquired>")
    step("rival's own", rival.get_owner_id, "you")
    step("rival releases", rival.release)
    endless = redis_lock.Lock(client, "endless")
    step("acquire without expiry", endless.acquire, True)
    step("extend without expiry", lambda: endless.extend(5), "<NotExpirable>")
    step("reset", endless.reset)
    step("release after reset", endless.release, "<NotAcquired>")


def waking():
    holder = redis_lock.Lock(client, "wake", expire=30, id="me")
    step("acquire to wake a waiter", holder.acquire, True)

    def waiter_wakes():
        waited = []

        def wait():
            lock = redis_lock.Lock(client, "wake", expire=30, id="you")
            begun = time.monotonic()
            waited.append(lock.acquire(timeout=4) and time.monotonic() - begun < 3)
            lock.release()
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.3)
        holder.release()
        thread.join()
        return waited

    step("a waiter wakes by the signal", waiter_wakes, [True])


def renewal():
    lock = redis_lock.Lock(client, "renew", expire=1, auto_renewal=True, id="me")
    step("acquire with renewal", lock.acquire, True)
    time.sleep(1.6)
    step("still held", lambda: redis_lock.Lock(client, "renew", id="you").acquire(blocking=False), False)
    step("release the renewed", lock.release)


def everything():
    for name in ("one", "two"):
        step("acquire " + name, redis_lock.Lock(client, name, expire=30).acquire, True)
    step("reset all", lambda: redis_lock.reset_all(client))
    step("nothing is locked", lambda: sorted(k.decode() for k in client.keys("lock:*")), [])

    def inside():
        with redis_lock.Lock(client, "with", expire=5):
            return client.exists("lock:with")
    step("with", inside, 1)


if __name__ == "__main__":
    for part in (basics, endings, waking, renewal, everything):
        part()
