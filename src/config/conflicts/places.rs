//! Where clients come in, held against each other, against the other places, and against the rules that hold there.

use super::{Settings, named};
use crate::config::Config;
use crate::config::address::{Place, Target};
use crate::config::entrance::Entrance;
use crate::config::fault::Fault;
use crate::config::reader::Origins;
use crate::lock::rule::{Mode, OwnerPart, Rule};

/// Places that cannot be meant.
pub(super) fn find(settings: &Settings, faults: &mut Vec<Fault>) {
    let config = &settings.config;
    let mut earlier: Vec<(&Entrance, &Origins)> = Vec::new();
    for (entrance, origins) in config.entrances().zip(&settings.entrances) {
        alone(entrance, origins, faults);
        let nowhere = |place: &Place| matches!(place, Place::Unix(path) if path.as_os_str().is_empty());
        let anywhere = |place: &Place| matches!(place, Place::Tcp(address) if address.port == 0);
        let key = match &entrance.place {
            Place::Tcp(_) => "address",
            Place::Unix(_) => "unix",
        };
        for (other, their) in &earlier {
            if other.place == entrance.place && !nowhere(&entrance.place) && !anywhere(&entrance.place) {
                let text = format!("is the place of {} already", their.path());
                faults.push(origins.fault(key, text));
            }
            if other.name == entrance.name && !entrance.name.is_empty() {
                let text = format!("\"{}\" is the name of {} already", entrance.name, their.path());
                faults.push(origins.fault("name", text));
            }
        }
        if config.upstream.server.target == Target::Place(entrance.place.clone()) {
            faults.push(match settings.upstream.has("url") {
                true => {
                    let text = format!("is the place where lockward itself listens ({})", origins.path());
                    settings.upstream.fault("url", text)
                }
                false => origins.fault(key, "is the place of the server (upstream.url)".to_owned()),
            });
        }
        let admin = &config.admin.address;
        if matches!(&entrance.place, Place::Tcp(address) if address == admin && address.port != 0) {
            faults.push(match settings.admin.has("address") {
                true => {
                    let text = format!("is {}.address as well; each needs its own port", origins.path());
                    settings.admin.fault("address", text)
                }
                false => origins.fault(key, "is admin.address as well; each needs its own port".to_owned()),
            });
        }
        earlier.push((entrance, origins));
    }
}

/// What is wrong with one of them by itself.
fn alone(entrance: &Entrance, origins: &Origins, faults: &mut Vec<Fault>) {
    if origins.has("address") && origins.has("unix") {
        let text = format!("{}.address stands there too; only one can be", origins.path());
        faults.push(origins.fault("unix", text));
    }
    let unix = matches!(entrance.place, Place::Unix(_));
    for key in ["unix_mode", "unix_group"] {
        if origins.has(key) && !unix {
            faults.push(origins.fault(key, "is of use only with unix".to_owned()));
        }
    }
    let Some(trusted) = &entrance.trusted else { return };
    // A slip in the list is told already.
    let told = faults
        .iter()
        .any(|fault| fault.key == format!("{}.trusted_proxies", origins.path()));
    let text = if told {
        return;
    } else if trusted.is_empty() {
        "proxy_protocol = true needs it: whoever may send a PROXY header chooses the address that its client has here, and \
         with it whose locks are its own; name the load balancers, like [\"10.0.0.0/8\"]"
    } else if unix && !trusted.has_unix() {
        "holds no \"unix\", so nobody could come in by the unix socket"
    } else if !unix && !trusted.has_networks() {
        "holds only \"unix\", so nobody could come in by TCP"
    } else {
        return;
    };
    faults.push(origins.fault("trusted_proxies", text.to_owned()));
}

/// Owners that cannot be told apart there.
pub(super) fn warn(config: &Config, entrance: &Entrance, warnings: &mut Vec<String>) {
    let named = |wanted: &dyn Fn(&Rule) -> bool| named(config.rules_at(entrance), wanted);
    let by_address = |rule: &Rule| rule.mode != Mode::Off && rule.owner == [OwnerPart::Address];
    let by_process = |rule: &Rule| rule.mode != Mode::Off && rule.owner.contains(&OwnerPart::Process);
    let place = &entrance.place;
    if entrance.trusted.is_some() {
        // Addresses are those that are announced; processes, the load balancer's.
        if let Some(rules) = named(&by_process) {
            warnings.push(format!(
                "{rules}: owner = \"process\" counts as \"connection\" behind a load balancer ({place}, proxy_protocol)"
            ));
        }
        return;
    }
    match place {
        Place::Tcp(address) if address.is_loopback() => {
            if let Some(rules) = named(&by_address) {
                warnings.push(format!(
                    "{rules}: owner = \"address\" on the loopback address {address}: all clients on this machine are \
                     one owner (two redis-cli too); to tell them apart use owner = \"connection\" or \"client-name\""
                ));
            }
        }
        Place::Unix(_) => {
            if let Some(rules) = named(&by_address) {
                warnings.push(format!(
                    "{rules}: owner = \"address\" on a unix socket: all clients are one owner; to tell them apart use \
                     owner = \"process\", \"connection\" or \"client-name\""
                ));
            }
        }
        Place::Tcp(_) => {}
    }
    if let Place::Tcp(address) = place
        && let Some(rules) = named(&by_process)
    {
        warnings.push(format!(
            "{rules}: owner = \"process\" counts as \"connection\" on TCP ({address}); processes are known only on a \
             unix socket (listen.unix)"
        ));
    }
}
