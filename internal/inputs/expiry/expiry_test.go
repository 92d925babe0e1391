package expiry_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/inputs/expiry"
)

var end = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func certificate(t *testing.T, end time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func token(payload string) []byte {
	encode := base64.RawURLEncoding.EncodeToString
	return []byte(encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(payload)) + ".c2ln\n")
}

func TestAProxyEndsWithTheFirstOfItsCertificates(t *testing.T) {
	key := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: []byte("not read")})
	chain := bytes.Join(
		[][]byte{certificate(t, end.Add(time.Hour)), key, certificate(t, end), certificate(t, end.Add(time.Minute))},
		nil,
	)
	at, known := expiry.Of(chain)
	require.True(t, known)
	require.True(t, at.Equal(end), at)
}

func TestATokenEndsAtItsExp(t *testing.T) {
	at, known := expiry.Of(token(`{"sub":"x","exp":1795348800.7}`))
	require.True(t, known)
	require.Equal(t, int64(1795348800), at.Unix())
}

func TestTheEndOfAnythingElseIsNotKnown(t *testing.T) {
	for _, text := range [][]byte{
		nil, []byte("secret"), []byte("a.b.c"), []byte("..."), token(`{}`), token(`{"exp":"soon"}`), token(`{"exp":-1}`), token(`{"exp":1e300}`), token(`[]`),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no certificate")}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("key")}),
	} {
		_, known := expiry.Of(text)
		require.False(t, known, "%q", text)
	}
}
