// Package expiry reads from a credential when it ends: an X.509 certificate or proxy with its chain, or a JSON Web
// Token. It verifies nothing.
package expiry

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"
)

// Of returns the end of a credential: the earliest notAfter of the certificates in a PEM file, or the exp of a JWT. It
// is not known for anything else, nor for a token without an exp.
func Of(credential []byte) (at time.Time, known bool) {
	if at, known = ofCertificates(credential); known {
		return at, true
	}
	return ofToken(strings.TrimSpace(string(credential)))
}

// ofCertificates reads every certificate: a proxy is of no use after the end of any certificate that it was made from.
func ofCertificates(text []byte) (earliest time.Time, known bool) {
	for {
		var block *pem.Block
		block, text = pem.Decode(text)
		if block == nil {
			return earliest, known
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		if !known || certificate.NotAfter.Before(earliest) {
			earliest, known = certificate.NotAfter, true
		}
	}
}

// mostSeconds is 36812 AD; times beyond it are no times.
const mostSeconds = 1 << 40

func ofToken(text string) (time.Time, bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || !bytes.HasPrefix(payload, []byte("{")) {
		return time.Time{}, false
	}
	var claims struct {
		Expires *float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Expires == nil || *claims.Expires < 0 ||
		*claims.Expires > mostSeconds {
		return time.Time{}, false
	}
	return time.Unix(int64(*claims.Expires), 0), true
}
