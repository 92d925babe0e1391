package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Table reads the table that spec.itemsFrom names and returns it with its digest. Its errors are *Waiting, or passing
// ones of the apiserver.
func Table(
	ctx context.Context,
	maps ConfigMaps,
	namespace string,
	from v1alpha1.ItemsFrom,
) (text []byte, digest string, err error) {
	read := reading{ctx: ctx, maps: maps, namespace: namespace}
	f, err := read.configMap(from.ConfigMapKeyRef)
	if w, waits := errors.AsType[*Waiting](err); waits {
		return nil, "", &Waiting{Reason: w.Reason, Message: "itemsFrom: " + w.Message}
	}
	if err != nil {
		return nil, "", fmt.Errorf("itemsFrom: %w", err)
	}
	sum := sha256.Sum256(f.content)
	return f.content, "sha256:" + hex.EncodeToString(sum[:]), nil
}
