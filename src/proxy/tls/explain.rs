//! What is wrong with a TLS connection, in words that say where to look. Only rustls' own texts and alerts go into them:
//! no key, and of a certificate no more than its names.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

use crate::metrics::Unwelcome;

/// A connection to the server is broken, or does not come about.
pub(super) fn broken(error: &Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, server(error))
}

/// The server's side: what is wrong there, or which key of `[upstream] tls` does not fit it.
fn server(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(fault) => certificate(fault),
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "TLS: the server wants a certificate: set cert and key in upstream.tls".to_owned()
        }
        Error::AlertReceived(alert) if refuses_certificate(*alert) => {
            format!("TLS: the server does not accept the certificate in upstream.tls.cert (alert {alert:?})")
        }
        Error::AlertReceived(alert) => format!(
            "TLS: the server refused (alert {alert:?}); perhaps it wants a certificate (upstream.tls.cert and key) or \
             another version"
        ),
        Error::InvalidMessage(_) => NO_TLS.to_owned(),
        other => format!("TLS: {other}"),
    }
}

/// A TLS 1.2 connection is at its end: TLS 1.3 changes keys instead.
pub(super) const WORN_OUT: &str = "TLS 1.2: this connection has carried as much as its keys allow";

/// The server's first bytes are none of TLS.
pub(super) const NO_TLS: &str = "TLS: the server does not speak TLS at this port";

fn certificate(fault: &CertificateError) -> String {
    match fault {
        CertificateError::UnknownIssuer => {
            "TLS: the server's certificate is signed by none of those in upstream.tls.ca (left out: in the system's roots)"
                .to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "TLS: the server's certificate is not for {} but for {}; set upstream.tls.server_name, or the host in the URL",
            expected.to_str(),
            if presented.is_empty() {
                "no name".to_owned()
            } else {
                presented.join(", ")
            }
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("TLS: the server's certificate is not valid any more: {fault}")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("TLS: the server's certificate is not valid yet: {fault}")
        }
        other => format!("TLS: the server's certificate cannot be verified: {other}"),
    }
}

fn refuses_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
    )
}

/// The clients' side: under which reason it counts, and the text of the line in the log.
pub(super) fn client(error: &Error) -> (Unwelcome, String) {
    match error {
        Error::NoCertificatesPresented => (
            Unwelcome::ClientCertificate,
            "it showed no certificate (tls.client_ca)".to_owned(),
        ),
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => (
            Unwelcome::ClientCertificate,
            "its certificate is signed by none of those in tls.client_ca".to_owned(),
        ),
        Error::InvalidCertificate(fault) => (
            Unwelcome::ClientCertificate,
            format!("its certificate cannot be verified: {fault}"),
        ),
        Error::AlertReceived(alert) if refuses_certificate(*alert) => (
            Unwelcome::Handshake,
            format!("it does not accept the certificate in tls.cert (alert {alert:?})"),
        ),
        other => (Unwelcome::Handshake, other.to_string()),
    }
}
