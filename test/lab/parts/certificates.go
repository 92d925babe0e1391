package parts

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificates makes the lab's authority and the certificates of its servers: htcd's receiver, the store of files and
// HTCondor.
func Certificates(w World) error {
	for _, dir := range []string{receiverFile(w, ""), storeFile(w, ""), w.Lab.Path("condor")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lab-ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	key, err := certify(receiverFile(w, "ca"), authority, authority, nil)
	if err != nil {
		return err
	}
	for i, s := range []struct{ file, account string }{{receiverFile(w, "receiver"), "htcd"}, {storeFile(w, "server"), "www-data"}, {w.Lab.Path("condor", "host"), "root"}} {
		server := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: filepath.Base(s.file)},
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
			DNSNames:    []string{w.Host()},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(w.Address)},
			NotBefore:   authority.NotBefore, NotAfter: authority.NotAfter,
		}
		if _, err := certify(s.file, server, authority, key); err != nil {
			return err
		}
		uid, gid, err := Account(s.account)
		if err != nil {
			return err
		}
		if err := os.Chown(s.file+".key", int(uid), int(gid)); err != nil {
			return err
		}
	}
	return nil
}
