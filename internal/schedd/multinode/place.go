package multinode

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The files of the directory that the wrapper makes.
const (
	fileKey   = "key"
	fileHosts = "hosts" // for mpirun: lines "node0 slots=8"
	fileStart = "start" // starts Start, as the agent of mpirun
)

// place is this node, and what it knows of the others.
type place struct {
	dir       string
	number    int
	addresses []string // of all nodes
	key       []byte
}

// here returns the node that this process runs on, from the wrapper's directory and HTCondor's variables.
func here(dir string) (place, error) {
	p := place{dir: dir}
	nodes, err := strconv.Atoi(os.Getenv("_CONDOR_NPROCS"))
	if err != nil {
		return p, errors.New("HTCondor has not said how many nodes this job has")
	}
	if p.number, err = strconv.Atoi(os.Getenv("_CONDOR_PROCNO")); err != nil || p.number < 0 || p.number >= nodes {
		return p, errors.New("HTCondor has not said which node this is")
	}
	p.key, err = os.ReadFile(filepath.Join(dir, fileKey)) // #nosec G304 -- the wrapper's directory
	if err != nil {
		return p, err
	}
	ad, err := os.ReadFile(os.Getenv("_CONDOR_JOB_AD")) // #nosec G304 G703 -- HTCondor's variable
	if err != nil {
		return p, err
	}
	if p.addresses = addresses(string(ad)); len(p.addresses) != nodes {
		return p, fmt.Errorf("the job's ad has the addresses of %d nodes in PublicClaimIds, expected %d",
			len(p.addresses), nodes)
	}
	return p, nil
}

var (
	claimsRE  = regexp.MustCompile(`(?m)^PublicClaimIds = "(.*)"$`)
	addressRE = regexp.MustCompile(`(?:^|,)<(\[[0-9A-Fa-f:.]+\]|[0-9.]+):`)
)

// addresses returns those of the machines in the ad of a job of several nodes, in the order of the nodes.
func addresses(ad string) (all []string) {
	claims := claimsRE.FindStringSubmatch(ad)
	if claims == nil {
		return nil
	}
	for _, m := range addressRE.FindAllStringSubmatch(claims[1], -1) {
		all = append(all, strings.Trim(m[1], "[]"))
	}
	return all
}

// leastPort and ports are where node 0 may listen: what lies above is given to outgoing connections by Linux.
const (
	leastPort = 10000
	ports     = 22000
	tries     = 20
)

// port returns the one at which node 0 listens if it has not got those before.
func (p place) port(try int) int {
	sum := sha256.Sum256(append([]byte(strconv.Itoa(try)+" "), p.key...))
	return leastPort + int(binary.BigEndian.Uint32(sum[:])%ports)
}

// serverName is in every certificate.
const serverName = "node"

// tls returns what both ends of a connection use: a certificate that only who has the key can make.
func (p place) tls() (*tls.Config, error) {
	seed := sha256.Sum256(p.key)
	key := ed25519.NewKeyFromSeed(seed[:])
	made := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: serverName}, DNSNames: []string{serverName},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &made, &made, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(certificate)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs:      trusted, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert,
		ServerName: serverName, MinVersion: tls.VersionTLS13,
	}, nil
}
