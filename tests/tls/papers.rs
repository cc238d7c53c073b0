//! Certificates and keys for the tests, made anew each time, in a folder that goes with the value.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// A folder of PEM files, and who signs them.
pub struct Papers {
    pub folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Papers {
    /// With an authority of its own: `ca.pem`.
    pub fn new() -> Papers {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("lockward-tls-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, format!("authority {number}"));
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a root");
        let papers = Papers { folder, issuer };
        papers.write("ca.pem", &papers.issuer.pem());
        papers
    }

    /// `NAME.pem` and `NAME.key`, for these host names and addresses.
    pub fn sign(&self, name: &str, hosts: &[&str]) {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).expect("a file is written");
    }

    pub fn path(&self, name: &str) -> String {
        Path::display(&self.folder.join(name)).to_string()
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder.join(name)).expect("a file is read")
    }
}

impl Drop for Papers {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
