package jobcredentials

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// Token is the token with which the jobs of a run ask for their credentials. It follows from the hash of the run's
// token for callbacks, which is in the ledger; the other token does not follow from it.
func Token(callbackHash []byte) string {
	return base64.RawURLEncoding.EncodeToString(keyed(callbackHash, "htcd credentials"))
}

// StepToken is the token of a step of a workflow: none of its other steps can ask with it.
func StepToken(callbackHash []byte, step int) string {
	return base64.RawURLEncoding.EncodeToString(keyed(callbackHash, fmt.Sprintf("htcd credentials of step %d", step)))
}

func keyed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(text)) // never fails
	return mac.Sum(nil)
}
