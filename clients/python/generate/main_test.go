package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTypesAreThoseOfTheCRD(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/base/crd/htc.cern.ch_htcjobs.yaml")
	require.NoError(t, err)
	made, err := python(text)
	require.NoError(t, err)
	committed, err := os.ReadFile("../htc/types.py")
	require.NoError(t, err)
	require.Equal(t, string(made), string(committed), "run make generate")
}

func TestACRDOfTwoVersionsIsRefused(t *testing.T) {
	_, err := python([]byte("spec: {versions: [{name: v1}, {name: v2}]}"))
	require.EqualError(t, err, "the CRD has 2 versions, want 1")
}
