"""Locks as redis-py, Django and Laravel name and take them, with no rule for them, in the midst of cache traffic."""
import redis
from steps import Steps, port

ROUNDS = 12
LARAVEL = "laravel_database_laravel_cache_:"
# Illuminate\\Redis\\Connectors: LuaScripts::releaseLock().
LARAVEL_RELEASE = """
if redis.call("get",KEYS[1]) == ARGV[1] then
    return redis.call("del",KEYS[1])
else
    return 0
end
"""

step = Steps()
client = redis.Redis(port=port(), protocol=2)
other = redis.Redis(port=port(), protocol=3)


def django(n):
    """redis-py's own Lock under Django's key prefix; every third one is extended."""
    lock = client.lock(":1:lock:order:%d" % n, timeout=30)
    step("redis-py acquires", lambda: lock.acquire(blocking=False), True)
    if n % 3 == 0:
        step("redis-py extends", lambda: lock.extend(30), True)
    step("redis-py releases", lock.release)


def laravel(n):
    """Cache::lock() with and without seconds, the scheduler's mutex and the lock of a unique job."""
    name = LARAVEL + "invoice-%d" % n
    step("Laravel acquires", lambda: client.set(name, "owner", nx=True, ex=30), True)
    step("Laravel is refused", lambda: other.set(name, "another", nx=True, ex=30))
    step("Laravel releases", lambda: client.eval(LARAVEL_RELEASE, 1, name, "owner"), 1)
    step("Laravel acquires for ever", lambda: client.setnx(name, "owner"), True)
    step("and gives it a TTL", lambda: client.expire(name, 30), True)
    step("and releases that", lambda: client.eval(LARAVEL_RELEASE, 1, name, "owner"), 1)
    name = LARAVEL + "framework/schedule-%040x" % (n * 0x9E3779B97F4A7C15F39CC0605CEDC835)
    step("the scheduler acquires", lambda: client.set(name, "1", nx=True, ex=3600), True)
    step("the scheduler releases", lambda: client.delete(name), 1)
    name = LARAVEL + "laravel_unique_job:App\\Jobs\\Import:%d" % n
    step("a unique job acquires", lambda: client.set(name, "owner", nx=True, ex=30), True)
    step("a unique job releases", lambda: client.eval(LARAVEL_RELEASE, 1, name, "owner"), 1)


def by_hand(n):
    """A word at the end; given up by another connection. And one name that is always the same, without a TTL."""
    step("acquire", lambda: client.set("order:%d:lock" % n, "1", nx=True, px=30_000), True)
    step("release elsewhere", lambda: other.delete("order:%d:lock" % n), 1)
    step("acquire the only one", lambda: client.setnx("cron-lock", "1"), True)
    step("release the only one", lambda: client.delete("cron-lock"), 1)


def noise(n):
    """A cache, markers that are never given up, and a lock that has its rule."""
    step("fill the cache", lambda: client.set("cache:%d" % n, "page", ex=60), True)
    step("fill it again", lambda: client.set("cache:%d" % n, "page"), True)
    step("read the cache", lambda: client.get("cache:%d" % n), "page")
    step("keep it", lambda: client.expire("cache:%d" % n, 60), True)
    step("drop it", lambda: client.delete("cache:%d" % n), 1)
    step("mark", lambda: client.set("seen:%d" % n, "1", nx=True, ex=60), True)
    step("mark in two steps", lambda: client.setnx("once:%d" % n, "1"), True)
    step("the second one", lambda: client.expire("once:%d" % n, 60), True)
    step("a lock with a rule", lambda: client.set("lock:%d" % n, "1", nx=True, ex=60), True)
    step("its release", lambda: client.delete("lock:%d" % n), 1)


for number in range(1, ROUNDS + 1):
    django(number)
    laravel(number)
    by_hand(number)
    noise(number)
