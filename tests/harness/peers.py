"""Other proxies to measure lockward beside, each as good as its configuration makes it for this: one thread, one server,
as few connections to it as it can do with. Whatever is not installed is left out.
"""
import json
import os
import shutil

from .measuring import Command
from .processes import free_port

MOST_CLIENTS = 9000


def written(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as out:
        out.write(text)
    return path


def nutcracker(program, folder, port, server):
    config = written(folder, "nutcracker.yml", """\
bench:
  listen: 127.0.0.1:%d
  redis: true
  hash: fnv1a_64
  distribution: ketama
  server_connections: 1
  backlog: 1024
  servers:
    - 127.0.0.1:%d:1
""" % (port, server))
    return [program, "-c", config, "-a", "127.0.0.1", "-s", str(free_port()), "-v", "1",
            "-o", os.path.join(folder, "nutcracker.log")]


def haproxy(program, folder, port, server):
    config = written(folder, "haproxy.cfg", """\
global
  nbthread 1
  maxconn %d
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen bench
  bind 127.0.0.1:%d
  server redis 127.0.0.1:%d
""" % (MOST_CLIENTS, port, server))
    return [program, "-db", "-f", config]


def envoy(program, folder, port, server):
    kinds = "type.googleapis.com/envoy.extensions."

    def address(number):
        return {"socket_address": {"address": "127.0.0.1", "port_value": number}}

    proxy = {"@type": kinds + "filters.network.redis_proxy.v3.RedisProxy", "stat_prefix": "bench",
             "settings": {"op_timeout": "5s"}, "prefix_routes": {"catch_all_route": {"cluster": "redis"}}}
    limits = dict.fromkeys(("max_connections", "max_pending_requests", "max_requests"), 100000)
    endpoint = {"endpoint": {"address": address(server)}}
    monitor = {"@type": kinds + "resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
               "max_active_downstream_connections": MOST_CLIENTS}
    config = {
        "static_resources": {
            "listeners": [{"name": "bench", "address": address(port), "filter_chains": [
                {"filters": [{"name": "envoy.filters.network.redis_proxy", "typed_config": proxy}]}]}],
            "clusters": [{"name": "redis", "type": "STATIC", "lb_policy": "MAGLEV", "connect_timeout": "1s",
                          "circuit_breakers": {"thresholds": [limits]},
                          "load_assignment": {"cluster_name": "redis", "endpoints": [{"lb_endpoints": [endpoint]}]}}],
        },
        "overload_manager": {"resource_monitors": [
            {"name": "envoy.resource_monitors.global_downstream_max_connections", "typed_config": monitor}]},
    }
    path = written(folder, "envoy.json", json.dumps(config))
    return [program, "-c", path, "--concurrency", "1", "--disable-hot-restart", "-l", "warning"]


PEERS = {"nutcracker": nutcracker, "haproxy": haproxy, "envoy": envoy}


def find(name):
    """The program of a peer: from a variable of its name in capitals, from PATH, or where daemons lie."""
    return os.environ.get(name.upper()) or shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


def start(name, folder, server):
    """A running peer in front of the server on that port, or None if it is not installed."""
    program = find(name)
    if not program:
        return None
    port = free_port()
    return Command(name, folder, port, PEERS[name](program, folder, port, server))
