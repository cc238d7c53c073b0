//! Which Host headers the admin side answers. A web page can point a name of its own at this address (DNS rebinding) and
//! have its reader's browser ask here; the Host header still carries that name. So only names that no such page can have
//! are answered. This is no access control: whoever reaches the port reads what it shows.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Version};

/// The host names answered.
#[derive(Clone, Debug)]
pub(super) struct Hosts(Vec<String>);

/// What is wrong with a Host header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostFault {
    /// There is none though there has to be, or several, or it cannot be read.
    Malformed,
    /// It names somebody else.
    Foreign,
}

impl Hosts {
    /// Answers `names` (with or without a port) besides IP literals, `localhost` and names of one label, which have no
    /// place in public DNS: `lockward` in a compose file or in one Kubernetes namespace.
    pub(super) fn new(names: &[String]) -> Self {
        Hosts(
            names
                .iter()
                .filter_map(|name| name.parse().ok())
                .filter_map(|name| host(&name))
                .collect(),
        )
    }

    /// Checks the Host header of a request.
    pub(super) fn check(&self, version: Version, headers: &HeaderMap) -> Result<(), HostFault> {
        let mut values = headers.get_all(HOST).iter();
        let Some(value) = values.next() else {
            // No browser leaves it out; some health checks speak HTTP/1.0.
            return if version < Version::HTTP_11 {
                Ok(())
            } else {
                Err(HostFault::Malformed)
            };
        };
        if values.next().is_some() {
            return Err(HostFault::Malformed);
        }
        let authority = Authority::try_from(value.as_bytes()).map_err(|_| HostFault::Malformed)?;
        let host = host(&authority).ok_or(HostFault::Malformed)?;
        if self.answers(&host) {
            Ok(())
        } else {
            Err(HostFault::Foreign)
        }
    }

    /// Whether a web page of another origin sends this request, as far as its browser says so: by Origin, or by
    /// Sec-Fetch-Site. An origin is our own if it is the host that was called, or has one of the given names, since
    /// what stands before us may call us by another.
    pub(super) fn foreign_page_asks(&self, headers: &HeaderMap) -> bool {
        let own = |origin: &HeaderValue| {
            let authority = origin.to_str().ok().and_then(|text| text.split_once("://"));
            authority.is_some_and(|(_, authority)| {
                let called = headers.get(HOST).and_then(|host| host.to_str().ok());
                called.is_some_and(|called| called.eq_ignore_ascii_case(authority))
                    || authority
                        .parse()
                        .ok()
                        .and_then(|authority| host(&authority))
                        .is_some_and(|host| self.0.contains(&host))
            })
        };
        let near = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
        !headers.get_all(ORIGIN).iter().all(own) || !headers.get_all("sec-fetch-site").iter().all(near)
    }

    fn answers(&self, host: &str) -> bool {
        let ipv6 = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let literal = ipv6.map_or(host.parse::<Ipv4Addr>().is_ok(), |inner| {
            inner.parse::<Ipv6Addr>().is_ok()
        });
        let one_label = ipv6.is_none() && !host.contains('.');
        literal || one_label || host.ends_with(".localhost") || self.0.iter().any(|name| name == host)
    }
}

/// The host without port, in lower case, without the dot of the root; `None` if there is something before it.
fn host(authority: &Authority) -> Option<String> {
    if authority.as_str().contains('@') {
        return None;
    }
    let host = authority.host();
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &[&str]) -> Result<(), HostFault> {
        let mut headers = HeaderMap::new();
        for value in value {
            headers.append(HOST, value.parse().unwrap());
        }
        Hosts::new(&["Locks.Example.org:9180".to_owned(), "0.0.0.0:9180".to_owned()]).check(Version::HTTP_11, &headers)
    }

    #[test]
    fn addresses_local_names_and_the_configured_name_are_answered() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:9180",
            "[::1]:9180",
            "[fd00::7]",
            "localhost",
            "LOCALHOST:1",
            "localhost.",
            "a.localhost",
            "lockward:9180",
            "locks.example.org",
            "locks.example.org:80",
            "LOCKS.example.ORG.:9180",
        ] {
            assert_eq!(check(&[host]), Ok(()), "{host}");
        }
    }

    #[test]
    fn other_names_are_not() {
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:9180",
            "localhost.evil.example",
            "xlocks.example.org",
        ] {
            assert_eq!(check(&[host]), Err(HostFault::Foreign), "{host}");
        }
    }

    fn foreign(headers: &[(&'static str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Hosts::new(&["locks.example.org".to_owned()]).foreign_page_asks(&map)
    }

    #[test]
    fn a_page_is_told_by_what_its_browser_says() {
        assert!(!foreign(&[]));
        assert!(!foreign(&[("host", "localhost:9180")]));
        let here = ("host", "localhost:9180");
        for (origin, expected) in [
            ("http://localhost:9180", false),
            ("http://LOCALHOST:9180", false),
            ("https://locks.example.org", false),
            ("https://locks.example.org:8443", false),
            ("http://localhost:3000", true),
            ("http://localhost", true),
            ("http://evil.example", true),
            ("https://locks.example.org@evil.example", true),
            ("https://xlocks.example.org", true),
            ("null", true),
            ("", true),
        ] {
            assert_eq!(foreign(&[here, ("origin", origin)]), expected, "{origin}");
        }
        for (site, expected) in [
            ("same-origin", false),
            ("none", false),
            ("same-site", true),
            ("cross-site", true),
        ] {
            assert_eq!(foreign(&[here, ("sec-fetch-site", site)]), expected, "{site}");
        }
        assert!(foreign(&[("origin", "http://localhost:9180")]), "no host was called");
    }

    #[test]
    fn unreadable_ones_are_malformed() {
        for host in [
            &["localhost@evil.example"][..],
            &["a b"],
            &[""],
            &["localhost", "localhost"],
            &[],
        ] {
            assert_eq!(check(host), Err(HostFault::Malformed), "{host:?}");
        }
        assert_eq!(Hosts::new(&[]).check(Version::HTTP_10, &HeaderMap::new()), Ok(()));
    }
}
