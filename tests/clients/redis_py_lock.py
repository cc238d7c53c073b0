"""redis-py's Lock, synchronous and asyncio: a plain SET NX PX and its own Lua, compared by token."""
import asyncio
import threading
import time

import redis
import redis.asyncio
from steps import Steps, port, tls

step = Steps()
client = redis.Redis(port=port(), protocol=2, **tls())
other = redis.Redis(port=port(), protocol=3, **tls())


def pool_options():
    """A pool is told the class of its connections instead."""
    options = tls()
    return dict(options, connection_class=redis.SSLConnection) if options.pop("ssl", False) else options


def basics():
    lock, rival = client.lock("lock:basic", timeout=30), other.lock("lock:basic", timeout=30)
    step("acquire", lambda: lock.acquire(blocking=False), True)
    step("acquire held, non-blocking", lambda: rival.acquire(blocking=False), False)
    step("acquire held, short blocking", lambda: rival.acquire(blocking_timeout=0.3), False)
    step("locked", rival.locked, True)
    step("owned by the holder", lock.owned, True)
    step("owned by the rival", rival.owned, False)
    step("ttl", lambda: 28_000 < client.pttl("lock:basic") <= 30_000, True)
    step("value is the token", lambda: client.get("lock:basic") == lock.local.token, True)
    step("release by one who never held it", rival.release, "<LockError>")
    step("release", lock.release)
    step("release twice", lock.release, "<LockError>")
    step("free", lambda: client.exists("lock:basic"), 0)
    step("rival acquires", lambda: rival.acquire(blocking=False), True)
    step("rival releases", rival.release)


def extending():
    lock = client.lock("lock:extend", timeout=10)
    step("acquire to extend", lock.acquire, True)
    step("extend adds", lambda: lock.extend(20), True)
    step("ttl after extend", lambda: 28_000 < client.pttl("lock:extend") <= 30_000, True)
    step("extend replaces", lambda: lock.extend(50, replace_ttl=True), True)
    step("ttl after replace", lambda: 48_000 < client.pttl("lock:extend") <= 50_000, True)
    step("reacquire", lock.reacquire, True)
    step("ttl after reacquire", lambda: 8_000 < client.pttl("lock:extend") <= 10_000, True)
    step("release the extended", lock.release)
    step("extend a released lock", lambda: lock.extend(5), "<LockError>")
    step("reacquire a released lock", lock.reacquire, "<LockError>")
    endless = client.lock("lock:endless")
    step("acquire without timeout", endless.acquire, True)
    step("ttl without timeout", lambda: client.pttl("lock:endless"), -1)
    step("extend without timeout", lambda: endless.extend(5), "<LockError>")
    step("reacquire without timeout", endless.reacquire, "<LockError>")
    step("release without timeout", endless.release)


def expiry():
    lock, rival = client.lock("lock:expiry", timeout=0.15), other.lock("lock:expiry", timeout=30)
    step("acquire for a short time", lock.acquire, True)
    time.sleep(0.25)
    step("release after expiry", lock.release, "<LockNotOwnedError>")
    step("acquire again", lock.acquire, True)
    step("rival waits for the expiry", lambda: rival.acquire(blocking_timeout=2), True)
    step("extend after the loss", lambda: lock.extend(5), "<LockNotOwnedError>")
    step("reacquire after the loss", lock.reacquire, "<LockNotOwnedError>")
    step("release after the loss", lock.release, "<LockNotOwnedError>")
    step("the rival still owns it", rival.owned, True)
    step("rival releases after that", rival.release)


def context_manager():
    def inside():
        with client.lock("lock:with", timeout=30, blocking_timeout=0.2):
            return other.lock("lock:with", timeout=5).acquire(blocking=False)

    def lost():
        with client.lock("lock:with", timeout=0.1):
            time.sleep(0.2)

    def contended():
        with client.lock("lock:with:held", timeout=30, blocking_timeout=0.2):
            pass

    step("with", inside, False)
    step("with, lost meanwhile", lost, "<LockNotOwnedError>")
    step("hold it for the next", lambda: other.set("lock:with:held", "x", nx=True, ex=30), True)
    step("with, contended", contended, "<LockError>")
    # A key of its own: on lock:with one address still owes a release, which a bare DEL would pay (README).
    step("give it up", lambda: other.delete("lock:with:held"), 1)


def threads():
    def in_thread(action):
        result = []

        def run():
            try:
                result.append(action())
            except Exception as error:
                result.append(type(error).__name__)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return result[0]

    local = client.lock("lock:local", timeout=30, thread_local=True)
    shared = client.lock("lock:shared", timeout=30, thread_local=False)
    step("acquire, token in this thread", local.acquire, True)
    step("release from another thread", lambda: in_thread(local.release), "AttributeError")
    step("release from this thread", local.release)
    step("acquire, token shared", shared.acquire, True)
    step("release a shared token from another thread", lambda: in_thread(shared.release))
    step("shared is free", shared.locked, False)


def bare_in_a_pool():
    """Eight threads, one pool, the bare idiom: SET NX EX and DEL, on whatever connection the pool gives."""
    pool = redis.BlockingConnectionPool(**pool_options(), port=port(), max_connections=4, timeout=20)
    pooled = redis.Redis(connection_pool=pool)
    seen = {"inside": 0, "most": 0, "rounds": 0}

    def work():
        for _ in range(5):
            while not pooled.set("lock:bare", "1", nx=True, ex=30):
                time.sleep(0.002)
            seen["inside"] += 1
            seen["most"] = max(seen["most"], seen["inside"])
            time.sleep(0.001)
            seen["rounds"] += 1
            seen["inside"] -= 1
            if pooled.delete("lock:bare") != 1:
                seen["most"] = -1

    def all_threads():
        workers = [threading.Thread(target=work) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return [seen["most"], seen["rounds"]]

    step("bare idiom in a pool", all_threads, [1, 40])


def transactions():
    def watched():
        with client.pipeline() as pipe:
            pipe.watch("lock:watched")
            if pipe.get("lock:watched") != b"me":
                return "not mine"
            pipe.multi()
            pipe.delete("lock:watched")
            return pipe.execute()

    def conflict():
        with client.pipeline() as pipe:
            pipe.watch("lock:watched")
            other.set("lock:watched", "you", xx=True, ex=30)
            pipe.multi()
            pipe.delete("lock:watched")
            return pipe.execute()

    step("acquire for a watched release", lambda: client.set("lock:watched", "me", nx=True, ex=30), True)
    step("WATCH, GET, MULTI, DEL, EXEC", watched, [1])
    step("acquire for a conflict", lambda: client.set("lock:watched", "me", nx=True, ex=30), True)
    step("WATCH with a conflict", conflict, "<WatchError>")
    pipe = client.pipeline(transaction=True)
    step("pipeline in a transaction", lambda: pipe.set("lock:pipe", 1, nx=True, ex=9).get("lock:pipe").delete(
        "lock:pipe").execute() == [True, b"1", 1], True)


async def asynchronous():
    async with redis.asyncio.Redis(port=port(), **tls()) as loop_client:
        lock = loop_client.lock("lock:async", timeout=0.3)
        rival = loop_client.lock("lock:async", timeout=30)
        await step.awaited("asyncio acquire", lock.acquire, True)
        await step.awaited("asyncio contended", lambda: rival.acquire(blocking=False), False)
        await step.awaited("asyncio extend", lambda: lock.extend(0.2), True)
        await step.awaited("asyncio waits for the expiry", lambda: rival.acquire(blocking_timeout=3), True)
        await step.awaited("asyncio late release", lock.release, "<LockNotOwnedError>")
        await step.awaited("asyncio release", rival.release)


if __name__ == "__main__":
    for part in (basics, extending, expiry, context_manager, threads, bare_in_a_pool, transactions):
        part()
    asyncio.run(asynchronous())
