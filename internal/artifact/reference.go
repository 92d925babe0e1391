package artifact

import (
	"errors"
	"fmt"
	"strings"

	"oras.land/oras-go/v2/registry"
)

// maxReference is the greatest length of a reference.
const maxReference = 1024

// CheckReference refuses what names no artifact, and artifacts of registries that are not listed.
func (r Registries) CheckReference(text string) error {
	ref, err := parseReference(text)
	if err != nil {
		return err
	}
	if len(r) == 0 {
		return errors.New("this htcd fetches no artifacts: its administrator has listed no registries (--allow-registries)")
	}
	if _, known := r.plain(ref.Host()); !known {
		return fmt.Errorf("the registry %s is none that the administrator of htcd allows (--allow-registries)", ref.Registry)
	}
	return nil
}

// parseReference reads host/path:tag or host/path@digest.
func parseReference(text string) (registry.Reference, error) {
	ref, err := registry.ParseReference(text)
	named := strings.ContainsAny(ref.Registry, ".:") || ref.Registry == "localhost"
	switch {
	case len(text) > maxReference || err != nil || !named:
		return ref, fmt.Errorf("%.100q: expected an artifact such as registry.example.org/group/model:v3", text)
	case ref.Reference == "":
		return ref, fmt.Errorf("%.100q: expected a tag or a digest at its end, such as :v3", text)
	}
	return ref, nil
}
