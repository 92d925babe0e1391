package parts

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"htc.cern.ch/htcd/test/lab"
)

// Feed is htcd feed at condor's schedd, for an htcd with FeedFlags. It is for tests that ask for it: a lab comes up
// without it.
func Feed(w World) (*Process, error) {
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "htcd"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	// One certificate is the authority, the server's and the client's.
	if _, err := certify(receiverFile(w, "feed"), certificate, certificate, nil); err != nil {
		return nil, err
	}
	uid, gid, err := Account("htcd")
	if err != nil {
		return nil, err
	}
	if err := os.Chown(receiverFile(w, "feed.key"), int(uid), int(gid)); err != nil {
		return nil, err
	}
	if err := ShowSpool(w.Lab, w.Lab.Path("condor", "spool")); err != nil {
		return nil, err
	}
	return &Process{
		Name: "feed", Log: w.Lab.Log("feed"), Port: w.Ports.Feed, Spare: true,
		Args: []string{
			w.Lab.Path("htcd", "bin", "htcd"), "feed", "--spool", feedSpool(w.Lab),
			"--listen", fmt.Sprintf("127.0.0.1:%d", w.Ports.Feed), "--allow", "htcd=*",
			"--tls-cert", receiverFile(w, "feed.crt"), "--tls-key", receiverFile(w, "feed.key"),
			"--client-ca", receiverFile(w, "feed.crt"),
		},
		Ready: tcpReady("127.0.0.1", w.Ports.Feed),
	}, nil
}

// FeedFlags are those with which htcd uses the feed.
func FeedFlags(w World) []string {
	return []string{
		"--schedd", w.Host(), "--feed", fmt.Sprintf("%s=https://127.0.0.1:%d", w.Host(), w.Ports.Feed),
		"--feed-ca", receiverFile(w, "feed.crt"), "--feed-cert", receiverFile(w, "feed.crt"),
		"--feed-key", receiverFile(w, "feed.key"),
	}
}

// ShowSpool has the feed read the files in a directory.
func ShowSpool(l *lab.Lab, dir string) error {
	next := feedSpool(l) + ".next"
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := os.Symlink(dir, next); err != nil {
		return err
	}
	return os.Rename(next, feedSpool(l))
}

func feedSpool(l *lab.Lab) string { return l.Path("condor", "spool-of-feed") }
