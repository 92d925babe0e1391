// Program generate prints the types of clients/python, made from the CRD of HTCJobs. make generate runs it.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	text, err := os.ReadFile("deploy/base/crd/htc.cern.ch_htcjobs.yaml")
	if err == nil {
		text, err = python(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = os.Stdout.Write(text)
}

// schema is what is read of an OpenAPI schema.
type schema struct {
	Type                 string
	Enum                 []string
	Properties           map[string]schema
	Items                *schema
	AdditionalProperties *schema
	IntOrString          bool `json:"x-kubernetes-int-or-string"`
}

// crd is what is read of a CustomResourceDefinition.
type crd struct {
	Spec struct {
		Group    string
		Names    struct{ Kind, Plural string }
		Versions []struct {
			Name   string
			Schema struct{ OpenAPIV3Schema schema }
		}
	}
}

const head = `"""The fields of HTCJobs. Generated from the CRD by make generate: do not edit."""

from __future__ import annotations

from typing import Literal, TypedDict

`

// python returns a module with the types of a CRD.
func python(text []byte) ([]byte, error) {
	var c crd
	if err := yaml.Unmarshal(text, &c); err != nil {
		return nil, err
	}
	if n := len(c.Spec.Versions); n != 1 {
		return nil, fmt.Errorf("the CRD has %d versions, want 1", n)
	}
	version := c.Spec.Versions[0]
	var out strings.Builder
	out.WriteString(head)
	fmt.Fprintf(
		&out,
		"GROUP = %q\nVERSION = %q\nKIND = %q\nPLURAL = %q\n",
		c.Spec.Group,
		version.Name,
		c.Spec.Names.Kind,
		c.Spec.Names.Plural,
	)
	for _, part := range []string{"spec", "status"} {
		class(&out, c.Spec.Names.Kind+title(part), version.Schema.OpenAPIV3Schema.Properties[part])
	}
	return []byte(out.String()), nil
}

// class writes a class, after those that its fields need.
func class(out *strings.Builder, name string, s schema) {
	var fields strings.Builder
	for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
		fmt.Fprintf(&fields, "        %q: %q,\n", field, annotation(out, name+title(field), s.Properties[field]))
	}
	fmt.Fprintf(out, "\n%s = TypedDict(\n    %q,\n    {\n%s    },\n    total=False,\n)\n", name, name, fields.String())
}

// annotation returns the type of a field, and writes the class that it may need.
func annotation(out *strings.Builder, name string, s schema) string {
	switch {
	case len(s.Enum) > 0:
		return "Literal['" + strings.Join(s.Enum, "', '") + "']"
	case s.IntOrString:
		return "int | str"
	case s.Type == "integer":
		return "int"
	case s.Type == "boolean":
		return "bool"
	case s.Type == "array":
		return "list[" + annotation(out, name, *s.Items) + "]"
	case s.AdditionalProperties != nil:
		return "dict[str, " + annotation(out, name, *s.AdditionalProperties) + "]"
	case s.Properties != nil:
		class(out, name, s)
		return name
	default:
		return "str"
	}
}

func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
