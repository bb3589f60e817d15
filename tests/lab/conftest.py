"""Real lock servers, as the tests of the servers have them."""

from tests.servers.conftest import etcd_urls, five, five_redises, nodes, zookeeper_hosts

__all__ = ["etcd_urls", "five", "five_redises", "nodes", "zookeeper_hosts"]
