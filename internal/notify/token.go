package notify

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
)

const tokenSize = 32 // bytes

// NewToken makes the token of a run, 256 random bits as 43 characters that never need quoting, and the hash to keep of
// it.
func NewToken() (token string, hash []byte) {
	bits := make([]byte, tokenSize)
	_, _ = rand.Read(bits) // never fails: crypto/rand ends the program instead
	token = base64.RawURLEncoding.EncodeToString(bits)
	return token, Hash(token)
}

// wellFormed reports whether it could be the token of a run.
func wellFormed(token string) bool {
	bits, err := base64.RawURLEncoding.Strict().DecodeString(token)
	return err == nil && len(bits) == tokenSize
}

// Hash is the SHA-256 of a token, 32 bytes.
func Hash(token string) []byte {
	h := sha256.Sum256([]byte(token))
	return h[:]
}

// Match compares two hashes in constant time. Anything that is no hash matches nothing, not even itself.
func Match(kept, given []byte) bool {
	return len(kept) == sha256.Size && subtle.ConstantTimeCompare(kept, given) == 1
}
