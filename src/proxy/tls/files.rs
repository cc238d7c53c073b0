//! Certificates and keys out of PEM files. What is wrong with one is said with the key of the configuration and the path;
//! nothing of what stands in the file is ever shown.

use std::env;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls_pki_types::pem::{Error, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

/// No such file is longer, in bytes; the roots of a system are a quarter of it.
const LONGEST: u64 = 4 << 20;
/// Where distributions keep the roots that they trust: Debian and Alpine, Fedora and its kin, SUSE, the BSDs.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// The variable by which people name another file, as OpenSSL has it.
const ROOTS_VARIABLE: &str = "SSL_CERT_FILE";

/// A file of certificates or keys that is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: {}: {text}", path.display())]
pub struct CertificateFault {
    /// The key of the configuration that names the file.
    pub key: String,
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub text: String,
}

/// A file, and the key that names it.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) key: &'a str,
    pub(super) path: &'a Path,
}

impl Named<'_> {
    pub(super) fn fault(self, text: impl Into<String>) -> CertificateFault {
        CertificateFault {
            key: self.key.to_owned(),
            path: self.path.to_owned(),
            text: text.into(),
        }
    }

    fn read(self) -> Result<Vec<u8>, CertificateFault> {
        let mut bytes = Vec::new();
        File::open(self.path)
            .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes))
            .map_err(|error| self.fault(format!("cannot be read: {error}")))?;
        if bytes.len() as u64 > LONGEST {
            return Err(self.fault(format!("is longer than {LONGEST} bytes")));
        }
        Ok(bytes)
    }

    /// All certificates in the file, at least one.
    pub(super) fn certificates(self) -> Result<Vec<CertificateDer<'static>>, CertificateFault> {
        let found: Result<Vec<_>, Error> = CertificateDer::pem_slice_iter(&self.read()?).collect();
        match found {
            Ok(certificates) if certificates.is_empty() => Err(self.fault("holds no certificate in PEM")),
            Ok(certificates) => Ok(certificates),
            Err(error) => Err(self.fault(no_pem(&error))),
        }
    }

    /// The first private key in the file.
    pub(super) fn private_key(self) -> Result<PrivateKeyDer<'static>, CertificateFault> {
        PrivateKeyDer::from_pem_slice(&self.read()?).map_err(|error| match error {
            Error::NoItemsFound => self.fault("holds no private key in PEM without a password"),
            error => self.fault(no_pem(&error)),
        })
    }

    /// The certificates in the file, as those who sign others.
    pub(super) fn roots(self) -> Result<RootCertStore, CertificateFault> {
        let mut roots = RootCertStore::empty();
        for certificate in self.certificates()? {
            roots
                .add(certificate)
                .map_err(|error| self.fault(format!("holds a certificate that cannot be used: {error}")))?;
        }
        Ok(roots)
    }
}

/// Not by the error's own text: lines of the file stand in some.
fn no_pem(error: &Error) -> &'static str {
    match error {
        Error::MissingSectionEnd { .. } => "is no PEM: a section has no END line",
        Error::IllegalSectionStart { .. } => "is no PEM: a BEGIN line is wrong",
        Error::Base64Decode(_) => "is no PEM: what stands between BEGIN and END is no base64",
        _ => "is no PEM",
    }
}

/// The roots that the system trusts; those that cannot be used are left out.
pub(super) fn system_roots() -> Result<RootCertStore, CertificateFault> {
    let named = env::var_os(ROOTS_VARIABLE).map(PathBuf::from);
    let found = || SYSTEM_ROOTS.iter().map(PathBuf::from).find(|path| path.exists());
    let path = named.or_else(found).unwrap_or_else(|| PathBuf::from(SYSTEM_ROOTS[0]));
    let file = Named {
        key: "upstream.tls.ca",
        path: &path,
    };
    let with_hint = |fault: CertificateFault| CertificateFault {
        text: format!("{} (the system's roots, since upstream.tls.ca is not set)", fault.text),
        ..fault
    };
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(file.certificates().map_err(with_hint)?);
    if usable == 0 {
        return Err(with_hint(file.fault("holds no certificate that can be used")));
    }
    Ok(roots)
}
