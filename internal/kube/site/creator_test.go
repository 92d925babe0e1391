package site

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

func TestACreatorIsNamedOnlyWhereTheAnnotationIsProtected(t *testing.T) {
	for said, want := range map[string]string{
		"":                                "",
		"alice@cern.ch":                   "alice@cern.ch",
		"system:serviceaccount:ns:agent":  "system:serviceaccount:ns:agent",
		"eve\"\nqueue 9\n+Owner = $(X)\\": "eve__queue 9_+Owner = _(X)_",
		strings.Repeat("ü", 200):          strings.Repeat("ü", 128),
		"\xff":                            "_",
	} {
		annotations := map[string]string{v1alpha1.CreatorAnnotation: said}
		require.Equal(t, want, Site{TrustCreator: true}.CreatorOf(annotations))
		require.Empty(t, Site{}.CreatorOf(annotations))
	}
}
