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
		return errors.New(
			"this htcd fetches and pushes no artifacts: its administrator has listed no registries (--allow-registries)",
		)
	}
	if _, known := r.plain(ref.Host()); !known {
		return fmt.Errorf(
			"the registry %s is not one that the administrator of htcd allows (--allow-registries)",
			ref.Registry,
		)
	}
	return nil
}

// CheckTarget refuses what CheckReference refuses, and references without a tag.
func (r Registries) CheckTarget(text string) error {
	if err := r.CheckReference(text); err != nil {
		return err
	}
	if ref, err := parseReference(text); err != nil || strings.Contains(text, "@") ||
		ref.ValidateReferenceAsTag() != nil {
		return fmt.Errorf("%.100q: expected a tag at its end, such as :v3, and no digest", text)
	}
	return nil
}

// Host returns the registry in a reference; empty if it names none.
func Host(text string) string {
	ref, err := parseReference(text)
	if err != nil {
		return ""
	}
	return ref.Registry
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
