package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// key is an ECDSA key, as cosign makes them.
type key struct{ private *ecdsa.PrivateKey }

// readKey reads a key of `cosign generate-key-pair`, or one without a password in PEM.
func readKey(file string, password []byte) (*key, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is no PEM file", file)
	}
	der := block.Bytes
	switch block.Type {
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		if der, err = encrypted.Decrypt(der, password); err != nil {
			return nil, fmt.Errorf("%s: COSIGN_PASSWORD does not open it: %w", file, err)
		}
	case "EC PRIVATE KEY":
		private, err := x509.ParseECPrivateKey(der)
		return &key{private}, named(file, err)
	case "PRIVATE KEY":
	default:
		return nil, fmt.Errorf("%s holds a %s, not a private key", file, block.Type)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, named(file, err)
	}
	private, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: only ECDSA keys can sign a release, this is %T", file, parsed)
	}
	return &key{private}, nil
}

func named(file string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// sign returns the signature of a text as cosign writes it. The same key and text give the same signature (RFC 6979).
func (k *key) sign(text []byte) (string, error) {
	sum := sha256.Sum256(text)
	signature, err := k.private.Sign(nil, sum[:], crypto.SHA256)
	return base64.StdEncoding.EncodeToString(signature), err
}

// public returns the public key in PEM.
func (k *key) public() ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(k.private.Public())
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), err
}

// signFile writes the signature of a file of dir, and the public key, beside it.
func signFile(dir, name string, k *key) error {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	signature, err := k.sign(text)
	if err != nil {
		return err
	}
	public, err := k.public()
	return errors.Join(err,
		os.WriteFile(filepath.Join(dir, name+".sig"), []byte(signature), 0o644),
		os.WriteFile(filepath.Join(dir, "cosign.pub"), public, 0o644))
}
