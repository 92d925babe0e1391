package parts

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"htc.cern.ch/htcd/test/lab"
)

// The issuer of SciTokens that the lab's HTCondor knows. Its users have accounts of the same names. It serves nothing:
// its public key is in the cache in which HTCondor keeps those that it has fetched.
const (
	SciTokenIssuer   = "https://issuer.example.org/lab"
	SciTokenAudience = "https://condor." + Domain
)

const sciTokenKey = "lab"

// mapFile gives SciTokens their accounts; the other lines are what HTCondor does without a map file.
const mapFile = `SCITOKENS ^https://issuer\.example\.org/lab,([a-z]+)@example\.org$ \1@` + Domain + `
FS (.*) \1
KERBEROS ([^/]*)/?[^@]*@(.*) \1@\2
`

// issuer makes the issuer's key, and lets HTCondor, whose directory is dir, know its public half.
func issuer(ctx context.Context, w World, dir string) error {
	self := &x509.Certificate{SerialNumber: big.NewInt(1)}
	key, err := certify(issuerFile(w.Lab), self, self, nil)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "mapfile"), []byte(mapFile), 0o644); err != nil {
		return err
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		return err
	}
	encode := base64.RawURLEncoding.EncodeToString
	valid := time.Now().AddDate(10, 0, 0).Unix()
	keys, err := json.Marshal(
		map[string]any{"expires": valid, "next_update": valid, "jwks": map[string]any{"keys": []any{
			map[string]string{
				"alg": "ES256",
				"crv": "P-256",
				"kty": "EC",
				"use": "sig",
				"kid": sciTokenKey,
				"x":   encode(point[1:33]),
				"y":   encode(point[33:]),
			},
		}}},
	)
	if err != nil {
		return err
	}
	if _, err := directory("condor", 0o755, dir, "run", "cache"); err != nil {
		return err
	}
	cache, err := directory("condor", 0o755, dir, "run", "cache", "scitokens")
	if err != nil {
		return err
	}
	file := filepath.Join(cache, "scitokens_cpp.sqllite") // as libSciTokens calls it
	_, err = command(
		ctx,
		nil,
		fmt.Sprintf(`CREATE TABLE keycache (issuer text UNIQUE PRIMARY KEY NOT NULL, keys text NOT NULL);
INSERT INTO keycache VALUES ('%s', '%s');`, SciTokenIssuer, keys),
		"sqlite3",
		file,
	)
	if err != nil {
		return err
	}
	uid, gid, err := Account("condor")
	if err != nil {
		return err
	}
	return os.Chown(file, int(uid), int(gid))
}

func issuerFile(l *lab.Lab) string { return l.Path("condor", "passwords.d", "issuer") }

// SciToken returns the issuer's token for an account, for an hour. Claims replace or, if nil, remove the usual ones.
func SciToken(l *lab.Lab, account string, claims map[string]any) (string, error) {
	text, err := os.ReadFile(issuerFile(l) + ".key")
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return "", errors.New("the issuer's key is no PEM file")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", err
	}
	now := time.Now().Unix()
	all := map[string]any{
		"iss":   SciTokenIssuer,
		"sub":   account + "@example.org",
		"aud":   SciTokenAudience,
		"scope": "condor:/READ condor:/WRITE",
		"ver":   "scitoken:2.0",
		"iat":   now,
		"nbf":   now - 60,
		"exp":   now + 3600,
		"jti":   rand.Text(),
	}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, claim any) bool { return claim == nil })
	payload, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"ES256","typ":"JWT","kid":"`+sciTokenKey+`"}`)) + "." + encode(payload)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), sum[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + encode(signature), nil
}
