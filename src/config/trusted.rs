//! Whose PROXY headers are believed: networks, and whoever comes by a unix socket. Opens no socket and resolves no
//! names.

use std::fmt;
use std::net::IpAddr;

use super::fault::shown;

/// The word for whoever comes by a unix socket.
const UNIX: &str = "unix";

/// Who may announce a client's address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trusted {
    /// Over TCP.
    networks: Vec<Network>,
    /// Over a unix socket.
    unix: bool,
}

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    /// An IPv4-mapped one as IPv4; nothing behind the prefix.
    address: IpAddr,
    /// In bits.
    prefix: u8,
}

impl Trusted {
    /// Reads one entry of the list more: `10.0.0.0/8`, `192.0.2.7`, `2001:db8::/32` or `unix`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn add(&mut self, text: &str) -> Result<(), String> {
        match text {
            UNIX => self.unix = true,
            text => self.networks.push(network(text)?),
        }
        Ok(())
    }

    /// Whether nobody is believed.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && !self.unix
    }

    /// Whether anybody is believed who comes by TCP.
    pub(super) fn has_networks(&self) -> bool {
        !self.networks.is_empty()
    }

    /// Whether they are who come by a unix socket.
    pub(super) fn has_unix(&self) -> bool {
        self.unix
    }

    /// Whether a header from there is believed. `None`: it comes by a unix socket. An IPv4-mapped address is the IPv4
    /// one.
    pub fn believes(&self, from: Option<IpAddr>) -> bool {
        match from {
            Some(address) => self
                .networks
                .iter()
                .any(|network| network.holds(address.to_canonical())),
            None => self.unix,
        }
    }
}

impl fmt::Display for Trusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let networks = self.networks.iter().map(Network::to_string);
        let all: Vec<String> = networks.chain(self.unix.then(|| UNIX.to_owned())).collect();
        f.write_str(&all.join(" "))
    }
}

impl Network {
    fn holds(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                cut(address, self.prefix) == bits(self.address)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix == longest(self.address) {
            true => self.address.fmt(f),
            false => write!(f, "{}/{}", self.address, self.prefix),
        }
    }
}

fn longest(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// An address as a number, its first bit in front.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The same without what stands behind the prefix.
fn cut(address: IpAddr, prefix: u8) -> u128 {
    let kept = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
    bits(address) & kept
}

fn network(text: &str) -> Result<Network, String> {
    let written = shown(text);
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return Err(format!(
            "\"{written}\" must be an IP address, a network like 10.0.0.0/8, or \"{UNIX}\" for a unix socket's clients"
        ));
    };
    let most = longest(address);
    let prefix = match prefix {
        None => most,
        Some(digits) => digits
            .parse()
            .ok()
            .filter(|prefix| *prefix <= most && digits.bytes().all(|byte| byte.is_ascii_digit()))
            .ok_or_else(|| format!("\"{written}\": behind the slash must stand a number from 0 to {most}"))?,
    };
    if cut(address, prefix) != bits(address) {
        return Err(format!(
            "\"{written}\" is an address inside of a network: leave out the slash, or what stands behind the first {prefix} \
             bits of the address"
        ));
    }
    let network = Network { address, prefix };
    // A mapped network is one of IPv4, if its prefix says so much.
    match (address.to_canonical(), prefix.checked_sub(96)) {
        (canonical @ IpAddr::V4(_), Some(prefix)) if address.is_ipv6() => Ok(Network {
            address: canonical,
            prefix,
        }),
        _ => Ok(network),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusted(entries: &[&str]) -> Trusted {
        let mut trusted = Trusted::default();
        entries
            .iter()
            .for_each(|entry| trusted.add(entry).expect("a good entry"));
        trusted
    }

    #[test]
    fn networks_hold_their_addresses() {
        for (entry, address, believed) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("::ffff:10.0.0.0/104", "10.1.2.3", true),
            ("::ffff:10.0.0.0/104", "::ffff:11.1.2.3", false),
            ("::ffff:192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("192.0.2.7/32", "::ffff:192.0.2.7", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "203.0.113.9", false),
            ("2001:db8::/33", "2001:db8:7fff::1", true),
            ("2001:db8::/33", "2001:db8:8000::1", false),
            ("2001:db8::1", "2001:db8::1", true),
        ] {
            let address = address.parse().expect("an address");
            assert_eq!(trusted(&[entry]).believes(Some(address)), believed, "{entry} {address}");
            assert!(!trusted(&[entry]).believes(None), "{entry}");
        }
        assert!(trusted(&["unix"]).believes(None));
        assert!(!trusted(&["unix"]).believes(Some("127.0.0.1".parse().expect("an address"))));
    }

    #[test]
    fn it_is_shown_as_it_is_meant() {
        let all = trusted(&[
            "10.0.0.0/8",
            "192.0.2.7/32",
            "unix",
            "::ffff:10.0.0.0/104",
            "2001:db8::/32",
        ]);
        assert_eq!(all.to_string(), "10.0.0.0/8 192.0.2.7 10.0.0.0/8 2001:db8::/32 unix");
    }

    #[test]
    fn what_is_no_network_is_told_why() {
        for (entry, text) in [
            (
                "balancer",
                "\"balancer\" must be an IP address, a network like 10.0.0.0/8, or \"unix\"",
            ),
            ("", "\"\" must be an IP address"),
            ("10.0.0/8", "\"10.0.0/8\" must be an IP address"),
            (
                "10.0.0.0/33",
                "\"10.0.0.0/33\": behind the slash must stand a number from 0 to 32",
            ),
            ("::/129", "from 0 to 128"),
            ("10.0.0.0/+8", "from 0 to 32"),
            ("10.0.0.0/", "from 0 to 32"),
            (
                "10.1.0.0/8",
                "leave out the slash, or what stands behind the first 8 bits",
            ),
        ] {
            let told = Trusted::default().add(entry).expect_err("no network");
            assert!(told.contains(text), "{entry}: {told}");
        }
    }
}
