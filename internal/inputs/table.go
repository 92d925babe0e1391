package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// MaxTable is how many bytes a table of items may have: as many as its items together.
const MaxTable = 16 << 20

// Table reads the table that an itemsFrom of an object names, if no step writes it, and returns it with its digest. Its
// errors are those of Resolve.
func (b Bringer) Table(
	ctx context.Context,
	job *v1alpha1.HTCJob,
	from v1alpha1.ItemsFrom,
) (text []byte, digest string, err error) {
	in := v1alpha1.Input{Name: "itemsFrom", JobRef: from.JobRef}
	if from.JobRef == nil {
		in.ConfigMapKeyRef = &from.ConfigMapKeyRef
	}
	alone := &v1alpha1.HTCJob{
		TypeMeta: job.TypeMeta, ObjectMeta: job.ObjectMeta, Spec: v1alpha1.HTCJobSpec{Inputs: []v1alpha1.Input{in}},
	}
	ready, err := b.Resolve(ctx, alone, 1)
	if err != nil {
		return nil, "", err
	}
	for _, f := range ready.files {
		if text, err = f.table(from); err != nil {
			return nil, "", err
		}
	}
	sum := sha256.Sum256(text)
	return text, "sha256:" + hex.EncodeToString(sum[:]), nil
}

// table returns what is in the file.
func (f file) table(from v1alpha1.ItemsFrom) ([]byte, error) {
	if f.open == nil {
		return f.content, nil
	}
	opened, err := f.open()
	if err != nil {
		return nil, fmt.Errorf("itemsFrom: %w", err)
	}
	defer opened.Close()
	text, err := ReadTable(opened)
	if err != nil {
		return nil, fmt.Errorf("itemsFrom: %s: %w", from, err)
	}
	return text, nil
}

// ReadTable reads a table that jobs have left. Its error is of kind schedd.Refused if it is too large.
func ReadTable(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, MaxTable+1))
	if err == nil && len(text) > MaxTable {
		return nil, condor.Refusal("expected a table of at most %d MiB, found more", MaxTable>>20)
	}
	return text, err
}
