package backend

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever wraps a Schedd has to know each of its methods: a question is a schedd.Query, and a change a schedd.Change.
func TestTheSeamToHTCondorIsNarrow(t *testing.T) {
	require.LessOrEqual(t, reflect.TypeFor[Schedd]().NumMethod(), 8)
}
