package cache

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBaseImages(t *testing.T) {
	for name, c := range map[string]struct {
		dockerfile string
		bases      []string
	}{
		"one stage":                       {"FROM debian:13\nRUN true\n", []string{"debian:13"}},
		"a stage that is used again":      {"FROM a:1 AS build\nFROM build AS more\nFROM b:2\n", []string{"a:1", "b:2"}},
		"the same twice, in small print":  {"from a:1 as x\nfrom a:1 as y\n", []string{"a:1"}},
		"images by the name of arguments": {"ARG X=a:1\nFROM $X AS x\nFROM ${X}\nARG Y=b\nRUN true\n", []string{"a:1"}},
		"a platform of its own":           {"FROM --platform=$BUILDPLATFORM a:1 AS build\nFROM build\n", []string{"a:1"}},
		"nothing at all":                  {"FROM scratch\nCOPY --from=x / /\n", nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.bases, baseImages(c.dockerfile)) })
	}
}
